"""Rows about the context window and what the carrying of tool results costs; the dashboard of executions has them."""

from __future__ import annotations

from agent_otel import semconv
from agent_otel.alerts.rule_types import JOB
from agent_otel.semconv_types import prometheus_label
from dashboards.frame import Row
from dashboards.panels import BYTES_A_SECOND, SHARE, Line, events_of, graph_of
from dashboards.queries import TOOL, WINDOW, Scope, legend, top

S = Scope({JOB: "job"})

_MODEL = prometheus_label(semconv.REQUEST_MODEL)
_NEAR = ((None, "green"), (0.8, "orange"), (1, "red"))

CONTEXT = Row(
    "Context window",
    (
        graph_of(
            "Fullest request",
            "Tokens of the largest request ÷ the model's context window, by model. Above 80 %: see the span attributes "
            "agent_otel.context.*, which name the largest tool. Empty: no window is known; install "
            "agent-otel[prices] or set AGENT_OTEL_CONTEXT_WINDOWS.",
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
