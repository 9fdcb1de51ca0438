"""Agent executions: the cost of a run, the parts of its requests, and its limits and remedies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grafana_foundation_sdk.models.common import StackingMode

from agent_otel import semconv
from agent_otel.alerts.promql import JOB
from dashboards import carrying, links
from dashboards.frame import Frame, Row, glance
from dashboards.links import to_alert
from dashboards.panels import (
    BYTES,
    COUNT,
    NONE_IS_GOOD,
    SECONDS,
    SHARE,
    Line,
    events_of,
    graph_of,
    stat_of,
)
from dashboards.queries import (
    AGENT,
    RUN,
    WINDOW,
    WORKFLOW,
    Scope,
    drawn,
    highest,
    legend,
    mean,
    most_often,
    named,
    or_zero,
    top,
)
from dashboards.tables import Column, table_of

if TYPE_CHECKING:
    from agent_otel.semconv.types import Metric

S = Scope({JOB: "job", WORKFLOW: "workflow", AGENT: "agent"})

_PREFIX = ((None, "red"), (0.5, "orange"), (0.9, "green"))
_FAILED = (f'{semconv.RESULT}!="ok"',)
_GETS = (f'{semconv.OPERATION}="get"',)


_LINKS = (
    links.to_dashboard(
        links.EXECUTIONS, "These executions alone", workflow=links.field(WORKFLOW), agent=links.field(AGENT)
    ),
    links.to_dashboard(links.PAYLOAD, "Payloads of this workflow", workflow=links.field(WORKFLOW)),
)
_OF_AGENT = links.of_agent(links.field(AGENT))


def _worst_agent(metric: Metric) -> str:
    return named(most_often(S.sum(metric, by=(AGENT,)), AGENT), AGENT)


def _mean_of(metric: Metric, *by: str) -> str:
    return mean(S.sum(metric, "_sum", by=by), S.sum(metric, "_count", by=by))


_GLANCE = glance(
    stat_of(
        "Executions",
        "Executions that ended in the time range. None while agents run: the framework does not mark the end of an "
        "execution; name it with agent_otel.execution(...).",
        or_zero(S.sum(semconv.EXECUTION_TOOL_CALLS, "_count")),
        COUNT,
    ),
    stat_of(
        "Tool calls, p95",
        "The workflow and agent with the longest executions: 5 % of them make more tool calls than this. Far above the "
        "median: some executions loop.",
        highest(drawn(S.quantile(0.95, semconv.EXECUTION_TOOL_CALLS, by=RUN))),
        COUNT,
        who=legend(*RUN),
        links=_LINKS,
    ),
    stat_of(
        "Lost histories",
        "The agent with the most requests after the first turn without any earlier message: the model does not see the "
        "conversation. Check the checkpointer, the session ids and the history window.",
        _worst_agent(semconv.HISTORY_LOST),
        COUNT,
        NONE_IS_GOOD,
        who=legend(AGENT),
        alerts=("AgentHistoryLost",),
        links=_OF_AGENT,
    ),
    stat_of(
        "Stable prefix",
        "Mean share of a request that equals the beginning of the previous one. Providers cache only that part. Low: "
        "the top of the prompt changes each time, such as a date or the order of tools. None: no request holds an "
        "earlier turn; the agent has no memory.",
        _mean_of(semconv.REQUEST_STABLE),
        SHARE,
        _PREFIX,
    ),
)

_RUNS = Row(
    "Executions by workflow and agent",
    (
        table_of(
            "Executions by workflow and agent",
            "All numbers of a workflow and agent in the time range. Many bytes with few calls: large results; few "
            "bytes with many calls: searches without matches.",
            {WORKFLOW: "Workflow", AGENT: "Agent"},
            [
                Column("Executions", S.sum(semconv.EXECUTION_TOOL_CALLS, "_count", by=RUN), COUNT),
                Column("Calls each", _mean_of(semconv.EXECUTION_TOOL_CALLS, *RUN), COUNT),
                Column("Calls, p95", drawn(S.quantile(0.95, semconv.EXECUTION_TOOL_CALLS, by=RUN)), COUNT),
                Column("Bytes each", _mean_of(semconv.EXECUTION_RESULT_SIZE, *RUN), BYTES),
                Column("Bytes, p95", drawn(S.quantile(0.95, semconv.EXECUTION_RESULT_SIZE, by=RUN)), BYTES),
                Column("Payload, p95", drawn(S.quantile(0.95, semconv.EXECUTION_PAYLOAD_SIZE, by=RUN)), BYTES),
            ],
            ("Bytes each",),
            links={
                "Workflow": links.of_workflow(links.cell("Workflow")),
                "Agent": links.of_agent(links.cell("Agent")),
            },
        ),
    ),
    open=True,
)

_COST = Row(
    "Cost of an execution",
    (
        graph_of(
            "Tool calls of an execution",
            "Tool calls of a whole run. A p95 far above p50: some runs do not end by themselves; set a limit.",
            [
                Line(S.quantile(at, semconv.EXECUTION_TOOL_CALLS, over=WINDOW), name)
                for at, name in ((0.5, "p50"), (0.95, "p95"), (1, "most"))
            ],
            COUNT,
        ),
        graph_of(
            "Tool results of an execution",
            "Bytes that the tools of a whole run produced. Twice the bytes cost more than twice: each request "
            "carries all earlier results.",
            [
                Line(S.quantile(at, semconv.EXECUTION_RESULT_SIZE, over=WINDOW), name)
                for at, name in ((0.5, "p50"), (0.95, "p95"), (1, "most"))
            ],
            BYTES,
            logarithmic=True,
        ),
    ),
)

_PART = (semconv.PART,)
_REQUEST = Row(
    "Model requests",
    (
        graph_of(
            "Parts of a request",
            "Mean text bytes of a request by part. tool_results largest: the conversation carries tool results; "
            "tools largest: every request offers too many tools.",
            [
                Line(
                    mean(
                        S.sum(semconv.REQUEST_SIZE, "_sum", by=_PART, over=WINDOW, function="rate"),
                        S.sum(semconv.REQUEST_SIZE, "_count", by=_PART, over=WINDOW, function="rate"),
                    ),
                    legend(semconv.PART),
                )
            ],
            BYTES,
            stacked=StackingMode.NORMAL,
        ),
        events_of(
            "Lost and doubled histories",
            "Requests without the earlier turns, and requests that hold a message or result twice, by agent. Both "
            "are faults of the code that stores the conversation.",
            [
                Line(top(S.events(semconv.HISTORY_LOST, by=(AGENT,))), f"lost {legend(AGENT)}"),
                Line(top(S.events(semconv.HISTORY_DOUBLED, by=(AGENT,))), f"doubled {legend(AGENT)}"),
            ],
            span=8,
        ),
    ),
)

_REMEDIES = Row(
    "Limits and remedies",
    (
        events_of(
            "Calls skipped, by limit",
            "Calls that did not run because their execution had reached a limit. Bars that go on: the agent ignores "
            "the limit's error; stop the execution.",
            [
                Line(S.events(semconv.LIMITS_HIT, by=(semconv.LIMIT,)), legend(semconv.LIMIT)),
                Line(S.events(semconv.POLICY_DENIED, by=(semconv.RULE,)), f"denied {legend(semconv.RULE)}"),
            ],
            links=(to_alert("AgentLimitHit"), to_alert("AgentToolCallDenied")),
            span=12,
        ),
        graph_of(
            "Wait before dispatch, p95",
            "Seconds for which tool calls and model requests waited, by reason; those that did not are not in it. A "
            "long wait for `parallel`: the maximum of parallel calls is too low, or a tool hangs. For `tokens`: the "
            "budget of the minute is used up. For `rate_limit`: a provider has refused requests.",
            [
                Line(
                    S.quantile(0.95, semconv.BACKPRESSURE_WAIT, by=(semconv.REASON,), over=WINDOW),
                    legend(semconv.REASON),
                )
            ],
            SECONDS,
            span=12,
        ),
    ),
)

_STRATEGY = (semconv.STRATEGY,)
_SAVINGS = graph_of(
    "Tokens saved and savable, in $window",
    "Input tokens that requests lacked because of a remedy, and those that they would lack with one that is off. "
    "Savable far above saved: switch that remedy on.",
    [
        Line(top(S.sum(semconv.CONTEXT_SAVED_TOKENS, by=_STRATEGY, over=WINDOW)), f"saved {legend(*_STRATEGY)}"),
        Line(top(S.sum(semconv.CONTEXT_SAVABLE_TOKENS, by=_STRATEGY, over=WINDOW)), f"savable {legend(*_STRATEGY)}"),
    ],
    COUNT,
)

_ENDED = (semconv.OPERATION, semconv.RESULT)
_CLAIM = Row(
    "Claim check and savings",
    (
        _SAVINGS,
        events_of(
            "Operations by result",
            "Writes and reads of the store by result. timeout or open: the store is slow or down, and results are "
            "not stored. expired: AGENT_OTEL_CLAIM_CHECK_TTL is too short. denied: another key or owner.",
            [Line(S.events(semconv.CLAIM_CHECK_OPERATIONS, by=_ENDED), legend(*_ENDED))],
            states=("error",),
        ),
        graph_of(
            "Duration of operations, p95",
            "Seconds that a tool call waits for the store, up to AGENT_OTEL_CLAIM_CHECK_BUDGET. Near the budget, "
            "some results are not stored.",
            [
                Line(
                    S.quantile(0.95, semconv.CLAIM_CHECK_DURATION, by=(semconv.OPERATION,), over=WINDOW),
                    legend(semconv.OPERATION),
                )
            ],
            SECONDS,
        ),
    ),
)

DASHBOARD = Frame(
    uid=links.EXECUTIONS,
    title="Agents: executions",
    description="The cost of an agent's run, the parts of its requests, and its limits and remedies.",
    rows=(_GLANCE, _RUNS, _COST, _REQUEST, carrying.CONTEXT, carrying.CARRYING, _REMEDIES, _CLAIM),
    variables={
        "workflow": (semconv.EXECUTION_TOOL_CALLS, semconv.WORKFLOW_NAME),
        "agent": (semconv.EXECUTION_TOOL_CALLS, semconv.AGENT_NAME),
    },
)
