"""Agent executions: what a whole run costs, what its requests are made of, and what keeps it within bounds."""

from __future__ import annotations

from grafana_foundation_sdk.models.common import StackingMode

from agent_otel import semconv
from dashboards import links
from dashboards.frame import Frame, Row, glance
from dashboards.panels import (
    BYTES,
    BYTES_A_SECOND,
    COUNT,
    FEW_IS_GOOD,
    NONE_IS_GOOD,
    SECONDS,
    SHARE,
    Column,
    Line,
    events_of,
    graph_of,
    heatmap_of,
    stat_of,
    table_of,
)
from dashboards.queries import AGENT, JOB, WINDOW, WORKFLOW, Scope, drawn, legend, mean, or_zero, share

S = Scope({JOB: "job", WORKFLOW: "workflow", AGENT: "agent"})

_RUN = (WORKFLOW, AGENT)
_PREFIX = ((None, "red"), (0.5, "orange"), (0.9, "green"))
_FAILED = (f'{semconv.RESULT}!="ok"',)
_GETS = (f'{semconv.OPERATION}="get"',)


def _mean_of(metric: semconv.Metric, *by: str) -> str:
    return mean(S.sum(metric, "_sum", by=by), S.sum(metric, "_count", by=by))


_GLANCE = glance(
    stat_of(
        "Executions",
        "Executions that ended in the time range. None although agents run: no framework tells where an execution "
        "ends; name it with agent_otel.execution(...).",
        or_zero(S.sum(semconv.EXECUTION_TOOL_CALLS, "_count")),
        COUNT,
    ),
    stat_of(
        "Tool calls, p95",
        "Of twenty executions, one makes more tool calls than this. Far above the median: some of them go in circles.",
        S.quantile(0.95, semconv.EXECUTION_TOOL_CALLS),
        COUNT,
    ),
    stat_of(
        "Tool results, p95",
        "Bytes that the tools of one execution produced. This, and not a single request, is what a question "
        "costs: every later request carries it again.",
        S.quantile(0.95, semconv.EXECUTION_RESULT_SIZE),
        BYTES,
    ),
    stat_of(
        "Lost histories",
        "Requests from the second turn on without any earlier message: the agent has forgotten what it did. Any "
        "is a fault in how the conversation is kept.",
        or_zero(S.sum(semconv.HISTORY_LOST)),
        COUNT,
        NONE_IS_GOOD,
    ),
    stat_of(
        "Doubled histories",
        "Requests that hold the same message or result twice. Paid twice, and the model is told that it asked "
        "twice. Look for two places that append.",
        or_zero(S.sum(semconv.HISTORY_DOUBLED)),
        COUNT,
        NONE_IS_GOOD,
    ),
    stat_of(
        "Stable prefix",
        "Share of a request that is the beginning of the one before, on average. Providers cache only that. Low: "
        "something at the top changes each time, such as the date or the order of tools.",
        _mean_of(semconv.REQUEST_STABLE),
        SHARE,
        _PREFIX,
    ),
    stat_of(
        "Limits hit",
        "Calls skipped because their execution had reached a limit that you set. Any: the agent went in circles, "
        "or the limit is too low for real work.",
        or_zero(S.sum(semconv.LIMITS_HIT)),
        COUNT,
        FEW_IS_GOOD,
    ),
    stat_of(
        "Claim checks that failed",
        "Share of operations on the claim store that did not end well. A failed put hands the model the beginning "
        "only; a failed get, nothing. See Claim check.",
        share(
            or_zero(S.sum(semconv.CLAIM_CHECK_OPERATIONS, matchers=_FAILED)),
            S.sum(semconv.CLAIM_CHECK_OPERATIONS),
        ),
        SHARE,
        ((None, "green"), (0.001, "orange"), (0.05, "red")),
    ),
)

