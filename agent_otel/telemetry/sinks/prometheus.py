"""The Prometheus sink: metrics in the program's registry, recorded in cells of this module.

A tool call records on four series: 0.56 U on cells, 2.0 U on the client's cached children (`scripts/benchmark sinks`),
which is a fifth of a call without a span and 4 % of one with a span. A scrape converts cells to the client's metric
families. In multiprocess mode (``PROMETHEUS_MULTIPROC_DIR``) the sink uses the
client's own metrics, because only these write the files that its collector adds up; the client then drops exemplars.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from operator import add
from typing import TYPE_CHECKING, Any

import prometheus_client
from prometheus_client import utils
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar as ClientExemplar

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel.semconv.types import COUNTER, GAUGE, HISTOGRAM
from agent_otel.telemetry.recording import recording
from agent_otel.telemetry.sinks.base import Group, LockedSeries

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client.metrics_core import Metric as Family

    from agent_otel.semconv.types import Metric
    from agent_otel.telemetry.sinks.base import Series
    from agent_otel.telemetry.spans import Exemplar

    #: An exemplar in a cell: span context and time, and the value.
    _Kept = tuple[Exemplar, float]


def _bound_text(bound: float) -> str:
    text: str = utils.floatToGoString(bound)  # type: ignore[no-untyped-call]
    return text


def _given(kept: _Kept | None) -> ClientExemplar | None:
    return None if kept is None else ClientExemplar(kept[0].labels, kept[1], kept[0].at)


class _HistogramCell(LockedSeries):
    """Buckets and sum of one series."""

    __slots__ = ("_bounds", "_counts", "_exemplars", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._exemplars: dict[int, _Kept] = {}
        self._sum = 0.0

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        index = bisect_left(self._bounds, value)
        self._counts[index] += 1
        self._sum += value
        if exemplar is not None:
            self._exemplars[index] = exemplar, value

    def add_to(self, family: Any, values: tuple[str, ...]) -> None:
        with recording.held:
            counts, total, exemplars = self._counts.copy(), self._sum, self._exemplars.copy()
        if not any(counts):
            return  # a histogram is exposed from its first value on, as in OpenTelemetry
        buckets: list[tuple[str, int, ClientExemplar | None]] = []
        below = 0
        for index, bound in enumerate((*self._bounds, float("inf"))):
            below += counts[index]
            buckets.append((_bound_text(bound), below, _given(exemplars.get(index))))
        family.add_metric(values, buckets, total)


class _CounterCell(LockedSeries):
    """The value of one counter series."""

    __slots__ = ("_exemplar", "_value", "unsettled")

    def __init__(self, unsettled: dict[int, _CounterGroup]) -> None:
        self._value = 0.0
        self._exemplar: _Kept | None = None
        self.unsettled = unsettled

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        self._value += value
        if exemplar is not None:
            self._exemplar = exemplar, value

    @staticmethod
    def group(cells: Sequence[_CounterCell]) -> Group:
        return _CounterGroup(cells)

    def add_to(self, family: Any, values: tuple[str, ...]) -> None:
        # In clients before 0.22, only a sample of a counter takes an exemplar.
        labels = dict(zip(family._labelnames, values, strict=True))  # noqa: SLF001
        family.add_sample(f"{family.name}_total", labels, self._value, exemplar=_given(self._exemplar))


class _CounterGroup(Group):
    """Cells of one metric, with the sums of what a scrape adds to them: a third of the cost of adding to each."""

    __slots__ = ("_cells", "_sums", "_unsettled")

    def __init__(self, cells: Sequence[_CounterCell]) -> None:
        self._cells = cells
        self._sums = [0.0] * len(cells)
        self._unsettled = cells[0].unsettled

    def add(self, amounts: Sequence[float]) -> None:
        self._unsettled[id(self)] = self
        # In place: a request that the garbage collector ends meanwhile is added to the same sums.
        self._sums[:] = map(add, self._sums, amounts)

    def settle(self) -> None:
        self._unsettled.pop(id(self), None)
        sums = self._sums
        for at, cell in enumerate(self._cells):
            amount, sums[at] = sums[at], 0.0
            cell.add(amount)


class _GaugeCell:
    """The value of one gauge series."""

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value = 0.0

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:  # noqa: ARG002 - gauges have none
        self._value = value

    record = add

    def add_to(self, family: Any, values: tuple[str, ...]) -> None:
        family.add_metric(values, self._value)


_Cell = _HistogramCell | _CounterCell | _GaugeCell


class _Cells(Collector):
    """All series of one metric, as a collector of the Prometheus client."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._cells: dict[tuple[str, ...], _Cell] = {}
        #: By id, groups of its cells that have been added to since the last scrape.
        self._unsettled: dict[int, _CounterGroup] = {}

    def series(self, values: tuple[str, ...]) -> Series:
        cell = self._cells.get(values)
        return self._cells.setdefault(values, self._new_cell()) if cell is None else cell

    def _new_cell(self) -> _Cell:
        if self._metric.kind == HISTOGRAM:
            return _HistogramCell(self._metric.buckets)
        return _CounterCell(self._unsettled) if self._metric.kind == COUNTER else _GaugeCell()

    def _family(self) -> Family:
        kind = {HISTOGRAM: HistogramMetricFamily, COUNTER: CounterMetricFamily}
        family: Family = kind.get(self._metric.kind, GaugeMetricFamily)(
            self._metric.prometheus_name, self._metric.meaning, labels=self._metric.prometheus_labels
        )
        return family

    def describe(self) -> Iterator[Family]:
        """Yield the metric without samples, so that the registry reserves its name."""
        yield self._family()

    def collect(self) -> Iterator[Family]:
        """Yield the metric with its samples."""
        family = self._family()
        with recording.held:
            for group in list(self._unsettled.values()):
                group.settle()
        for values, cell in list(self._cells.items()):
            cell.add_to(family, values)
        yield family


