"""What a way out for metrics looks like. Two implementations, one catalogue: ``prometheus`` and ``otel``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from opentelemetry.trace import NonRecordingSpan, set_span_in_context

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from opentelemetry.context import Context
    from opentelemetry.trace import SpanContext

    from agent_otel.catalogue import Metric


class Exemplar:
    """Where a measurement belongs, in each sink's own form when the sink asks for it. The span itself is not held.

    ``at`` is the time of the measurement in epoch seconds.
    """

    __slots__ = ("at", "spot")

    def __init__(self, spot: SpanContext) -> None:
        self.spot = spot
        self.at = time.time()

    @property
    def labels(self) -> dict[str, str]:
        """The labels of an exemplar in Prometheus."""
        return {"trace_id": format(self.spot.trace_id, "032x"), "span_id": format(self.spot.span_id, "016x")}

    @property
    def context(self) -> Context:
        """The context from which OpenTelemetry's SDK makes an exemplar."""
        return set_span_in_context(NonRecordingSpan(self.spot))


class Series(Protocol):
    """One time series, bound to its label values."""

    def record(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Observe a value, add to a counter or set a gauge."""

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        """As ``record``, for a caller that holds the sink's lock."""


class Sink(Protocol):
    """Where metrics go."""

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """What to hold around ``Series.add``, so that it is taken once for several series."""

    def series(self, metric: Metric, values: tuple[str, ...]) -> Series:
        """Bind a metric to label values; an empty value means that the label is absent."""

    def settles(self, settle: Callable[[], None]) -> bool:
        """Whether the sink will call ``settle`` each time before it is read, so that until then calls may wait."""

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

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Add on each of them."""
        for series in self._series:
            series.add(value, exemplar)
