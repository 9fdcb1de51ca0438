"""The review of a period from the metrics in a Prometheus: what grew, was cut, was repeated, and is near its cap."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv
from agent_otel.alerts import promql
from agent_otel.cli.console import printable
from agent_otel.semconv.types import prometheus_label

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_otel.cli.prometheus import Prometheus
    from agent_otel.semconv.types import Metric


_TOOL: Final = prometheus_label(semconv.GEN_AI_TOOL_NAME)
_WORKFLOW: Final = (prometheus_label(semconv.RUNTIME), prometheus_label(semconv.WORKFLOW_NAME), semconv.DIRECTION)
#: Growth of a tool's mean result from which it is listed, and the calls in each period that a mean needs.
_GROWN: Final = 1.2
_CALLS: Final = 5


@dataclass(frozen=True)
class Grown:
    """A tool whose mean result grew; sizes are bytes, those of the period and of the one before."""

    tool: str
    calls: int
    factor: float
    mean: int
    mean_before: int
    p95: int
    p95_before: int


@dataclass(frozen=True)
class Cut:
    """Truncated results of a tool by layer and reason; ``share`` is their part of the tool's calls."""

    tool: str
    layer: str
    reason: str
    results: int
    share: float


@dataclass(frozen=True)
class Repeating:
    """Calls of a tool with the arguments of an earlier call in the same execution."""

    tool: str
    repeats: int
    share: float


@dataclass(frozen=True)
class Incomplete:
    """Final answers that were given while the model had a part of a tool's result only."""

    tool: str
    reason: str
    answers: int


@dataclass(frozen=True)
class Nearest:
    """The fullest payload of a workflow, as the upper bound of its bucket; 1 is the cap."""

    runtime: str
    workflow: str
    direction: str
    utilization: float
    near: int
    over: int
    refused: int
    few_turns_left: int


@dataclass(frozen=True)
class Total:
    """A figure of the period and of the one before."""

    what: str
    now: int
    before: int


# The costs of a period: the costliest workflows, money by tool and by model, and the savings of remedies.


@dataclass
class Costs:
    """The costs of a period; each list begins with what costs or saves most."""

    workflows: list[Costly] = field(default_factory=list)
    tools: list[Paid] = field(default_factory=list)
    models: list[Paid] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    savable: list[Saved] = field(default_factory=list)


@dataclass
class Review:
    """All findings of a period of ``seconds`` that ends at ``until`` (epoch seconds)."""

    since: str
    seconds: float
    until: float
    totals: list[Total] = field(default_factory=list)
    grown: list[Grown] = field(default_factory=list)
    cut: list[Cut] = field(default_factory=list)
    incomplete: list[Incomplete] = field(default_factory=list)
    repeating: list[Repeating] = field(default_factory=list)
    nearest: list[Nearest] = field(default_factory=list)
    costs: Costs = field(default_factory=Costs)

    @property
    def is_empty(self) -> bool:
        """True when the server has no metric of this package in both periods."""
        return not any(total.now or total.before for total in self.totals)

    def as_json(self) -> dict[str, Any]:
        """Return the review as a dictionary for JSON."""
        return asdict(self)


#: Figures of the first table: words, metric, and the histogram's part that counts.
_TOTALS: Final = (
    ("tool calls", semconv.ARGS_SIZE, "count"),
    ("bytes of results", semconv.RESULT_SIZE, "sum"),
    ("truncated results", semconv.RESULTS_TRUNCATED, ""),
    ("answers on a part of a result", semconv.ANSWERS_INCOMPLETE, ""),
    ("repeated calls", semconv.TOOL_REPEATS, ""),
    ("requests without the history", semconv.HISTORY_LOST, ""),
    ("calls with refused arguments", semconv.INVALID_ARGUMENTS, ""),
    ("refused payloads", semconv.PAYLOADS_REJECTED, ""),
    ("failures of agent_otel itself", semconv.INTERNAL_ERRORS, ""),
)


def review(store: Prometheus, since: str, seconds: float, until: float, matchers: tuple[str, ...] = ()) -> Review:
    """Return the review of the period ``since`` (a duration such as ``1d``) until then, and of the one before."""
    now, before = Period(store, since, until, matchers), Period(store, since, until - seconds, matchers)
    found = Review(since, seconds, until)
    found.totals = [
        Total(words, round(now.total(metric, part)), round(before.total(metric, part)))
        for words, metric, part in _TOTALS
    ]
    calls = _by_tool(now.sums(semconv.ARGS_SIZE, _TOOL, part="count"))
    found.grown = _grown(now, before)
    found.cut = _cut(now, calls)
    found.incomplete = _incomplete(now)
    found.repeating = _repeating(now, calls)
    found.nearest = _nearest(now)
    found.costs = costs(now)
    return found


