"""What a way out for metrics looks like. Two implementations, one catalogue: ``prometheus`` and ``otel``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from agent_otel.catalogue import Metric


class Exemplar(NamedTuple):
    """The trace a measurement belongs to, in each sink's own form."""

    labels: dict[str, str]
    context: Context


class Series(Protocol):
    """One time series, bound to its label values."""

    def record(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Observe a value, add to a counter or set a gauge."""


class Sink(Protocol):
    """Where metrics go."""

    def series(self, metric: Metric, values: tuple[str, ...]) -> Series:
        """Bind a metric to label values; an empty value means that the label is absent."""

    def renew_locks(self) -> None:
        """Make new locks; a forked child calls this."""


class Fan:
    """One series on several sinks."""

    __slots__ = ("_series",)

    def __init__(self, series: list[Series]) -> None:
        self._series = series

    def record(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Record on each of them."""
        for series in self._series:
            series.record(value, exemplar)