_COST = Row(
    "Cost of an execution",
    (
        graph_of(
            "Tool calls of an execution",
            "How many calls a whole run makes. p95 that leaves p50 behind: some runs do not come to an end by "
            "themselves; set a limit.",
            [
                Line(S.quantile(at, semconv.EXECUTION_TOOL_CALLS, over=WINDOW), name)
                for at, name in ((0.5, "p50"), (0.95, "p95"), (1, "most"))
            ],
            COUNT,
        ),
        graph_of(
            "Tool results of an execution",
            "Bytes that the tools of a whole run produced. Twice the bytes are more than twice the cost: each request "
            "carries all that came before.",
            [
                Line(S.quantile(at, semconv.EXECUTION_RESULT_SIZE, over=WINDOW), name)
                for at, name in ((0.5, "p50"), (0.95, "p95"), (1, "most"))
            ],
            BYTES,
            logarithmic=True,
        ),
        heatmap_of(
            "Executions by bytes",
            "Executions by what their tools produced. The band on top is few runs and most of the cost; compare it "
            "with that of single results, which looks harmless.",
            S.buckets(semconv.EXECUTION_RESULT_SIZE),
            BYTES,
        ),
        heatmap_of(
            "Executions by tool calls",
            "Executions by how many calls they made. A band at a power of two that nothing exceeds is a limit at work.",
            S.buckets(semconv.EXECUTION_TOOL_CALLS),
            COUNT,
        ),
        table_of(
            "Executions by workflow and agent",
            "All numbers of a kind of execution in the time range. Many bytes at few calls: large results; few bytes "
            "at many calls: an agent that searches in vain.",
            {WORKFLOW: "Workflow", AGENT: "Agent"},
            [
                Column("Executions", S.sum(semconv.EXECUTION_TOOL_CALLS, "_count", by=_RUN), COUNT),
                Column("Calls each", _mean_of(semconv.EXECUTION_TOOL_CALLS, *_RUN), COUNT),
                Column("Calls, p95", drawn(S.quantile(0.95, semconv.EXECUTION_TOOL_CALLS, by=_RUN)), COUNT),
                Column("Bytes each", _mean_of(semconv.EXECUTION_RESULT_SIZE, *_RUN), BYTES),
                Column("Bytes, p95", drawn(S.quantile(0.95, semconv.EXECUTION_RESULT_SIZE, by=_RUN)), BYTES),
                Column("Payload, p95", drawn(S.quantile(0.95, semconv.EXECUTION_PAYLOAD_SIZE, by=_RUN)), BYTES),
                Column("Payload, max", drawn(S.quantile(1, semconv.EXECUTION_PAYLOAD_SIZE, by=_RUN)), BYTES),
            ],
            "Bytes each",
            links={"Workflow": links.of_workflow(links.cell("Workflow"))},
        ),
    ),
)

