"""The OpenTelemetry sink: histograms record in the SDK; it reads counters and gauges from our cells when it exports.

A record of the SDK costs as much as the rest of a call's metrics, so that a call makes three: its histograms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.metrics import Observation

from agent_otel.semconv.types import COUNTER, HISTOGRAM
from agent_otel.telemetry.sinks import Cells, CounterCell, Series, Sink

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.metrics import Meter

    from agent_otel.semconv.types import Metric
    from agent_otel.telemetry.sinks import Exemplar


class _Histogram(Series):
    __slots__ = ("_attributes", "_record")

    def __init__(self, record: Callable[..., None], attributes: dict[str, str]) -> None:
        self._record = record
        self._attributes = attributes

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        self._record(value, self._attributes, exemplar and exemplar.context)


class OTelSink(Sink):
    """Instruments of ``meter``, created at first use. An empty label is no attribute, as in the conventions."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self._meter = meter
        self._cells: list[Cells] = []

    def declare(self, metric: Metric) -> Callable[[tuple[str, ...]], Series]:
        """Create the instrument of a metric."""
        about: dict[str, Any] = {"name": metric.name, "unit": metric.unit, "description": metric.meaning}
        if metric.kind == HISTOGRAM:
            bounds = list(metric.buckets)
            record = self._meter.create_histogram(**about, explicit_bucket_boundaries_advisory=bounds).record
            return lambda values: _Histogram(record, _attributes(metric, values))
        cells, is_counter = Cells(metric), metric.kind == COUNTER
        self._cells.append(cells)
        create = self._meter.create_observable_counter if is_counter else self._meter.create_observable_gauge
        create(callbacks=[lambda _: _observed(cells)], **about)
        return cells.series

    def forget_counts(self) -> None:
        """Set the counters to 0 in a forked child, because the parent exports its own."""
        for cells in self._cells:
            for _, cell in cells.current():
                if type(cell) is CounterCell:
                    cell.value = 0


def _observed(cells: Cells) -> list[Observation]:
    return [Observation(cell.value, _attributes(cells.metric, values)) for values, cell in cells.current()]  # type: ignore[union-attr]


def _attributes(metric: Metric, values: tuple[str, ...]) -> dict[str, str]:
    return {label: value for label, value in zip(metric.labels, values, strict=True) if value}
