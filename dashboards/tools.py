"""Tool results: their sizes, the layers that truncate them, and the part that models see."""

from __future__ import annotations

from agent_otel import semconv
from agent_otel.alerts.promql import share, share_or_none
from agent_otel.alerts.rules import UNTOLD
from dashboards import links
from dashboards.forecast import LARGEST
from dashboards.frame import Frame, Row, glance
from dashboards.panels import BYTES, COUNT, FEW_IS_GOOD, SHARE, none_of, stat_of
from dashboards.queries import RANGE, TOOL, drawn, highest, legend, most_often, or_zero
from dashboards.tables import Column, table_of
from dashboards.tools_parts import (
    CUT,
    DELIVERED,
    ERRORS,
    FAILED,
    FAILURE,
    LARGE,
    LARGE_BYTES,
    LINKS,
    PER_TOOL,
    RARE,
    SIZES,
    TRACES,
    TRUNCATION,
    WARN,
    S,
)

_LARGEST = LARGEST.format(by=", ".join(PER_TOOL), series=S.select(semconv.RESULT_LARGEST), over=RANGE)

_GLANCE = glance(
    stat_of(
        "Tool calls",
        "Calls of all chosen tools in the time range, failed ones included. None: the agent is idle, or not "
        "instrumented; see Instrumentation health.",
        or_zero(S.sum(semconv.ARGS_SIZE, "_count")),
        COUNT,
    ),
    stat_of(
        "Largest result",
        f"The tool with the largest result, by the upper bound of its bucket. Orange: above {LARGE_BYTES:,} bytes. "
        "From about 100 KiB on, frameworks and models truncate results, and durable runtimes reject payloads.",
        highest(_LARGEST),
        BYTES,
        LARGE,
        who=legend(TOOL),
        alerts=("AgentToolResultOverBudget", "AgentToolResultGrown"),
        links=LINKS,
    ),
    stat_of(
        "Share truncated",
        "Truncated results ÷ all results, of all chosen tools. Above a half, the model works on fragments most of the "
        "time: make the tool return less, or pages.",
        share(S.sum(semconv.RESULTS_TRUNCATED), S.sum(semconv.RESULT_SIZE, "_count")),
        SHARE,
        CUT,
        alerts=("AgentToolFirstTruncation",),
    ),
    stat_of(
        "Answers from a part",
        "The tool after whose incomplete results the agent most often gave a final answer. Give the tool a cursor, and "
        "describe it; see Truncation for the reasons.",
        most_often(S.sum(semconv.ANSWERS_INCOMPLETE, by=PER_TOOL, matchers=UNTOLD), TOOL),
        COUNT,
        FEW_IS_GOOD,
        who=legend(TOOL),
        alerts=("AgentAnswersIncomplete",),
        links=LINKS,
    ),
    stat_of(
        "Repeated calls",
        "The tool with the most calls that have the same arguments as an earlier one of the execution. Often the agent "
        "tries to see a truncated result in full.",
        most_often(S.sum(semconv.TOOL_REPEATS, by=PER_TOOL), TOOL),
        COUNT,
        FEW_IS_GOOD,
        who=legend(TOOL),
        links=LINKS,
    ),
    stat_of(
        "Calls that failed",
        "The tool with the most calls that ended in an error; its share is in the table below. Above 20 % the agent "
        "mostly retries: see Errors and latency. No data: another instrumentation emits the durations.",
        most_often(
            S.sum(semconv.TOOL_DURATION, "_count", by=PER_TOOL, matchers=FAILURE),
            TOOL,
            S.sum(semconv.TOOL_DURATION, "_count"),
        ),
        COUNT,
        none_of("error"),
        who=legend(TOOL),
        alerts=("AgentToolErrorRateHigh",),
        links=LINKS,
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
                Column("Calls", S.sum(semconv.ARGS_SIZE, "_count", by=PER_TOOL), COUNT),
                Column("Bytes", S.sum(semconv.RESULT_SIZE, "_sum", by=PER_TOOL), BYTES),
                Column("p95", drawn(S.quantile(0.95, semconv.RESULT_SIZE, by=PER_TOOL)), BYTES, LARGE),
                Column("Largest", _LARGEST, BYTES, LARGE),
                Column("Median", drawn(S.quantile(0.5, semconv.RESULT_SIZE, by=PER_TOOL)), BYTES),
                Column("Before", drawn(S.quantile(0.5, semconv.RESULT_SIZE, by=PER_TOOL, over="1w")), BYTES),
                Column("Large", S.sum(semconv.RESULTS_LARGE, by=PER_TOOL, matchers=WARN), COUNT, FEW_IS_GOOD),
                Column(
                    "Truncated",
                    share(
                        S.sum(semconv.RESULTS_TRUNCATED, by=PER_TOOL),
                        S.sum(semconv.RESULT_SIZE, "_count", by=PER_TOOL),
                    ),
                    SHARE,
                    CUT,
                ),
                Column(
                    "Delivered",
                    share(
                        S.sum(semconv.RESULT_DELIVERED, by=PER_TOOL), S.sum(semconv.RESULT_SIZE, "_sum", by=PER_TOOL)
                    ),
                    SHARE,
                ),
                Column("Over budget", S.sum(semconv.RESULTS_OVER_BUDGET, by=PER_TOOL), COUNT, FEW_IS_GOOD),
                Column("Grown", S.sum(semconv.RESULTS_GROWN, by=PER_TOOL), COUNT, FEW_IS_GOOD),
                Column("Repeats", S.sum(semconv.TOOL_REPEATS, by=PER_TOOL), COUNT, FEW_IS_GOOD),
                Column(
                    "Failed",
                    share_or_none(
                        S.sum(semconv.TOOL_DURATION, "_count", by=PER_TOOL, matchers=FAILURE),
                        S.sum(semconv.TOOL_DURATION, "_count", by=PER_TOOL),
                    ),
                    SHARE,
                    FAILED,
                ),
            ],
            ("Bytes",),
            links={"Tool": links.of_tool(links.cell("Tool"))},
        ),
    ),
    open=True,
)

DASHBOARD = Frame(
    uid=links.TOOLS,
    title="Agents: tool results",
    description="Sizes of tool results, the layers that truncate them, and the part that models see.",
    rows=(_GLANCE, _WORST, TRUNCATION, SIZES, DELIVERED, ERRORS, RARE, TRACES),
    variables={"tool": (semconv.ARGS_SIZE, semconv.GEN_AI_TOOL_NAME)},
)