_PART = (semconv.PART,)
_REQUEST = Row(
    "Model requests",
    (
        graph_of(
            "What a request is made of",
            "Mean text bytes of a request by part. tool_results on top: the conversation carries what tools returned; "
            "tools on top: too many tools are offered, in every request.",
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
        graph_of(
            "Size of a part, p95",
            "The larger requests, part by part. tool_results that climbs within hours: conversations grow longer; at "
            "once: one tool. A model's context ends at about 4 bytes a token.",
            [Line(S.quantile(0.95, semconv.REQUEST_SIZE, by=_PART, over=WINDOW), legend(semconv.PART))],
            BYTES,
            logarithmic=True,
        ),
        graph_of(
            "Stability of the prefix",
            "Share of a request that is the beginning of the one before. p10 near 0: some requests begin anew, and "
            "nothing of them is cached. A fall after a release: a prompt with a time or an id at its top.",
            [
                Line(S.quantile(at, semconv.REQUEST_STABLE, over=WINDOW), name)
                for at, name in ((0.1, "p10"), (0.5, "p50"))
            ],
            SHARE,
            steps=_PREFIX,
            span=8,
        ),
        graph_of(
            "Cached tokens a second",
            "Tokens that providers say they had cached: prompts that cost a fraction. Falls while requests "
            "do not: the prefix became unstable, see the graph on the left.",
            [Line(S.sum(semconv.CACHED_TOKENS, over=WINDOW, function="rate"), "cached tokens")],
            COUNT,
            span=8,
        ),
        events_of(
            "Lost and doubled histories",
            "Requests without the earlier turns, and requests that hold something twice. Both are faults of how the "
            "conversation is kept, by agent.",
            [
                Line(S.events(semconv.HISTORY_LOST, by=(AGENT,)), f"lost {legend(AGENT)}"),
                Line(S.events(semconv.HISTORY_DOUBLED, by=(AGENT,)), f"doubled {legend(AGENT)}"),
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
            "Calls that were not made because their execution had reached a limit. Bars that go on: the agent does "
            "not take no for an answer; stop the execution.",
            [Line(S.events(semconv.LIMITS_HIT, by=(semconv.LIMIT,)), legend(semconv.LIMIT))],
        ),
        graph_of(
            "Bytes kept from the model, by remedy",
            "What ceiling, claim check and the pruning of histories took out of requests. Flat at 0 although a remedy "
            "is switched on: nothing was large enough, or it is not in force.",
            [
                Line(
                    S.sum(semconv.CONTEXT_REMOVED, by=(semconv.STRATEGY,), over=WINDOW, function="rate"),
                    legend(semconv.STRATEGY),
                )
            ],
            BYTES_A_SECOND,
            stacked=StackingMode.NORMAL,
        ),
    ),
)

_ENDED = (semconv.OPERATION, semconv.RESULT)
_CLAIM = Row(
    "Claim check",
    (
        events_of(
            "Operations by how they ended",
            "What is put into the store and taken out. timeout or open: the store is slow or down, and results go on "
            "without it. expired: AGENT_OTEL_CLAIM_CHECK_TTL is too short. denied: another key.",
            [Line(S.events(semconv.CLAIM_CHECK_OPERATIONS, by=_ENDED), legend(*_ENDED))],
        ),
        graph_of(
            "References that were not resolved",
            "Share of reads of the store that gave nothing. The model asked for the rest of a result and got nothing. "
            "Keep results longer, or share one store among all workers.",
            [
                Line(
                    share(
                        S.sum(semconv.CLAIM_CHECK_OPERATIONS, by=(JOB,), over=WINDOW, matchers=(*_GETS, *_FAILED)),
                        S.sum(semconv.CLAIM_CHECK_OPERATIONS, by=(JOB,), over=WINDOW, matchers=_GETS),
                    ),
                    f"unresolved {legend(JOB)}",
                )
            ],
            SHARE,
        ),
        graph_of(
            "Duration of operations, p95",
            "Seconds that a tool call waits for the store, up to AGENT_OTEL_CLAIM_CHECK_BUDGET. Near it, results "
            "begin to go on without being stored.",
            [
                Line(
                    S.quantile(0.95, semconv.CLAIM_CHECK_DURATION, by=(semconv.OPERATION,), over=WINDOW),
                    legend(semconv.OPERATION),
                )
            ],
            SECONDS,
        ),
        graph_of(
            "Bytes to and from the store",
            "Much put and little got: the beginning of a result is enough for the model. More got than put: it "
            "fetches all of it; raise AGENT_OTEL_CLAIM_CHECK_BYTES.",
            [
                Line(
                    S.sum(semconv.CLAIM_CHECK_IO, by=(semconv.OPERATION,), over=WINDOW, function="rate"),
                    legend(semconv.OPERATION),
                )
            ],
            BYTES_A_SECOND,
        ),
    ),
    rare=True,
)

DASHBOARD = Frame(
    uid=links.EXECUTIONS,
    title="Agents: executions",
    description="What a whole run of an agent costs, what its requests are made of, and what keeps it within bounds.",
    rows=(_GLANCE, _COST, _REQUEST, _REMEDIES, _CLAIM),
    variables={
        "workflow": (semconv.EXECUTION_TOOL_CALLS, semconv.WORKFLOW_NAME),
        "agent": (semconv.EXECUTION_TOOL_CALLS, semconv.AGENT_NAME),
    },
)