def _by_tool(sums: Mapping[tuple[str, ...], float]) -> dict[str, float]:
    return {tool: value for (tool,), value in sums.items()}


def _grown(now: Period, before: Period) -> list[Grown]:
    """Return tools with a larger mean result, those that grew most first."""
    sides = []
    for period in (now, before):
        size = semconv.RESULT_SIZE
        counts, bytes_ = (_by_tool(period.sums(size, _TOOL, part=part)) for part in ("count", "sum"))
        sides.append((counts, bytes_, _by_tool(period.quantile(0.95, size, _TOOL))))
    (counts, bytes_, p95), (counts_before, bytes_before, p95_before) = sides
    rows = []
    for tool, count in counts.items():
        if min(count, counts_before.get(tool, 0)) < _CALLS or tool not in bytes_before:
            continue
        mean, mean_before = bytes_.get(tool, 0) / count, bytes_before[tool] / counts_before[tool]
        if mean >= _GROWN * mean_before:
            quantiles = round(p95.get(tool, 0)), round(p95_before.get(tool, 0))
            rows.append(Grown(tool, round(count), mean / mean_before, round(mean), round(mean_before), *quantiles))
    return sorted(rows, key=lambda row: (-row.factor, row.tool))


def _cut(now: Period, calls: Mapping[str, float]) -> list[Cut]:
    sums = now.sums(semconv.RESULTS_TRUNCATED, _TOOL, semconv.LAYER, semconv.REASON)
    rows = [
        Cut(tool, layer, reason, round(value), _share(value, calls.get(tool)))
        for (tool, layer, reason), value in sums.items()
        if round(value)
    ]
    return sorted(rows, key=lambda row: (-row.results, row.tool, row.layer, row.reason))


def _incomplete(now: Period) -> list[Incomplete]:
    sums = now.sums(semconv.ANSWERS_INCOMPLETE, _TOOL, semconv.REASON)
    rows = [Incomplete(tool, reason, round(value)) for (tool, reason), value in sums.items() if round(value)]
    return sorted(rows, key=lambda row: (-row.answers, row.tool, row.reason))


def _repeating(now: Period, calls: Mapping[str, float]) -> list[Repeating]:
    repeats = _by_tool(now.sums(semconv.TOOL_REPEATS, _TOOL))
    rows = [
        Repeating(tool, round(value), _share(value, calls.get(tool))) for tool, value in repeats.items() if round(value)
    ]
    return sorted(rows, key=lambda row: (-row.repeats, row.tool))


def _nearest(now: Period) -> list[Nearest]:
    """Return the workflows with the fullest payloads first; those of which a payload was refused before all."""
    utilization = now.quantile(1, semconv.UTILIZATION, *_WORKFLOW)
    near, over, refused = (
        now.sums(metric, *_WORKFLOW)
        for metric in (semconv.PAYLOAD_NEAR_CAP, semconv.PAYLOAD_OVER_CAP, semconv.PAYLOADS_REJECTED)
    )
    few = now.sums(semconv.FEW_TURNS_LEFT, *_WORKFLOW[:2])
    rows = [
        Nearest(
            runtime=key[0],
            workflow=key[1],
            direction=key[2],
            utilization=utilization.get(key, 0.0),
            near=round(near.get(key, 0)),
            over=round(over.get(key, 0)),
            refused=round(refused.get(key, 0)),
            few_turns_left=round(few.get(key[:2], 0)),
        )
        for key in {*utilization, *refused}
    ]
    return sorted(rows, key=lambda row: (-row.refused, -row.utilization, row.runtime, row.workflow, row.direction))


def _share(part: float, whole: float | None) -> float:
    """Return a part of a whole, at most 1; 0 where the whole has not been scraped."""
    return min(1.0, part / whole) if whole else 0.0


_NEVER: Final = 0.0

# Sums of metrics over a period, from a Prometheus.


class Period:
    """Sums over a window that ends at a time."""

    def __init__(self, store: Prometheus, window: str, until: float, matchers: tuple[str, ...]) -> None:
        self._store = store
        self._window = window
        self._until = until
        self._matchers = matchers

    def total(self, metric: Metric, part: str) -> float:
        """Return the sum of all series of a metric."""
        return sum(self.sums(metric, part=part).values())

    def sums(self, metric: Metric, *labels: str, part: str = "") -> dict[tuple[str, ...], float]:
        """Return what a counter, or a part of a histogram, gained, by these labels; those above 0."""
        return self._values(promql.total(labels, self._gained(metric, part)), labels)

    def quantile(self, at: float, metric: Metric, *labels: str) -> dict[tuple[str, ...], float]:
        """Return a quantile of a histogram by these labels."""
        buckets = promql.total((*labels, promql.LE), self._gained(metric, "bucket"))
        return self._values(promql.quantile(at, buckets), labels)

    def _gained(self, metric: Metric, part: str) -> str:
        name = f"{metric.exposed_name}_{part}" if part else metric.exposed_name
        return promql.gained(promql.selector(name, self._matchers), self._window)

    def _values(self, expression: str, labels: tuple[str, ...]) -> dict[tuple[str, ...], float]:
        found = {}
        for own, value in self._store.query(expression, self._until):
            if value > _NEVER and math.isfinite(value):
                found[tuple(printable(own.get(label, "")) for label in labels)] = value
        return found


