"""Rows about the context window and what the carrying of tool results costs; the dashboard of executions has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel.alerts.rule_types import JOB
from agent_otel.semconv_types import prometheus_label
from dashboards.frame import Row
from dashboards.links import to_alert
from dashboards.panels import BYTES_A_SECOND, SHARE, TOKENS, Line, events_of, graph_of
from dashboards.queries import RUN, TOOL, WINDOW, Scope, drawn, legend, top

if TYPE_CHECKING:
    from agent_otel.semconv_types import Metric

S = Scope({JOB: "job"})

_MODEL = prometheus_label(semconv.REQUEST_MODEL)
MONEY = "currencyUSD"
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
            span=8,
        ),
        events_of(
            "Requests near or above the window",
            "Requests near their model's context window, and those that a provider refused because they are longer. "
            "A refused request ends the run, unless the framework shortens the history and asks again.",
            [
                Line(top(S.events(semconv.CONTEXT_NEAR, by=(_MODEL,))), f"near {legend(_MODEL)}"),
                Line(top(S.events(semconv.CONTEXTS_REJECTED, by=(_MODEL,))), f"rejected {legend(_MODEL)}"),
            ],
            span=8,
            states=("near", "rejected"),
            links=(to_alert("AgentContextNearLimit"), to_alert("AgentContextRejected")),
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
            span=8,
        ),
    ),
)


def _p95(metric: Metric) -> str:
    return S.quantile(0.95, metric, by=RUN, over=WINDOW)


def _by(metric: Metric, *labels: str, matchers: tuple[str, ...] = ()) -> str:
    return top(S.sum(metric, by=labels, over=WINDOW, matchers=matchers))


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
            [Line(drawn(top(_p95(semconv.EXECUTION_TOKENS))), legend(*RUN))],
            TOKENS,
        ),
        graph_of(
            "Money of an execution, p95",
            "5 % of the executions cost more than this, by workflow and agent. Their traces have "
            "agent_otel.execution.cost on the outermost span.",
            [Line(drawn(top(_p95(semconv.EXECUTION_PRICE))), legend(*RUN))],
            MONEY,
        ),
    ),
)
