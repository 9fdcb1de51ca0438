"""Tool results: their sizes, the layers that truncate them, and the part that models see."""

from __future__ import annotations

from agent_otel import semconv
from agent_otel.alerts.promql import share, share_or_none
from dashboards import links
from dashboards.frame import Frame, Row, glance
from dashboards.panels import BYTES, COUNT, FEW_IS_GOOD, SHARE, none_of, stat_of
from dashboards.queries import TOOL, drawn, highest, legend, mean, most_often, or_zero
from dashboards.tables import Column, table_of
from dashboards.tools_parts import (
    CUT,
    DELIVERED,
    ERRORS,
    FAILED,
    FAILURE,
    KNOWN_BUDGET,
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

_GLANCE = glance(
    stat_of(
        "Tool calls",
        "Calls of all chosen tools in the time range, failed ones included. None: the agent is idle, or not "
        "instrumented; see Instrumentation health.",
        or_zero(S.sum(semconv.ARGS_SIZE, "_count")),
        COUNT,
    ),
    stat_of(
        "Bytes not delivered",
        "Share of the tools' bytes that no model received. High without truncation: the agent fetches data that it "
        "does not use. No data: model requests are not measured.",
        f"clamp_min(1 - {mean(S.sum(semconv.RESULT_DELIVERED), S.sum(semconv.RESULT_SIZE, '_sum'))}, 0)",
        SHARE,
    ),
    stat_of(
        "Largest result",
        f"The tool with the largest result, by the upper bound of its bucket. Orange: above {LARGE_BYTES:,} bytes. "
        "From about 100 KiB on, frameworks and models truncate results, and durable runtimes reject payloads.",
        highest(drawn(S.quantile(1, semconv.RESULT_SIZE, by=PER_TOOL))),
        BYTES,
        LARGE,
        who=legend(TOOL),
        alerts=("AgentToolResultGrown",),
        links=LINKS,
    ),
    stat_of(
        "Large results",
        f"The tool with the most results above AGENT_OTEL_LARGE_RESULT_BYTES ({LARGE_BYTES:,} bytes by default), and "
        "how many they are. Every later turn carries them. Give the tool pages or a filter.",
        most_often(S.sum(semconv.RESULTS_LARGE, by=PER_TOOL, matchers=WARN), TOOL),
        COUNT,
        FEW_IS_GOOD,
        who=legend(TOOL),
        alerts=("AgentToolResultOverBudget",),
        links=LINKS,
    ),
    stat_of(
        "Truncated results",
        "The tool with the most results of which the model sees only a part, and how many they are. The model answers "
        "from that part. Find the layer that truncates under Truncation: some of the limits can be configured.",
        most_often(S.sum(semconv.RESULTS_TRUNCATED, by=PER_TOOL), TOOL),
        COUNT,
        FEW_IS_GOOD,
        who=legend(TOOL),
        alerts=("AgentToolFirstTruncation",),
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
        most_often(S.sum(semconv.ANSWERS_INCOMPLETE, by=PER_TOOL), TOOL),
        COUNT,
        FEW_IS_GOOD,
        who=legend(TOOL),
        alerts=("AgentAnswersIncomplete",),
        links=LINKS,
    ),
    stat_of(
        "Over budget",
        "The tool with the most results above the smallest limit on their way to the model. That layer truncates or "
        "refuses them: make the tool return less, or raise the limit.",
        most_often(S.sum(semconv.RESULTS_OVER_BUDGET, by=PER_TOOL, matchers=KNOWN_BUDGET), TOOL),
        COUNT,
        none_of("over"),
        who=legend(TOOL),
        alerts=("AgentToolResultOverBudget",),
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
                Column("Largest", drawn(S.quantile(1, semconv.RESULT_SIZE, by=PER_TOOL)), BYTES, LARGE),
                Column("Large", S.sum(semconv.RESULTS_LARGE, by=PER_TOOL, matchers=WARN), COUNT, FEW_IS_GOOD),
                Column(
                    "Over budget",
                    S.sum(semconv.RESULTS_OVER_BUDGET, by=PER_TOOL, matchers=KNOWN_BUDGET),
                    COUNT,
                    FEW_IS_GOOD,
                ),
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
