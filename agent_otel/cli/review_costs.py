"""The costs of a period: the costliest workflows, money by tool and by model, and the savings of remedies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agent_otel import semconv
from agent_otel.semconv.types import prometheus_label

if TYPE_CHECKING:
    from agent_otel.cli.period import Period
    from agent_otel.semconv.types import Metric

_RUN: Final = (prometheus_label(semconv.WORKFLOW_NAME), prometheus_label(semconv.AGENT_NAME))
_TOOL: Final = prometheus_label(semconv.GEN_AI_TOOL_NAME)
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


@dataclass
class Costs:
    """The costs of a period; each list begins with what costs or saves most."""

    workflows: list[Costly] = field(default_factory=list)
    tools: list[Paid] = field(default_factory=list)
    models: list[Paid] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    savable: list[Saved] = field(default_factory=list)


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
