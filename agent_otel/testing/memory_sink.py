"""A metric sink that keeps each recorded value in memory, in order; labels and numbers only, no content."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent_otel.semconv.types import COUNTER
from agent_otel.telemetry.sinks.base import Series

if TYPE_CHECKING:
    from agent_otel.semconv.types import Metric
    from agent_otel.telemetry.sinks.base import Exemplar


class Reading(NamedTuple):
    """A recorded value with its metric and the values of the metric's labels; an absent label is empty."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


class _Kept(Series):
    """A series that appends to the readings of its sink."""

    __slots__ = ("_labels", "_metric", "_readings")

    def __init__(self, readings: list[Reading], metric: Metric, labels: tuple[str, ...]) -> None:
        self._readings = readings
        self._metric = metric
        self._labels = labels

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:  # noqa: ARG002 - of the interface
        if value or self._metric.kind != COUNTER:  # a counter is created at 0
            self._readings.append(Reading(self._metric, self._labels, value))


class MemorySink:
    """A sink with all readings of one recording."""

    def __init__(self) -> None:
        self.readings: list[Reading] = []

    def series(self, metric: Metric, values: tuple[str, ...]) -> Series:
        """Return the series with these label values."""
        return _Kept(self.readings, metric, values)

    def of(self, metric: Metric) -> list[Reading]:
        """Return the readings of a metric, in the order in which they were recorded."""
        return [reading for reading in self.readings if reading.metric is metric]
