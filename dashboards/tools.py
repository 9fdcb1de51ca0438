"""Tool results: their sizes, the layers that truncate them, and the part that models see."""

from __future__ import annotations

from agent_otel import semconv
from agent_otel.alerts.promql import share, share_or_none
from agent_otel.alerts.rule_types import JOB
from agent_otel.settings import Settings
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
    bars_of,
    events_of,
    graph_of,
    heatmap_of,
    stat_of,
    table_of,
    traces_of,
)
from dashboards.queries import ERROR, TOOL, WINDOW, Scope, drawn, legend, mean, or_zero, worst

S = Scope({JOB: "job", TOOL: "tool"})

_LARGE_BYTES = Settings().large_result_bytes
_LARGE = ((None, "green"), (_LARGE_BYTES, "orange"))
_CUT = ((None, "green"), (0.1, "orange"), (0.5, "red"))
_FAILED = ((None, "green"), (0.05, "orange"), (0.2, "red"))
_TOOL = (TOOL,)
_LINKS = links.of_tool(links.field(TOOL))
_WARN = (f'{semconv.THRESHOLD}="{semconv.WARN}"',)
_KNOWN_BUDGET = (f'{semconv.LAYER}!="{semconv.DEFAULT}"',)
_FAILURE = (f'{ERROR}!=""',)

_CUTS = S.sum(semconv.RESULTS_TRUNCATED)

_GLANCE = glance(
    stat_of(
        "Tool calls",
        "Calls of all chosen tools in the time range, failed ones included. None: the agent is idle, or not "
        "instrumented; see Instrumentation health.",
        or_zero(S.sum(semconv.ARGS_SIZE, "_count")),
        COUNT,
    ),
    stat_of(
        "Large results",
        f"Results above AGENT_OTEL_LARGE_RESULT_BYTES ({_LARGE_BYTES:,} bytes by default). Every later turn carries "
        "them. Find the tool under Worst tools and give it pages or a filter.",
        or_zero(S.sum(semconv.RESULTS_LARGE, matchers=_WARN)),
        COUNT,
        FEW_IS_GOOD,
    ),
    stat_of(
        "Largest result",
        f"Upper bound of the bucket that holds the largest result. Orange: above {_LARGE_BYTES:,} bytes. From about "
        "100 KiB on, frameworks and models truncate results, and durable runtimes reject payloads.",
        S.quantile(1, semconv.RESULT_SIZE),
        BYTES,
        _LARGE,
    ),
    stat_of(
        "Truncated results",
        "Results of which the model sees only a part; it answers from that part. Find the layer that truncates under "
        "Truncation: some of the limits can be configured.",
        or_zero(_CUTS),
        COUNT,
        FEW_IS_GOOD,
    ),
    stat_of(
        "Share truncated",
        "Truncated results ÷ all results. Above a half, the model works on fragments most of the time: make the tool "
        "return less, or pages.",
        share(_CUTS, S.sum(semconv.RESULT_SIZE, "_count")),
        SHARE,
        _CUT,
    ),
    stat_of(
        "Bytes not delivered",
        "Share of the tools' bytes that no model received. High without truncation: the agent fetches data that it "
        "does not use. No data: model requests are not measured.",
        f"clamp_min(1 - {mean(S.sum(semconv.RESULT_DELIVERED), S.sum(semconv.RESULT_PRODUCED))}, 0)",
        SHARE,
    ),
    stat_of(
        "Repeated calls",
        "Calls with the same arguments as an earlier call of the execution. Often the agent tries to see a truncated "
        "result in full.",
        or_zero(S.sum(semconv.TOOL_REPEATS)),
        COUNT,
        FEW_IS_GOOD,
    ),
    stat_of(
        "Calls that failed",
        "Share of calls that ended in an error. Above 20 % the agent mostly retries: see Errors and latency. No "
        "data: another instrumentation emits the durations.",
        share(
            or_zero(S.sum(semconv.TOOL_DURATION, "_count", matchers=_FAILURE)),
            S.sum(semconv.TOOL_DURATION, "_count"),
        ),
        SHARE,
        _FAILED,
    ),
)