class _ClientSeries(LockedSeries):
    """A series of one of the client's own metrics."""

    __slots__ = ("_record", "_takes_exemplars")

    def __init__(self, child: Any, kind: str) -> None:
        self._record = child.observe if kind == HISTOGRAM else child.inc
        self._takes_exemplars = kind != GAUGE
        if kind == GAUGE:
            self._record = child.set

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        if exemplar is not None and self._takes_exemplars:
            self._record(value, exemplar.labels)
        else:
            self._record(value)


class _ClientMetric:
    """A metric of the client itself, for multiprocess mode."""

    def __init__(self, metric: Metric, registry: prometheus_client.CollectorRegistry) -> None:
        self._kind = metric.kind
        arguments: dict[str, Any] = {
            "name": metric.prometheus_name,
            "documentation": metric.meaning,
            "labelnames": metric.prometheus_labels,
            "registry": registry,
        }
        if metric.kind == HISTOGRAM:
            self._metric: Any = prometheus_client.Histogram(**arguments, buckets=metric.buckets)
        elif metric.kind == COUNTER:
            self._metric = prometheus_client.Counter(**arguments)
        else:
            # The collector also adds the files of ended processes, so that the start is that of the first process.
            arguments["multiprocess_mode"] = "min" if metric is semconv.PROCESS_START else "max"
            self._metric = prometheus_client.Gauge(**arguments)

    def series(self, values: tuple[str, ...]) -> Series:
        return _ClientSeries(self._metric.labels(*values) if values else self._metric, self._kind)


class PrometheusSink:
    """Metrics in ``registry``, created at first use."""

    def __init__(self, registry: prometheus_client.CollectorRegistry = prometheus_client.REGISTRY) -> None:
        self._registry = registry
        self._metrics: dict[str, _Cells | _ClientMetric] = {}
        self._multiprocess = bool(os.environ.get("PROMETHEUS_MULTIPROC_DIR"))

    def series(self, metric: Metric, values: tuple[str, ...]) -> Series:
        """Return the series with these label values."""
        found = self._metrics.get(metric.name)
        if found is None:
            found = self._metrics[metric.name] = self._make(metric)
        return found.series(values)

    def _make(self, metric: Metric) -> _Cells | _ClientMetric:
        try:
            if self._multiprocess:
                return _ClientMetric(metric, self._registry)
            cells = _Cells(metric)
            self._registry.register(cells)
        except ValueError:  # another metric in the program's registry has the name
            errors.warn_once(
                f"taken {metric.prometheus_name}",
                f"Another part of the program already exposes {metric.prometheus_name}; ours is not exposed.",
            )
            return _Cells(metric)
        return cells
