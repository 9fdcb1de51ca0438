"""The OpenTelemetry sink: instruments of a MeterProvider, with attributes that are built once for each series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.metrics import Observation

from agent_otel.semconv.types import COUNTER, HISTOGRAM
from agent_otel.telemetry.sinks.base import Series

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.context import Context
    from opentelemetry.metrics import CallbackOptions, Meter

    from agent_otel.semconv.types import Metric
    from agent_otel.telemetry.sinks.base import Exemplar


class _OTelSeries(Series):
    __slots__ = ("_attributes", "_record")

    def __init__(self, record: Callable[..., None], attributes: dict[str, str]) -> None:
        self._record = record
        self._attributes = attributes

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        self._record(value, self._attributes, exemplar and exemplar.context)


class _Gauge:
    """The values of an observable gauge.

    Older SDKs (1.30) export a synchronous gauge only once after each ``set``. An observable one also keeps values that
    were set before the program has a provider.
    """

    def __init__(self) -> None:
        self._values: dict[tuple[tuple[str, str], ...], float] = {}

    def set(self, value: float, attributes: dict[str, str], _: Context | None = None) -> None:
        self._values[tuple(attributes.items())] = value

    def observe(self, _: CallbackOptions) -> list[Observation]:
        return [Observation(value, dict(attributes)) for attributes, value in self._values.copy().items()]


class OTelSink:
    """Instruments of ``meter``, created at first use."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._instruments: dict[str, Callable[..., None]] = {}

    def series(self, metric: Metric, values: tuple[str, ...]) -> Series:
        """Return the series with these label values; an empty value omits the attribute, as in the conventions."""
        record = self._instruments.get(metric.name)
        if record is None:
            record = self._instruments[metric.name] = self._make(metric)
        return _OTelSeries(record, {key: value for key, value in zip(metric.labels, values, strict=True) if value})

    def _make(self, metric: Metric) -> Callable[..., None]:
        arguments: dict[str, Any] = {"name": metric.name, "unit": metric.unit, "description": metric.meaning}
        if metric.kind == HISTOGRAM:
            return self._meter.create_histogram(
                **arguments, explicit_bucket_boundaries_advisory=list(metric.buckets)
            ).record
        if metric.kind == COUNTER:
            return self._meter.create_counter(**arguments).add
        gauge = _Gauge()
        self._meter.create_observable_gauge(callbacks=[gauge.observe], **arguments)
        return gauge.set