_RUN: Final = (prometheus_label(semconv.WORKFLOW_NAME), prometheus_label(semconv.AGENT_NAME))
_MODEL: Final = prometheus_label(semconv.REQUEST_MODEL)


@dataclass(frozen=True)
class Costly:
    """Finished executions of a workflow and agent: their money in US dollars and their tokens.

    ``cached`` is the part of the tokens that a provider's cache has served.
    """

    workflow: str
    agent: str
    executions: int
    dollars: float
    dollars_each: float
    tokens: int
    cached: float
    requests: int
    retries: int


@dataclass(frozen=True)
class Paid:
    """Input tokens of model requests, and their price in US dollars; ``name`` is a tool or a model.

    ``definition_tokens`` are those of the tool's definition, which are in no other column.
    """

    name: str
    dollars: float
    tokens: int
    definition_tokens: int = 0


@dataclass(frozen=True)
class Saved:
    """Tokens that requests lacked because of a remedy, or would have with one that is off, and their US dollars."""

    remedy: str
    dollars: float
    tokens: int


def costs(now: Period) -> Costs:
    """Return the costs of a period."""
    saved = _saved(now, semconv.CONTEXT_SAVED_COST, semconv.CONTEXT_SAVED_TOKENS)
    savable = _saved(now, semconv.CONTEXT_SAVABLE_COST, semconv.CONTEXT_SAVABLE_TOKENS)
    return Costs(_workflows(now), _tools(now), _models(now), saved, savable)


def _workflows(now: Period) -> list[Costly]:
    executions = now.sums(semconv.EXECUTION_TOKENS, *_RUN, part="count")
    dollars, tokens, cached, requests, retries = (
        now.sums(metric, *_RUN, part="sum")
        for metric in (
            semconv.EXECUTION_PRICE,
            semconv.EXECUTION_TOKENS,
            semconv.EXECUTION_CACHED,
            semconv.EXECUTION_MODEL_REQUESTS,
            semconv.EXECUTION_MODEL_RETRIES,
        )
    )
    rows = [
        Costly(
            workflow=key[0],
            agent=key[1],
            executions=round(count),
            dollars=dollars.get(key, 0.0),
            dollars_each=dollars.get(key, 0.0) / count,
            tokens=round(tokens.get(key, 0)),
            cached=min(1.0, cached.get(key, 0.0) / tokens[key]) if key in tokens else 0.0,
            requests=round(requests.get(key, 0)),
            retries=round(retries.get(key, 0)),
        )
        for key, count in executions.items()
    ]
    return sorted(rows, key=lambda row: (-row.dollars, -row.tokens, row.workflow, row.agent))


def _tools(now: Period) -> list[Paid]:
    dollars, tokens, definitions = (
        now.sums(metric, _TOOL)
        for metric in (semconv.CONTEXT_COST, semconv.CONTEXT_TOKENS_OF, semconv.DEFINITION_TOKENS)
    )
    rows = [
        Paid(name, dollars.get(key, 0.0), round(tokens.get(key, 0)), round(definitions.get(key, 0)))
        for key in {*tokens, *definitions}
        if (name := key[0])
    ]
    return _in_order(rows)


def _models(now: Period) -> list[Paid]:
    dollars, tokens = (now.sums(metric, _MODEL) for metric in (semconv.CONTEXT_COST, semconv.CONTEXT_TOKENS_OF))
    return _in_order([Paid(key[0], dollars.get(key, 0.0), round(value)) for key, value in tokens.items()])


def _in_order(rows: list[Paid]) -> list[Paid]:
    return sorted(rows, key=lambda row: (-row.dollars, -row.tokens - row.definition_tokens, row.name))


def _saved(now: Period, cost: Metric, count: Metric) -> list[Saved]:
    dollars, tokens = (now.sums(metric, semconv.STRATEGY) for metric in (cost, count))
    rows = [Saved(key[0], dollars.get(key, 0.0), round(value)) for key, value in tokens.items()]
    return sorted(rows, key=lambda row: (-row.dollars, -row.tokens, row.remedy))