_SIZES = Row(
    "Sizes",
    (
        graph_of(
            "Result size",
            "Size of the results of all chosen tools. Dashed: the threshold of a large result. If p99 rises away "
            "from p50, single tools or questions cause it: see the next graph.",
            [
                Line(S.quantile(q, semconv.RESULT_SIZE, over=WINDOW), name, exemplars=name == "p99")
                for q, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
            ],
            BYTES,
            steps=_LARGE,
            logarithmic=True,
        ),
        graph_of(
            "Result size by tool, p95",
            "A rising tool returns more than before: its back end changed, or its questions are wider. Dots are "
            "calls: click one for its trace, the line for the payloads that carry its results.",
            [Line(S.quantile(0.95, semconv.RESULT_SIZE, by=_TOOL, over=WINDOW), legend(TOOL), exemplars=True)],
            BYTES,
            steps=_LARGE,
            logarithmic=True,
            links=_LINKS,
        ),
        heatmap_of(
            "Distribution of result sizes",
            "Results by size over time. A second band far above the first is a separate kind of result, such as a "
            "whole file instead of a listing; averages hide it.",
            S.buckets(semconv.RESULT_SIZE),
            BYTES,
            exemplars=True,
        ),
        bars_of(
            "Largest result by tool",
            "Upper bound of the bucket of each tool's largest result in the time range. Give a tool in orange a "
            "limit; click it for the payloads that carry its results.",
            worst(drawn(S.quantile(1, semconv.RESULT_SIZE, by=_TOOL))),
            legend(TOOL),
            BYTES,
            steps=_LARGE,
            links=_LINKS,
        ),
    ),
)

_WORST = Row(
    "Worst tools",
    (
        table_of(
            "Worst tools",
            "All numbers of a tool in the time range, most bytes first. Many bytes and a low share delivered: data "
            "fetched without use. Many repeats and truncations: the agent requests the missing part again. Click a "
            "tool for its payloads and traces.",
            {TOOL: "Tool"},
            [
                Column("Calls", S.sum(semconv.ARGS_SIZE, "_count", by=_TOOL), COUNT),
                Column("Bytes", S.sum(semconv.RESULT_PRODUCED, by=_TOOL), BYTES),
                Column("p95", drawn(S.quantile(0.95, semconv.RESULT_SIZE, by=_TOOL)), BYTES, _LARGE),
                Column("Largest", drawn(S.quantile(1, semconv.RESULT_SIZE, by=_TOOL)), BYTES, _LARGE),
                Column("Large", S.sum(semconv.RESULTS_LARGE, by=_TOOL, matchers=_WARN), COUNT, FEW_IS_GOOD),
                Column(
                    "Over budget",
                    S.sum(semconv.RESULTS_OVER_BUDGET, by=_TOOL, matchers=_KNOWN_BUDGET),
                    COUNT,
                    FEW_IS_GOOD,
                ),
                Column(
                    "Truncated",
                    share(
                        S.sum(semconv.RESULTS_TRUNCATED, by=_TOOL),
                        S.sum(semconv.RESULT_SIZE, "_count", by=_TOOL),
                    ),
                    SHARE,
                    _CUT,
                ),
                Column(
                    "Delivered",
                    share(S.sum(semconv.RESULT_DELIVERED, by=_TOOL), S.sum(semconv.RESULT_PRODUCED, by=_TOOL)),
                    SHARE,
                ),
                Column("Repeats", S.sum(semconv.TOOL_REPEATS, by=_TOOL), COUNT, FEW_IS_GOOD),
                Column(
                    "Failed",
                    share_or_none(
                        S.sum(semconv.TOOL_DURATION, "_count", by=_TOOL, matchers=_FAILURE),
                        S.sum(semconv.TOOL_DURATION, "_count", by=_TOOL),
                    ),
                    SHARE,
                    _FAILED,
                ),
            ],
            "Bytes",
            links={"Tool": links.of_tool(links.cell("Tool"))},
        ),
    ),
)


