"""Metrics of model requests: the use of the context window, bound once for each model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel import semconv

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_otel.telemetry.tool_metrics import Metrics


class ModelSeries:
    """All series of one model."""

    __slots__ = ("model", "near", "rejected", "utilization")

    def __init__(self, metrics: Metrics, model: str) -> None:
        self.model = model
        self.utilization = metrics.series(semconv.CONTEXT_UTILIZATION, (model,))
        self.near = metrics.series(semconv.CONTEXT_NEAR, (model,))
        self.rejected = metrics.series(semconv.CONTEXTS_REJECTED, (model,))
        for counter in (self.near, self.rejected):
            counter.record(0)

    def used(self, utilization: float, near_ratio: float) -> None:
        """Record the share of the context window that a request takes."""
        self.utilization.record(utilization)
        if utilization >= near_ratio:
            self.near.record(1)


class ModelMetrics:
    """The series of all models, by the names in requests."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._series: dict[str | None, ModelSeries] = {}

    def resent(self, tools: Mapping[str, int]) -> None:
        """Count the bytes of results, by tool, that a request holds again."""
        for tool, again_bytes in tools.items():
            name = self._metrics.limit(semconv.GEN_AI_TOOL_NAME, tool)
            self._metrics.series(semconv.RESULT_RESENT, (name,)).record(again_bytes)

    def series(self, model: str | None) -> ModelSeries:
        """Return the series of a model."""
        found = self._series.get(model)
        if found is None:
            name = self._metrics.limit(semconv.REQUEST_MODEL, model)
            found = ModelSeries(self._metrics, name)
            if name != semconv.OTHER:
                self._series[model] = found
        return found
