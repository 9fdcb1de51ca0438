"""Metrics of model requests: the use of the context window, bound once for each model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from agent_otel import semconv
from agent_otel.telemetry.costliest import Costly, costliest
from agent_otel.telemetry.sinks.base import recording

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_otel.semconv.types import Metric
    from agent_otel.telemetry.costliest import Ended
    from agent_otel.telemetry.sinks.base import Series
    from agent_otel.telemetry.tool_metrics import Metrics

    #: The series of one metric and model by part and tool.
    _Parts = dict[tuple[str, str], Series]


class Tokens(Protocol):
    """The tokens of an execution, and their price."""

    requests: int
    input: int
    output: int
    cached: int

    def when_priced(self, use: Callable[[float], None]) -> None:
        """Call ``use`` with the price in US dollars, as soon as it is known; not without any price."""


class Totals(Protocol):
    """Totals of an execution; the tokens are None where no provider has reported any."""

    model_retries: int

    @property
    def tokens(self) -> Tokens | None:
        """The tokens of the model requests."""


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
        self._resent: dict[str, Series] = {}
        #: By metric and model.
        self._parts: dict[tuple[str, str | None], _Parts] = {}

    def resent(self, tools: Mapping[str, int]) -> None:
        """Count the bytes of results, by tool, that a request holds again."""
        with recording.held:
            for tool, again_bytes in tools.items():
                (self._resent.get(tool) or self._bind_resent(tool)).add(again_bytes)

    def tokens(self, model: str | None, shares: Mapping[tuple[str, str], int]) -> None:
        """Count the tokens of a request by part and tool."""
        self._by_part(semconv.CONTEXT_TOKENS_OF, model, shares)

    def costs(self, model: str | None, costs: Mapping[tuple[str, str], float]) -> None:
        """Count the US dollars of a request by part and tool."""
        self._by_part(semconv.CONTEXT_COST, model, costs)

    def _by_part(self, metric: Metric, model: str | None, amounts: Mapping[tuple[str, str], float]) -> None:
        series = self._parts.get((metric.name, model))
        if series is None:
            series = self._parts[metric.name, model] = {}
        with recording.held:
            for key, amount in amounts.items():
                if amount:
                    (series.get(key) or self._bind(series, metric, model, key)).add(amount)

    def remedied(self, tokens: Mapping[str, int], *, is_on: bool) -> None:
        """Count the tokens by remedy that a request lacks, or would lack with a remedy that is off."""
        self._by_strategy(semconv.CONTEXT_SAVED_TOKENS if is_on else semconv.CONTEXT_SAVABLE_TOKENS, tokens)

    def remedied_cost(self, costs: Mapping[str, float], *, is_on: bool) -> None:
        """Count the US dollars of these tokens."""
        self._by_strategy(semconv.CONTEXT_SAVED_COST if is_on else semconv.CONTEXT_SAVABLE_COST, costs)

    def _by_strategy(self, metric: Metric, amounts: Mapping[str, float]) -> None:
        for strategy, amount in amounts.items():
            self._metrics.series(metric, (strategy,)).record(amount)

    def prefix_changed(self, part: str) -> None:
        """Count a request whose beginning is not that of the request before, by the first part that changed."""
        self._metrics.series(semconv.PREFIX_CHANGES, (part,)).record(1)

    def offered(self, requests: int, sizes: Mapping[str, int], tokens: Mapping[str, int]) -> None:
        """Count requests with these tools; ``sizes`` are bytes of one request, ``tokens`` those of all requests."""
        for tool, definition_bytes in sizes.items():
            names = (self._metrics.limit(semconv.GEN_AI_TOOL_NAME, tool),)
            self._metrics.series(semconv.TOOL_OFFERED, names).record(requests)
            self._metrics.series(semconv.DEFINITION_SENT, names).record(requests * definition_bytes)
            self._metrics.series(semconv.DEFINITION_TOKENS, names).record(tokens[tool])

    def execution(self, ended: Ended, workflow: str | None, agent: str | None, totals: Totals) -> None:
        """Record the model requests of a finished execution, their tokens and their price."""
        tokens = totals.tokens
        if tokens is None:
            return
        limit, series = self._metrics.limit, self._metrics.series
        names = (limit(semconv.WORKFLOW_NAME, workflow), limit(semconv.AGENT_NAME, agent))
        series(semconv.EXECUTION_MODEL_REQUESTS, names).record(tokens.requests)
        series(semconv.EXECUTION_MODEL_RETRIES, names).record(totals.model_retries)
        count = tokens.input + tokens.output
        series(semconv.EXECUTION_TOKENS, names).record(count, ended.exemplar)
        series(semconv.EXECUTION_CACHED, names).record(tokens.cached)
        trace = "" if ended.exemplar is None else ended.exemplar.labels["trace_id"]
        row = Costly(ended.id, trace, workflow or "", agent or "", None, count, tokens.requests)
        costliest.add(row)

        def paid(cost: float) -> None:
            series(semconv.EXECUTION_PRICE, names).record(cost, ended.exemplar)
            costliest.add(replace(row, dollars=cost), row)

        tokens.when_priced(paid)

    def _bind_resent(self, tool: str) -> Series:
        name = self._metrics.limit(semconv.GEN_AI_TOOL_NAME, tool)
        found = self._metrics.series(semconv.RESULT_RESENT, (name,))
        if name != semconv.OTHER:
            self._resent[tool] = found
        return found

    def _bind(self, series: _Parts, metric: Metric, model: str | None, key: tuple[str, str]) -> Series:
        """Return the series of a part and tool, and keep it; not one of further names."""
        part, tool = key
        limit = self._metrics.limit
        names = (limit(semconv.GEN_AI_TOOL_NAME, tool), limit(semconv.REQUEST_MODEL, model), part)
        found = self._metrics.series(metric, names)
        if semconv.OTHER not in names[:2]:
            series[key] = found
        return found

    def series(self, model: str | None) -> ModelSeries:
        """Return the series of a model."""
        found = self._series.get(model)
        if found is None:
            name = self._metrics.limit(semconv.REQUEST_MODEL, model)
            found = ModelSeries(self._metrics, name)
            if name != semconv.OTHER:
                self._series[model] = found
        return found