_CUTTING = Row(
    "Truncation",
    (
        events_of(
            "Truncated results by layer",
            "Truncated results by layer: the tool itself, the framework around it, the layer that builds the model's "
            "request, or a remedy. A layer other than remedy truncates by its default limit: raise it there.",
            [
                Line(
                    S.events(semconv.RESULTS_TRUNCATED, by=(semconv.LAYER,)),
                    legend(semconv.LAYER),
                )
            ],
            span=8,
        ),
        events_of(
            "Truncated results by reason",
            "Evidence of the truncation. marker: the text contains a marker; cut_json: JSON ends in the middle; "
            "shrunk: fewer bytes came out than went in. In no other panel: suspected, only the length equals a known "
            "cap; cleared, removed from a later request.",
            [
                Line(S.events(semconv.RESULTS_TRUNCATED, by=(semconv.REASON,)), legend(semconv.REASON)),
                *(Line(S.sum(metric, over=WINDOW), reason) for reason, metric in semconv.REASON_COUNTERS.items()),
            ],
            span=8,
        ),
        events_of(
            "Truncated results by tool",
            "A tool that appears here for the first time has grown past a limit. Make it return less, give it pages, "
            "or raise the limit of the layer that truncates.",
            [Line(S.events(semconv.RESULTS_TRUNCATED, by=_TOOL), legend(TOOL))],
            span=8,
            links=_LINKS,
        ),
        events_of(
            "Large results by tool",
            "Results above a threshold: `warn` is AGENT_OTEL_LARGE_RESULT_BYTES, `ceiling` the size above which "
            "results are withheld. After a withheld result the agent has to request less: the panel on the right "
            "shows whether it does.",
            [Line(S.events(semconv.RESULTS_LARGE, by=(TOOL, semconv.THRESHOLD)), legend(TOOL, semconv.THRESHOLD))],
            span=8,
            links=_LINKS,
        ),
        events_of(
            "Follow-ups to truncated results",
            "Next call of a tool after a truncated result. paginated and narrowed are good. ignored: it answered "
            "from a fragment; explain in the tool's description how to get the rest. repeated: the same call again.",
            [Line(S.events(semconv.TOOL_FOLLOWUPS, by=(semconv.OUTCOME,)), legend(semconv.OUTCOME))],
            span=8,
        ),
        events_of(
            "Answers from a part of a result",
            "Final answers after a result that no later call completed. page: it named a further page; undelivered: "
            "the model never got it; the others are reasons of truncation. Give the tool a cursor and describe it.",
            [Line(S.events(semconv.ANSWERS_INCOMPLETE, by=(TOOL, semconv.REASON)), legend(TOOL, semconv.REASON))],
            span=8,
            links=_LINKS,
        ),
    ),
)

_DELIVERED = Row(
    "Produced and delivered",
    (
        graph_of(
            "Produced and delivered",
            "Bytes that handlers returned, and the part of them that models received, each result once. A growing "
            "gap: a layer began to truncate. No gap is healthy.",
            [
                Line(S.sum(semconv.RESULT_PRODUCED, over=WINDOW, function="rate"), "produced"),
                Line(S.sum(semconv.RESULT_DELIVERED, over=WINDOW, function="rate"), "delivered"),
            ],
            BYTES_A_SECOND,
            span=8,
        ),
        graph_of(
            "Share delivered by tool",
            "Share of a tool's bytes that models receive. Low: most of the tool's work is wasted, and the model does "
            "not see the result.",
            [
                Line(
                    share(
                        S.sum(semconv.RESULT_DELIVERED, by=_TOOL, over=WINDOW, function="rate"),
                        S.sum(semconv.RESULT_PRODUCED, by=_TOOL, over=WINDOW, function="rate"),
                    ),
                    legend(TOOL),
                )
            ],
            SHARE,
            span=8,
            links=_LINKS,
        ),
        events_of(
            "Repeated calls by tool",
            "Calls with the same arguments as an earlier one of the execution. The agent cannot use the answers of "
            "the top tools: they are truncated, empty or unclear.",
            [Line(S.events(semconv.TOOL_REPEATS, by=_TOOL), legend(TOOL))],
            span=8,
            links=_LINKS,
        ),
    ),
)

