"""Metric sinks: the interface that ``prometheus`` and ``otel`` implement for the same metrics, and their lock."""

from __future__ import annotations

import functools
import math
import time
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from opentelemetry import trace
from opentelemetry.context.context import Context
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan

from agent_otel._internal.fork import recording
from agent_otel.semconv.types import COUNTER, HISTOGRAM, MOMENT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.trace import SpanContext

    from agent_otel.semconv.types import Metric

#: The key of the current span in a context.
SPAN_KEY: Final = next(iter(trace.set_span_in_context(INVALID_SPAN, Context())))


class Exemplar:
    """The span context of a measurement at a time, in the form of each sink on demand; it does not keep the span."""

    __slots__ = ("_context", "at", "spot")

    def __init__(self, spot: SpanContext) -> None:
        self.spot = spot
        self.at = time.time()
        self._context: Context | None = None

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of a Prometheus exemplar."""
        return {"trace_id": format(self.spot.trace_id, "032x"), "span_id": format(self.spot.span_id, "016x")}

    @property
    def context(self) -> Context:
        """Return the context from which the OpenTelemetry SDK makes an exemplar, with the span alone in it."""
        if self._context is None:
            self._context = Context({SPAN_KEY: NonRecordingSpan(self.spot)})
        return self._context


Kept = tuple[Exemplar, float]


class Series:
    """A time series, bound to its label values."""

    __slots__ = ()

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Observe a value, add to a counter or set a gauge; the caller holds the ``recording`` lock."""
        raise NotImplementedError

    def record(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Do the same as ``add`` with the lock."""
        with recording.held:
            self.add(value, exemplar)


class Sink:
    """A destination of metrics."""

    def __init__(self) -> None:
        #: By metric, the function that returns the series with label values.
        self._declared: dict[str, Callable[[tuple[str, ...]], Series]] = {}

    def series(self, metric: Metric, values: tuple[str, ...]) -> Series:
        """Return the series with these label values; an empty value means that the label is absent."""
        declared = self._declared.get(metric.name)
        if declared is None:
            declared = self._declared[metric.name] = self.declare(metric)
        return declared(values)

    def declare(self, metric: Metric) -> Callable[[tuple[str, ...]], Series]:
        """Return the function that returns the series of a metric by its label values."""
        raise NotImplementedError


class Fan(Series):
    """A series on several sinks."""

    __slots__ = ("_series",)

    def __init__(self, series: list[Series]) -> None:
        self._series = series

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Add on each sink."""
        for series in self._series:
            series.add(value, exemplar)


# The cells of the Prometheus sink: all series of a metric in this process, without the client's own objects. A tool
# call records on four series: 0.56 U on cells, 2.0 U on the client's cached children (`scripts/benchmark sinks`),
# which is a fifth of a call without a span and 4 % of one with a span.


@functools.lru_cache(maxsize=64)  # of metrics
def _edges(bounds: tuple[float, ...]) -> tuple[float, ...]:
    """Return whole numbers as integers: Python compares a size with one in half the time."""
    return tuple(map(int, bounds)) if all(bound == int(bound) for bound in bounds) else bounds


class HistogramCell(Series):
    """Buckets and sum of one series."""

    __slots__ = ("_counts", "_edges", "_exemplars", "_sum", "bounds")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self._edges = _edges(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._exemplars: dict[int, Kept] = {}
        self._sum = 0.0

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Observe a value."""
        index = bisect_left(self._edges, value)
        self._counts[index] += 1
        self._sum += value
        if exemplar is not None:
            self._exemplars[index] = exemplar, value

    def copied(self) -> tuple[list[int], float, dict[int, Kept]]:
        """Return the counts of the buckets, the sum, and the exemplars by bucket."""
        with recording.held:
            return self._counts.copy(), self._sum, self._exemplars.copy()


class CounterCell(Series):
    """The value of one counter series."""

    __slots__ = ("exemplar", "value")

    def __init__(self) -> None:
        self.value: float = 0
        self.exemplar: Kept | None = None

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Add to the counter."""
        self.value += value
        if exemplar is not None:
            self.exemplar = exemplar, value


class GaugeCell(Series):
    """The value of one gauge series; a momentary one is exposed until a time (seconds of the monotonic clock)."""

    __slots__ = ("_seconds", "until", "value")

    def __init__(self, seconds: float = math.inf) -> None:
        self.value = 0.0
        self._seconds = seconds
        self.until = 0.0 if seconds < math.inf else math.inf

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:  # noqa: ARG002 - gauges have none
        """Set the gauge."""
        self.value = value
        self.until = time.monotonic() + self._seconds


_Cell = HistogramCell | CounterCell | GaugeCell


class Cells:
    """All series of one metric."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self._cells: dict[tuple[str, ...], _Cell] = {}

    def series(self, values: tuple[str, ...]) -> Series:
        """Return the series with these label values."""
        cell = self._cells.get(values)
        if cell is None:
            kind = self.metric.kind
            seconds = MOMENT_SECONDS if self.metric.is_momentary else math.inf
            made = CounterCell() if kind == COUNTER else GaugeCell(seconds)
            cell = HistogramCell(self.metric.buckets) if kind == HISTOGRAM else made
        return self._cells.setdefault(values, cell)

    def current(self) -> list[tuple[tuple[str, ...], _Cell]]:
        """Return all label values with their cells, without gauges that have ended."""
        now = time.monotonic()
        return [one for one in list(self._cells.items()) if type(one[1]) is not GaugeCell or now <= one[1].until]
