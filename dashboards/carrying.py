"""Rows about the context window and what the carrying of tool results costs; the dashboard of executions has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel.alerts.promql import JOB, share_or_none
from agent_otel.semconv.types import prometheus_label
from dashboards import links
from dashboards.frame import Row
from dashboards.links import to_alert
from dashboards.panels import BYTES, BYTES_A_SECOND, COUNT, MONEY, SECONDS, SHARE, TOKENS, Line, events_of, graph_of
from dashboards.queries import AGENT, RUN, TOOL, WINDOW, WORKFLOW, Scope, drawn, legend, mean, top
from dashboards.tables import Column, table_of, traces_of

if TYPE_CHECKING:
    from agent_otel.semconv.types import Metric

S = Scope({JOB: "job"})

_CHANGE = (semconv.PART, semconv.CHANGE)
_MODEL = prometheus_label(semconv.REQUEST_MODEL)
_ERROR = prometheus_label(semconv.ERROR_TYPE)
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
            "Results sent again",
            "Bytes of tool results that models were sent after the first time, by tool. Each later request of a "
            "conversation carries all earlier results: the tool on top costs most. Trim its old results "
            "(AGENT_OTEL_TRIM_RESULTS), or return less.",
            [
                Line(
                    top(S.sum(semconv.RESULT_RESENT, by=(TOOL,), over=WINDOW, function="rate")),
                    legend(TOOL),
                )
            ],
            BYTES_A_SECOND,
            span=6,
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
        graph_of(
            "Tokens by tool, in $window",
            "Input tokens that a tool's results and arguments take in model requests. Far above its own results: old "
            "results are sent again in each turn; trim them (AGENT_OTEL_TRIM_RESULTS).",
            [Line(_by(semconv.CONTEXT_TOKENS_OF, TOOL, matchers=_OF_TOOLS), legend(TOOL))],
            TOKENS,
            span=8,
        ),
        graph_of(
            "Money by model and part, in $window",
            "US dollars of input tokens by model and part of the request. tools on top: each request offers too many.",
            [Line(_by(semconv.CONTEXT_COST, _MODEL, semconv.PART), legend(_MODEL, semconv.PART))],
            MONEY,
            span=8,
        ),
        graph_of(
            "Tokens of an execution, p95",
            "5 % of the executions take more tokens than this, by workflow and agent. A rise without more tool calls: "
            "the results became larger, or the history is trimmed no more.",
            [Line(drawn(top(_p95(semconv.EXECUTION_TOKENS))), legend(*RUN), exemplars=True)],
            TOKENS,
        ),
        graph_of(
            "Money of an execution, p95",
            "5 % of the executions cost more than this, by workflow and agent. Their traces have "
            "agent_otel.execution.cost on the outermost span.",
            [Line(drawn(top(_p95(semconv.EXECUTION_PRICE))), legend(*RUN), exemplars=True)],
            MONEY,
        ),
        graph_of(
            "Money by workflow, in $window",
            "US dollars of the model requests of finished executions, by workflow and agent. A rise without more "
            "executions: look at their tokens and requests in the table below.",
            [Line(top(S.sum(semconv.EXECUTION_PRICE, "_sum", by=RUN, over=WINDOW)), legend(*RUN))],
            MONEY,
        ),
        events_of(
            "Broken beginnings of requests",
            "Requests that continue the one before and begin otherwise, by the first part that changed: no prompt "
            "cache serves what follows it. system: a time or an id in the prompt; tools: `order`, `added`, `removed`; "
            "tool_results: old results are shortened one by one. The span around the request has "
            f"{semconv.CONTEXT_CHANGED_TOOL}.",
            [Line(top(S.events(semconv.PREFIX_CHANGES, by=_CHANGE)), legend(*_CHANGE))],
        ),
        graph_of(
            "Cache misses, in $window",
            "US dollars that tokens cost because a request began otherwise than the one before, by the part that "
            "changed and how. Empty: nothing changed, or no model has a price (AGENT_OTEL_MODEL_PRICES).",
            [Line(top(S.sum(semconv.MISSED_COST, by=_CHANGE, over=WINDOW)), legend(*_CHANGE))],
            MONEY,
        ),
        graph_of(
            "Saved by remedies, in $window",
            "Input tokens that model requests would have had in addition: what a remedy removed counts in each request "
            "that lacks it. Empty: no remedy is on, or none had anything to remove.",
            [Line(_by(semconv.CONTEXT_SAVED_TOKENS, semconv.STRATEGY), legend(semconv.STRATEGY))],
            TOKENS,
            span=6,
        ),
        graph_of(
            "Money saved by remedies, in $window",
            "US dollars of these tokens. Less than the price of a remedy's own model requests, which summaries make: "
            "raise AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS. Empty: no model has a price.",
            [Line(_by(semconv.CONTEXT_SAVED_COST, semconv.STRATEGY), legend(semconv.STRATEGY))],
            MONEY,
            span=6,
        ),
        graph_of(
            "Savable by remedies that are off, in $window",
            "Input tokens that model requests would not have had with one more remedy, estimated from the bytes of "
            "their parts, each remedy by itself. claim_check: AGENT_OTEL_CLAIM_CHECK; trim: AGENT_OTEL_TRIM_RESULTS; "
            "compact: AGENT_OTEL_COMPACT_ARGUMENTS.",
            [Line(_by(semconv.CONTEXT_SAVABLE_TOKENS, semconv.STRATEGY), legend(semconv.STRATEGY))],
            TOKENS,
            span=6,
        ),
        graph_of(
            "Money savable by remedies that are off",
            "US dollars of these tokens in $window. A change of old messages costs cached tokens, which is not taken "
            "off. Empty: no model has a price.",
            [Line(_by(semconv.CONTEXT_SAVABLE_COST, semconv.STRATEGY), legend(semconv.STRATEGY))],
            MONEY,
            span=6,
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
        traces_of(
            "Executions with a price",
            "Spans of the latest executions whose model requests have a price, from the data source chosen as Tempo; "
            "empty without one. A click on a column's title puts the costliest on top.",
            f"{{ span.{semconv.EXECUTION_COST} > 0 }} | select(span.{semconv.WORKFLOW_NAME}, "
            f"span.{semconv.AGENT_NAME}, span.{semconv.EXECUTION_COST}, span.{semconv.EXECUTION_INPUT_TOKENS}, "
            f"span.{semconv.EXECUTION_CACHED_TOKENS}, span.{semconv.EXECUTION_REQUESTS}, "
            f"span.{semconv.EXECUTION_CALLS}, span.{semconv.EXECUTION_RETRIES})",
        ),
    ),
)
