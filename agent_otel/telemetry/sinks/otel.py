"""The OpenTelemetry sink: histograms record in the SDK; it reads counters and gauges from our cells when it exports.

A record of the SDK costs as much as the rest of a call's metrics, so that a call makes three: its histograms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.metrics import Observation

from agent_otel.semconv.types import COUNTER, HISTOGRAM
from agent_otel.telemetry.sinks.base import Cells, CounterCell, Series

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.metrics import Meter

    from agent_otel.semconv.types import Metric
    from agent_otel.telemetry.sinks.base import Exemplar


class _Histogram(Series):
    __slots__ = ("_attributes", "_record")

    def __init__(self, record: Callable[..., None], attributes: dict[str, str]) -> None:
        self._record = record
        self._attributes = attributes

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        self._record(value, self._attributes, exemplar and exemplar.context)


class OTelSink:
    """Instruments of ``meter``, created at first use."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._histograms: dict[str, Callable[..., None]] = {}
        self._cells: dict[str, Cells] = {}

    def series(self, metric: Metric, values: tuple[str, ...]) -> Series:
        """Return the series with these label values; an empty value omits the attribute, as in the conventions."""
        about: dict[str, Any] = {"name": metric.name, "unit": metric.unit, "description": metric.meaning}
        if metric.kind == HISTOGRAM:
            record = self._histograms.get(metric.name)
            if record is None:
                bounds = list(metric.buckets)
                record = self._meter.create_histogram(**about, explicit_bucket_boundaries_advisory=bounds).record
                self._histograms[metric.name] = record
            return _Histogram(record, _attributes(metric, values))
        cells = self._cells.get(metric.name)
        if cells is None:
            cells = self._cells[metric.name] = Cells(metric)
            meter, is_counter = self._meter, metric.kind == COUNTER
            create = meter.create_observable_counter if is_counter else meter.create_observable_gauge
            create(callbacks=[lambda _: _observed(cells)], **about)
        return cells.series(values)

    def forget_counts(self) -> None:
        """Set the counters to 0 in a forked child, because the parent exports its own."""
        for cells in self._cells.values():
            for _, cell in cells.settled():
                if type(cell) is CounterCell:
                    cell.value = 0


def _observed(cells: Cells) -> list[Observation]:
    return [Observation(cell.value, _attributes(cells.metric, values)) for values, cell in cells.settled()]  # type: ignore[union-attr]


def _attributes(metric: Metric, values: tuple[str, ...]) -> dict[str, str]:
    return {label: value for label, value in zip(metric.labels, values, strict=True) if value}
