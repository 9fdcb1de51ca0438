"""Labels of the program's own, such as a tenant or a team, on all metrics and spans.

``AGENT_OTEL_LABELS`` names them. A value is fixed there, or comes from ``agent_otel.execution(labels=…)`` or from
OpenTelemetry's baggage. Each set of values has its own series, so that the number of sets is limited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel.measure.preview import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_otel.semconv.types import Metric
    from agent_otel.telemetry.sinks.base import Series, Sink

MOST_SETS: Final = 200
"""Sets of values that have series of their own besides the fixed ones; in further ones, the others are ``_other``."""


def _no_labels() -> Mapping[str, str] | None:
    return None


#: Returns the labels that the program gave the execution in this context; `agent_otel.core.named_execution` sets it.
of_execution: Callable[[], Mapping[str, str] | None] = _no_labels


class Labels:
    """The labels that the settings name, and the sets of values that have occurred."""

    def __init__(self, chosen: tuple[tuple[str, str | None], ...]) -> None:
        from opentelemetry import baggage  # noqa: PLC0415 - preload has it, where there are labels

        self._get_baggage = baggage.get_baggage
        self._chosen = chosen
        #: The values outside of any execution and without baggage.
        self.fixed = tuple(fixed or "" for _, fixed in chosen)
        self._sets = {self.fixed}

    def now(self) -> tuple[str, ...]:
        """Return the values in this context; a label without a value is empty."""
        given = of_execution() or {}
        values = tuple(self._value(name, given, fixed) for name, fixed in self._chosen)
        if values in self._sets:
            return values
        if len(self._sets) > MOST_SETS:
            errors.warn_once(
                "limit of labels",
                f"AGENT_OTEL_LABELS has more than {MOST_SETS} sets of values; further ones are counted as "
                f"{semconv.OTHER!r}.",
            )
            return tuple(
                value if value == fixed else semconv.OTHER for value, fixed in zip(values, self.fixed, strict=True)
            )
        self._sets.add(values)
        return values

    def _value(self, name: str, given: Mapping[str, str], fixed: str | None) -> str:
        """Return the value of a label: the execution's, else that of the baggage, else the fixed one."""
        value: object = given.get(name)
        if value is None:
            value = self._get_baggage(name)
        return _printable(clean(value)) if type(value) is str else fixed or ""


def _printable(value: str) -> str:
    """Return a value without control characters, which the sender of a request may put into its baggage."""
    if value.isprintable():
        return value
    return "".join(one if one.isprintable() else " " if one.isspace() else "?" for one in value)


class Labelled:
    """A sink whose metrics have the program's labels as well."""

    def __init__(self, sink: Sink, names: tuple[str, ...], values: tuple[str, ...]) -> None:
        self._sink = sink
        self._names = names
        self._values = values

    def series(self, metric: Metric, values: tuple[str, ...]) -> Series:
        """Return the series of the metric with these label values and the program's."""
        return self._sink.series(metric._replace(labels=(*metric.labels, *self._names)), (*values, *self._values))
