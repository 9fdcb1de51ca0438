"""The exposition of the Prometheus sink: metric families of its cells, in the client's registry, for a scrape.

In multiprocess mode (``PROMETHEUS_MULTIPROC_DIR``) the sink uses the client's own metrics, because only these write the
files that its collector adds up; the client then drops exemplars.
"""

from __future__ import annotations

import os
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import prometheus_client
from prometheus_client import utils
from prometheus_client import values as client_values
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar as ClientExemplar

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel.semconv.types import COUNTER, GAUGE, HISTOGRAM
from agent_otel.telemetry.sinks.base import Cells, CounterCell, HistogramCell, Series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.metrics_core import Metric as Family

    from agent_otel.semconv.types import Metric
    from agent_otel.telemetry.sinks.base import Exemplar, Kept


_text_of: Callable[[float], str] = utils.floatToGoString


def _given(kept: Kept | None) -> ClientExemplar | None:
    return None if kept is None else ClientExemplar(kept[0].labels, kept[1], kept[0].at)


class _Exposed(Collector):
    """The cells of one metric, as a collector of the client."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    def _family(self) -> Family:
        metric = self._cells.metric
        kind = {HISTOGRAM: HistogramMetricFamily, COUNTER: CounterMetricFamily}
        family: Family = kind.get(metric.kind, GaugeMetricFamily)(
            metric.prometheus_name, metric.meaning, labels=metric.prometheus_labels
        )
        return family

    def describe(self) -> Iterator[Family]:
        """Yield the metric without samples, so that the registry reserves its name."""
        yield self._family()

    def collect(self) -> Iterator[Family]:
        """Yield the metric with its samples."""
        family: Any = self._family()
        for values, cell in self._cells.settled():
            if isinstance(cell, HistogramCell):
                counts, total, exemplars = cell.copied()
                bounds = map(_text_of, (*cell.bounds, float("inf")))
                marks = map(_given, map(exemplars.get, range(len(counts))))
                if any(counts):  # a histogram is exposed from its first value on, as in OpenTelemetry
                    family.add_metric(values, list(zip(bounds, accumulate(counts), marks, strict=True)), total)
            elif isinstance(cell, CounterCell):
                # In clients before 0.22, only a sample of a counter takes an exemplar.
                labels = dict(zip(family._labelnames, values, strict=True))  # noqa: SLF001
                family.add_sample(f"{family.name}_total", labels, cell.value, exemplar=_given(cell.exemplar))
            else:
                family.add_metric(values, cell.value)
        yield family


_METHODS = {HISTOGRAM: "observe", COUNTER: "inc", GAUGE: "set"}


class _ClientSeries(Series):
    """A series of one of the client's own metrics."""

    __slots__ = ("_record", "_takes_exemplars")

    def __init__(self, child: Any, kind: str) -> None:
        self._record = getattr(child, _METHODS[kind])
        self._takes_exemplars = kind != GAUGE

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        if exemplar is not None and self._takes_exemplars:
            self._record(value, exemplar.labels)
        else:
            self._record(value)


class ClientMetric:
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
            self._metric = prometheus_client.Gauge(**arguments, multiprocess_mode="max")

    def series(self, values: tuple[str, ...]) -> Series:
        """Return the series with these label values."""
        return _ClientSeries(self._metric.labels(*values) if values else self._metric, self._kind)


class StartTime:
    """The start time of this process, for multiprocess mode: a scrape gets the smallest, also of ended processes.

    It has a file of its own, which belongs to the process that made it. The client begins all gauges of a forked child
    at 0 in the child's files.
    """

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        file = f"{os.getpid()}-start"
        self._value: Any = client_values.MultiProcessValue(lambda: file)  # type: ignore[no-untyped-call]

    def series(self, values: tuple[str, ...]) -> Series:
        """Return the series with these label values."""
        name = self._metric.prometheus_name
        labels = self._metric.prometheus_labels, values
        return _ClientSeries(self._value(GAUGE, name, name, *labels, self._metric.meaning, "min"), GAUGE)


def client_metric(
    metric: Metric, registry: prometheus_client.CollectorRegistry | None
) -> ClientMetric | StartTime | Cells:
    """Return a metric of the client itself, or cells that nothing reads where its name is taken."""
    if metric.name == semconv.PROCESS_START.name:
        return StartTime(metric)
    try:
        return ClientMetric(metric, registry or prometheus_client.REGISTRY)
    except errors.ours(ValueError):
        _say_taken(metric)
        return Cells(metric)


def expose(cells: Cells, registry: prometheus_client.CollectorRegistry | None) -> None:
    """Put the cells of a metric into a registry, by default the client's own."""
    try:
        (registry or prometheus_client.REGISTRY).register(_Exposed(cells))
    except errors.ours(ValueError):
        _say_taken(cells.metric)


def _say_taken(metric: Metric) -> None:
    errors.warn_once(
        f"taken {metric.prometheus_name}",
        f"Another part of the program already exposes {metric.prometheus_name}; ours is not exposed.",
    )