_ERRORS = Row(
    "Errors and latency",
    (
        events_of(
            "Calls by tool",
            "Calls, failed ones included. A jump without more users is an agent in a loop.",
            [Line(S.events(semconv.ARGS_SIZE, "_count", by=_TOOL), legend(TOOL))],
            span=8,
            links=_LINKS,
        ),
        graph_of(
            "Duration by tool, p95",
            "Seconds from the call to its result. Slow and large often come together: compare with the result size of "
            "the same tool.",
            [Line(S.quantile(0.95, semconv.TOOL_DURATION, by=_TOOL, over=WINDOW), legend(TOOL), exemplars=True)],
            SECONDS,
            span=8,
            links=_LINKS,
        ),
        events_of(
            "Failed calls by error",
            "Errors by exception type; tool_error is an error without an exception. One error on one tool: the tool "
            "fails. The same error on all tools: the network or a key.",
            [
                Line(
                    S.events(semconv.TOOL_DURATION, "_count", by=(TOOL, ERROR), matchers=_FAILURE),
                    legend(TOOL, ERROR),
                )
            ],
            span=8,
            links=_LINKS,
        ),
    ),
)

_RARE = Row(
    "Arguments and shapes",
    (
        graph_of(
            "Argument size by tool, p95",
            "The model writes arguments, and every later turn carries them. Kilobytes: it copies results into its "
            "next calls. Let the tool accept a reference instead.",
            [Line(S.quantile(0.95, semconv.ARGS_SIZE, by=_TOOL, over=WINDOW), legend(TOOL))],
            BYTES,
            logarithmic=True,
            links=_LINKS,
        ),
        bars_of(
            "Changed result keys by tool",
            "Structured results whose keys differ from the tool's earlier results. The API behind the tool changed, "
            "and prompts that name its keys may be out of date.",
            worst(S.sum(semconv.SHAPE_CHANGES, by=_TOOL)),
            legend(TOOL),
            COUNT,
            steps=NONE_IS_GOOD,
            links=_LINKS,
        ),
        events_of(
            "Calls with invalid arguments by tool",
            "The framework or the server refused the arguments before the tool ran. A rise after a change of the "
            "schema, the prompt or the model: the model writes calls of the old form.",
            [Line(S.events(semconv.INVALID_ARGUMENTS, by=_TOOL), legend(TOOL))],
            links=_LINKS,
        ),
        bars_of(
            "Changed definitions by tool",
            "Definitions in model requests whose properties, types or required properties differ from the agent's "
            "requests before. The traces name the properties.",
            worst(S.sum(semconv.SCHEMA_CHANGES, by=_TOOL)),
            legend(TOOL),
            COUNT,
            steps=NONE_IS_GOOD,
            links=_LINKS,
        ),
    ),
    rare=True,
)

_TRACES = Row(
    "Traces of large results",
    (
        traces_of(
            "Calls with a large result",
            f"Spans of calls with more than {_LARGE_BYTES:,} bytes, from the data source chosen as Tempo; empty "
            "without one. A span has the arguments' hash, the execution and the layer that truncated.",
            f"{{ span.{semconv.RESULT_BYTES} > {_LARGE_BYTES} }} | select(span.{semconv.TOOL_NAME}, "
            f"span.{semconv.RESULT_BYTES}, span.{semconv.RESULT_TRUNCATED})",
        ),
    ),
    rare=True,
)

DASHBOARD = Frame(
    uid=links.TOOLS,
    title="Agents: tool results",
    description="Sizes of tool results, the layers that truncate them, and the part that models see.",
    rows=(_GLANCE, _SIZES, _WORST, _CUTTING, _DELIVERED, _ERRORS, _RARE, _TRACES),
    variables={"tool": (semconv.ARGS_SIZE, semconv.GEN_AI_TOOL_NAME)},
)
