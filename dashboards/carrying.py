"""Rows about the context window and what the carrying of tool results costs; the dashboard of executions has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel.alerts.promql import JOB, share_or_none
from agent_otel.semconv.types import prometheus_label
from dashboards import links
from dashboards.frame import Row
from dashboards.links import to_alert
from dashboards.panels import BYTES, COUNT, MONEY, SECONDS, SHARE, TOKENS, Line, events_of, graph_of
from dashboards.queries import AGENT, RUN, TOOL, WINDOW, WORKFLOW, Scope, drawn, legend, mean, top
from dashboards.tables import Column, table_of

if TYPE_CHECKING:
    from agent_otel.semconv.types import Metric

S = Scope({JOB: "job"})

_CHANGE = (semconv.PART, semconv.CHANGE)
_MODEL = prometheus_label(semconv.REQUEST_MODEL)
_ERROR = prometheus_label(semconv.ERROR_TYPE)
_FAILED_BY = (_MODEL, prometheus_label(semconv.PROVIDER_NAME), _ERROR)
#: Parts of requests that belong to a tool.
_OF_TOOLS = (f'{TOOL}!=""',)
_NEAR = ((None, "green"), (0.8, "orange"), (1, "red"))

CONTEXT = Row(
    "Context window",
    (
        graph_of(
            "Fullest request",
            "Tokens of the largest request ÷ the model's context window, by model. Above 80 %: see the span attributes "
            "agent_otel.context.*, which name the largest tool. Empty: no window is known; set "
            "AGENT_OTEL_CONTEXT_WINDOWS, or AGENT_OTEL_MODEL_PRICES with genai-prices.",
            [Line(top(S.quantile(1, semconv.CONTEXT_UTILIZATION, by=(_MODEL,), over=WINDOW)), legend(_MODEL))],
            SHARE,
            steps=_NEAR,
            span=6,
        ),
        events_of(
            "Requests near or above the window",
            "Requests near their model's context window, and those that a provider refused because they are longer. "
            "A refused request ends the run, unless the framework shortens the history and asks again.",
            [
                Line(top(S.events(semconv.CONTEXT_NEAR, by=(_MODEL,))), f"near {legend(_MODEL)}"),
                Line(
                    top(S.events(semconv.REQUESTS_REJECTED, by=(_MODEL, semconv.REASON))),
                    f"refused {legend(semconv.REASON)} {legend(_MODEL)}",
                ),
            ],
            span=6,
            states=("near", "rejected"),
            links=(to_alert("AgentContextNearLimit"), to_alert("AgentRequestRejected")),
        ),
        graph_of(
            "Model requests, p95",
            "Seconds that a model request takes, to the end of its stream, by model and kind of error. Empty: another "
            "instrumentation in the process records the durations.",
            [
                Line(
                    top(S.quantile(0.95, semconv.MODEL_DURATION, by=(_MODEL, _ERROR), over=WINDOW)),
                    f"{legend(_MODEL)} {legend(_ERROR)}",
                )
            ],
            SECONDS,
            span=6,
        ),
        events_of(
            "Model requests that failed",
            "Model requests that ended in an error, by model, provider and kind. One model: its provider has a fault. "
            "All: the network or a key.",
            [
                Line(
                    top(S.events(semconv.MODEL_DURATION, "_count", by=_FAILED_BY, matchers=(f'{_ERROR}!=""',))),
                    legend(*_FAILED_BY),
                    state="error",
                )
            ],
        ),
    ),
)


def _p95(metric: Metric) -> str:
    return S.quantile(0.95, metric, by=RUN, over=WINDOW)


def _by(metric: Metric, *labels: str, matchers: tuple[str, ...] = ()) -> str:
    return top(S.sum(metric, by=labels, over=WINDOW, matchers=matchers))


def _sum_of(metric: Metric) -> str:
    return S.sum(metric, "_sum", by=RUN)


def _mean_of(metric: Metric) -> str:
    return mean(_sum_of(metric), S.sum(metric, "_count", by=RUN))


#: A tool without a call has 0.
_CALLS_OF_OFFERED = (
    f"({S.sum(semconv.ARGS_SIZE, '_count', by=(TOOL,))} or {S.sum(semconv.TOOL_OFFERED, by=(TOOL,))} * 0) "
    f"and on ({TOOL}) {S.sum(semconv.TOOL_OFFERED, by=(TOOL,))}"
)

CARRYING = Row(
    "Cost of carrying",
    (
        graph_of(
            "Money by tool, in $window",
            "US dollars of the input tokens that a tool's results and arguments take in model requests, each time that "
            "they are sent. Empty: no model has a price; set AGENT_OTEL_MODEL_PRICES.",
            [Line(_by(semconv.CONTEXT_COST, TOOL, matchers=_OF_TOOLS), legend(TOOL))],
            MONEY,
            span=8,
        ),
        events_of(
            "Broken beginnings of requests",
            "Requests that continue the one before and begin otherwise, by the first part that changed: no prompt "
            "cache serves what follows it. system: a time or an id in the prompt; tools: `order`, `added`, `removed`; "
            "tool_results: old results are shortened one by one. The span around the request has "
            f"{semconv.CONTEXT_CHANGED_TOOL}.",
            [Line(top(S.events(semconv.PREFIX_CHANGES, by=_CHANGE)), legend(*_CHANGE))],
        ),
        table_of(
            "Costliest workflows",
            "Money and tokens of finished executions by workflow and agent. A small cached share with many requests: "
            "the beginning of the requests changes. Empty money: no model has a price.",
            {WORKFLOW: "Workflow", AGENT: "Agent"},
            [
                Column("Executions", S.sum(semconv.EXECUTION_TOKENS, "_count", by=RUN), COUNT),
                Column("Money", S.sum(semconv.EXECUTION_PRICE, "_sum", by=RUN), MONEY),
                Column("Money each", _mean_of(semconv.EXECUTION_PRICE), MONEY),
                Column("Money, max", drawn(S.quantile(1, semconv.EXECUTION_PRICE, by=RUN)), MONEY),
                Column("Tokens", S.sum(semconv.EXECUTION_TOKENS, "_sum", by=RUN), TOKENS),
                Column("Tokens each", _mean_of(semconv.EXECUTION_TOKENS), TOKENS),
                Column(
                    "Cached", share_or_none(_sum_of(semconv.EXECUTION_CACHED), _sum_of(semconv.EXECUTION_TOKENS)), SHARE
                ),
                Column("Requests each", _mean_of(semconv.EXECUTION_MODEL_REQUESTS), COUNT),
                Column("Retries", _sum_of(semconv.EXECUTION_MODEL_RETRIES), COUNT),
            ],
            ("Money", "Tokens"),
            links={
                "Workflow": links.of_workflow(links.cell("Workflow")),
                "Agent": links.of_agent(links.cell("Agent")),
            },
        ),
        table_of(
            "Tools offered",
            "Tools in model requests: what their definitions take, and their calls. Many requests and no call: offer "
            "the tool only where it is used, or take it out.",
            {TOOL: "Tool"},
            [
                Column("Tokens", S.sum(semconv.DEFINITION_TOKENS, by=(TOOL,)), TOKENS),
                Column("Requests", S.sum(semconv.TOOL_OFFERED, by=(TOOL,)), COUNT),
                Column(
                    "Bytes each",
                    mean(S.sum(semconv.DEFINITION_SENT, by=(TOOL,)), S.sum(semconv.TOOL_OFFERED, by=(TOOL,))),
                    BYTES,
                ),
                Column("Calls", _CALLS_OF_OFFERED, COUNT),
            ],
            ("Tokens",),
            links={"Tool": links.of_tool(links.cell("Tool"))},
        ),
    ),
)
