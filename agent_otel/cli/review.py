"""The review of a period from the metrics in a Prometheus: what grew, was cut, was repeated, and is near its cap."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv
from agent_otel.cli.period import Period
from agent_otel.cli.review_costs import Costs, costs
from agent_otel.semconv.types import prometheus_label

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_otel.cli.prometheus import Prometheus

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
