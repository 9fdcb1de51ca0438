"""The interface of metric sinks, which ``prometheus`` and ``otel`` implement for the same metrics."""

from __future__ import annotations

import functools
import math
import time
from bisect import bisect_left
from operator import add
from typing import TYPE_CHECKING, Final, Protocol, cast

from opentelemetry import trace
from opentelemetry.context.context import Context
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan

from agent_otel.semconv.types import COUNTER, HISTOGRAM, MOMENT_SECONDS
from agent_otel.telemetry.sinks import recording

if TYPE_CHECKING:
    from collections.abc import Sequence

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


class Sink(Protocol):
    """A destination of metrics."""

    def series(self, metric: Metric, values: tuple[str, ...]) -> Series:
        """Return the series with these label values; an empty value means that the label is absent."""


class Fan(Series):
    """A series on several sinks."""

    __slots__ = ("_series",)

    def __init__(self, series: list[Series]) -> None:
        self._series = series

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Add on each sink."""
        for series in self._series:
            series.add(value, exemplar)


class Group:
    """Counters that are added to together, by each model request for its parts."""

    __slots__ = ("_series",)

    def __init__(self, series: Sequence[Series]) -> None:
        self._series = series

    def add(self, amounts: Sequence[float]) -> None:
        """Add an amount to each; the caller holds the ``recording`` lock."""
        for one, amount in zip(self._series, amounts, strict=True):
            if amount:
                one.add(amount)

    def settle(self) -> None:
        """Add to the counters what is not in them yet."""


def grouped(series: Sequence[Series]) -> Group:
    """Return counters of one metric as a group."""
    kinds = set(map(type, series))
    group = getattr(kinds.pop(), "group", Group) if len(kinds) == 1 else Group
    return cast("Group", group(series))


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

    __slots__ = ("exemplar", "unsettled", "value")

    def __init__(self, unsettled: dict[int, _CounterGroup]) -> None:
        self.value: float = 0
        self.exemplar: Kept | None = None
        self.unsettled = unsettled

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Add to the counter."""
        self.value += value
        if exemplar is not None:
            self.exemplar = exemplar, value

    @staticmethod
    def group(cells: Sequence[CounterCell]) -> Group:
        """Return several counters of one metric that are added to at once."""
        return _CounterGroup(cells)


class _CounterGroup(Group):
    """Cells of one metric, with the sums of what a scrape adds to them: a third of the cost of adding to each."""

    __slots__ = ("_cells", "_sums", "_unsettled")

    def __init__(self, cells: Sequence[CounterCell]) -> None:
        self._cells = cells
        self._sums: list[float] = [0] * len(cells)
        self._unsettled = cells[0].unsettled

    def add(self, amounts: Sequence[float]) -> None:
        self._unsettled[id(self)] = self
        # In place: a request that the garbage collector ends meanwhile is added to the same sums.
        self._sums[:] = map(add, self._sums, amounts)

    def settle(self) -> None:
        self._unsettled.pop(id(self), None)
        sums = self._sums
        for at, cell in enumerate(self._cells):
            amount, sums[at] = sums[at], 0
            cell.add(amount)


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
        #: By id, groups of its cells that have been added to since the last scrape.
        self._unsettled: dict[int, _CounterGroup] = {}

    def series(self, values: tuple[str, ...]) -> Series:
        """Return the series with these label values."""
        cell = self._cells.get(values)
        if cell is None:
            kind = self.metric.kind
            seconds = MOMENT_SECONDS if self.metric.is_momentary else math.inf
            made = CounterCell(self._unsettled) if kind == COUNTER else GaugeCell(seconds)
            cell = HistogramCell(self.metric.buckets) if kind == HISTOGRAM else made
        return self._cells.setdefault(values, cell)

    def settled(self) -> list[tuple[tuple[str, ...], _Cell]]:
        """Return all label values with their cells, which hold all that has been recorded; no gauge that has ended."""
        with recording.held:
            for group in list(self._unsettled.values()):
                group.settle()
        now = time.monotonic()
        return [
            (values, cell) for values, cell in self._cells.items() if type(cell) is not GaugeCell or now <= cell.until
        ]
