"""Metrics of model requests: the use of the context window, bound once for each model."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from agent_otel import semconv
from agent_otel._internal import fork
from agent_otel.telemetry.recording import recording
from agent_otel.telemetry.sinks.base import Group, grouped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_otel.semconv.types import Metric
    from agent_otel.telemetry.sinks.base import Series
    from agent_otel.telemetry.spans import Exemplar
    from agent_otel.telemetry.tool_metrics import Metrics


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

    __slots__ = ("costs", "model", "near", "rejected", "tokens", "utilization")

    def __init__(self, metrics: Metrics, model: str) -> None:
        self.model = model
        self.tokens = PartSeries(metrics, semconv.CONTEXT_TOKENS_OF, model)
        self.costs = PartSeries(metrics, semconv.CONTEXT_COST, model)
        self.utilization = metrics.series(semconv.CONTEXT_UTILIZATION, (model,))
        self.near = metrics.series(semconv.CONTEXT_NEAR, (model,))
        self.rejected = metrics.series(semconv.CONTEXTS_REJECTED, (model,))
        for counter in (self.near, self.rejected):
            counter.record(0)

    def used(self, utilization: float, near_ratio: float) -> None:
        """Record the share of the context window that a request takes."""
        with recording.held:
            self.utilization.add(utilization)
            if utilization >= near_ratio:
                self.near.add(1)


class PartSeries:
    """The series of one metric and model by part and tool; those of the last request stay bound."""

    __slots__ = ("_last", "_metric", "_metrics", "_model", "_series")

    def __init__(self, metrics: Metrics, metric: Metric, model: str) -> None:
        self._metrics = metrics
        self._metric = metric
        self._model = model
        self._series: dict[tuple[str, str], Series] = {}
        self._last: tuple[list[tuple[str, str]], Group] = [], Group(())

    def add(self, keys: list[tuple[str, str]], amounts: Sequence[float]) -> None:
        """Add the amounts of a request, by part and tool; the caller holds the ``recording`` lock."""
        before, group = self._last
        if keys != before:  # the next requests of a conversation have the same ones
            group.settle()
            group = grouped([self._series.get(key) or self._bind(key) for key in keys])
            self._last = keys, group
        group.add(amounts)

    def _bind(self, key: tuple[str, str]) -> Series:
        """Return the series of a part and tool, and keep it; not one of further tools."""
        part, tool = key
        name = self._metrics.limit(semconv.GEN_AI_TOOL_NAME, tool)
        found = self._metrics.series(self._metric, (name, self._model, part))
        if name != semconv.OTHER:
            self._series[key] = found
        return found


class RemedySeries:
    """The series of a remedy that is on, or that is off: tokens of requests, and their price."""

    __slots__ = ("_costs", "_is_on", "_metrics", "_names", "tokens")

    def __init__(self, metrics: Metrics, strategy: str, *, is_on: bool) -> None:
        self._metrics = metrics
        self._names = (strategy,)
        self._is_on = is_on
        self._costs: Series | None = None
        self.tokens = metrics.series(
            semconv.CONTEXT_SAVED_TOKENS if is_on else semconv.CONTEXT_SAVABLE_TOKENS, self._names
        )

    def pay(self, cost: float) -> None:
        """Count US dollars of these tokens; the caller holds the ``recording`` lock."""
        if self._costs is None:  # models without a price have no series
            metric = semconv.CONTEXT_SAVED_COST if self._is_on else semconv.CONTEXT_SAVABLE_COST
            self._costs = self._metrics.series(metric, self._names)
        self._costs.add(cost)


class ModelMetrics:
    """The series of all models, by the names in requests."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._series: dict[str | None, ModelSeries] = {}
        #: Of all models above the limit: each would keep its own until a scrape.
        self._others: ModelSeries | None = None
        self._resent: dict[str, Series] = {}
        self._cached: Series | None = None
        self._offered: dict[str, tuple[Series, Series, Series]] = {}
        #: By strategy, of remedies that are off and on.
        self._remedies: tuple[dict[str, RemedySeries], dict[str, RemedySeries]] = {}, {}

    def resent(self, tools: Mapping[str, int]) -> None:
        """Count the bytes of results, by tool, that a request holds again."""
        with recording.held:
            for tool, again_bytes in tools.items():
                (self._resent.get(tool) or self._bind_resent(tool)).add(again_bytes)

    @property
    def cached(self) -> Series:
        """The tokens that providers report as cached."""
        if self._cached is None:
            self._cached = self._metrics.series(semconv.CACHED_TOKENS, ())
        return self._cached

    def remedy(self, strategy: str, *, is_on: bool) -> RemedySeries:
        """Return the series of a remedy: of what requests lack with it, or would lack if it were on."""
        remedies = self._remedies[is_on]
        found = remedies.get(strategy)
        if found is None:
            found = remedies[strategy] = RemedySeries(self._metrics, strategy, is_on=is_on)
        return found

    def prefix_changed(self, part: str) -> None:
        """Count a request whose beginning is not that of the request before, by the first part that changed."""
        self._metrics.series(semconv.PREFIX_CHANGES, (part,)).record(1)

    def offered(self, requests: int, sizes: Mapping[str, int], tokens: Sequence[int]) -> None:
        """Count requests with these tools; ``sizes`` are bytes of one request, ``tokens`` those of all requests."""
        bound = [self._offered.get(tool) or self._bind_offered(tool) for tool in sizes]
        with recording.held:
            for (offers, sent, counted), definition_bytes, count in zip(bound, sizes.values(), tokens, strict=True):
                offers.add(requests)
                sent.add(requests * definition_bytes)
                counted.add(count)

    def _bind_offered(self, tool: str) -> tuple[Series, Series, Series]:
        name = self._metrics.limit(semconv.GEN_AI_TOOL_NAME, tool)
        of_tool = semconv.TOOL_OFFERED, semconv.DEFINITION_SENT, semconv.DEFINITION_TOKENS
        offers, sent, counted = (self._metrics.series(metric, (name,)) for metric in of_tool)
        if name != semconv.OTHER:
            self._offered[tool] = offers, sent, counted
        return offers, sent, counted

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
            costliest.add(row._replace(dollars=cost), row)

        tokens.when_priced(paid)

    def _bind_resent(self, tool: str) -> Series:
        name = self._metrics.limit(semconv.GEN_AI_TOOL_NAME, tool)
        found = self._metrics.series(semconv.RESULT_RESENT, (name,))
        if name != semconv.OTHER:
            self._resent[tool] = found
        return found

    def series(self, model: str | None) -> ModelSeries:
        """Return the series of a model."""
        found = self._series.get(model)
        if found is None:
            name = self._metrics.limit(semconv.REQUEST_MODEL, model)
            if name == semconv.OTHER:
                found = self._others = self._others or ModelSeries(self._metrics, name)
            else:
                found = self._series[model] = ModelSeries(self._metrics, name)
        return found


_MOST: Final = 10

# The executions of this process that cost most, for its status file: a metric has no ids.


class Ended(NamedTuple):
    """A finished execution: its id, and its trace where one is recorded."""

    id: str
    exemplar: Exemplar | None = None


class Costly(NamedTuple):
    """Tokens and model requests of an execution, and US dollars where its model has a price."""

    execution: str
    trace: str
    workflow: str
    agent: str
    dollars: float | None
    tokens: int
    requests: int


class Costliest:
    """The ten executions that cost most; of those without a price, the ones with most tokens."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all, for a forked child, which has executions of its own."""
        self._lock = threading.Lock()
        self._rows: list[Costly] = []

    def add(self, row: Costly, before: Costly | None = None) -> None:
        """Add an execution; in the place of what was ``before`` its price."""
        with self._lock:
            others = [other for other in self._rows if other is not before]
            self._rows = sorted([*others, row], key=lambda one: (-(one.dollars or 0.0), -one.tokens))[:_MOST]

    def rows(self) -> list[dict[str, Any]]:
        """Return the executions as plain data, the costliest first."""
        return [row._asdict() for row in self._rows]


costliest = Costliest()
fork.after_fork(costliest.reset)
