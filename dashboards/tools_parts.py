"""Tool results, detail rows: sizes, truncation, delivery, errors."""

from __future__ import annotations

from agent_otel import semconv
from agent_otel.alerts.promql import JOB
from agent_otel.settings import Settings
from dashboards import links
from dashboards.frame import Row
from dashboards.panels import (
    BYTES,
    BYTES_A_SECOND,
    COUNT,
    NONE_IS_GOOD,
    SECONDS,
    Line,
    bars_of,
    events_of,
    graph_of,
    heatmap_of,
)
from dashboards.queries import AGENT, ERROR, RANGE, TOOL, WINDOW, Scope, drawn, legend, top, worst
from dashboards.tables import Column, table_of, traces_of

S = Scope({JOB: "job", TOOL: "tool"})

LARGE_BYTES = Settings().large_result_bytes
LARGE = ((None, "green"), (LARGE_BYTES, "orange"))
CUT = ((None, "green"), (0.1, "orange"), (0.5, "red"))
FAILED = ((None, "green"), (0.05, "orange"), (0.2, "red"))
PER_TOOL = (TOOL,)
LINKS = links.of_tool(links.field(TOOL))
WARN = (f'{semconv.THRESHOLD}="{semconv.WARN}"',)
KNOWN_BUDGET = (f'{semconv.LAYER}!="{semconv.DEFAULT}"',)
FAILURE = (f'{ERROR}!=""',)

SIZES = Row(
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
            steps=LARGE,
            logarithmic=True,
        ),
        graph_of(
            "Result size by tool, p95",
            "A rising tool returns more than before: its back end changed, or its questions are wider. Dots are "
            "calls: click one for its trace, the line for the payloads that carry its results.",
            [
                Line(
                    top(drawn(S.quantile(0.95, semconv.RESULT_SIZE, by=PER_TOOL, over=WINDOW))),
                    legend(TOOL),
                    exemplars=True,
                )
            ],
            BYTES,
            steps=LARGE,
            logarithmic=True,
            links=LINKS,
        ),
        heatmap_of(
            "Distribution of result sizes",
            "Results by size over time. A second band far above the first is a separate kind of result, such as a "
            "whole file instead of a listing; averages hide it.",
            S.buckets(semconv.RESULT_SIZE),
            BYTES,
            exemplars=True,
        ),
    ),
)

TRUNCATION = Row(
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
            "Follow-ups to truncated results",
            "Next call of a tool after a truncated result. paginated and narrowed are good. ignored: it answered "
            "from a fragment; explain in the tool's description how to get the rest. repeated: the same call again.",
            [Line(S.events(semconv.TOOL_FOLLOWUPS, by=(semconv.OUTCOME,)), legend(semconv.OUTCOME))],
            span=8,
            states=("ignored",),
        ),
        events_of(
            "Answers from a part of a result",
            "Final answers after a result that no later call completed. page: it named a further page; undelivered: "
            "the model never got it; the others are reasons of truncation. Give the tool a cursor and describe it.",
            [Line(top(S.events(semconv.ANSWERS_INCOMPLETE, by=(TOOL, semconv.REASON))), legend(TOOL, semconv.REASON))],
            span=8,
            links=LINKS,
        ),
    ),
)

DELIVERED = Row(
    "Produced and delivered",
    (
        graph_of(
            "Produced and delivered",
            "Bytes that handlers returned, and the part of them that models received, each result once. A growing "
            "gap: a layer began to truncate. No gap is healthy.",
            [
                Line(S.sum(semconv.RESULT_SIZE, "_sum", over=WINDOW, function="rate"), "produced"),
                Line(S.sum(semconv.RESULT_DELIVERED, over=WINDOW, function="rate"), "delivered"),
            ],
            BYTES_A_SECOND,
            span=8,
        ),
        events_of(
            "Repeated calls by tool",
            "Calls with the same arguments as an earlier one of the execution. The agent cannot use the answers of "
            "the top tools: they are truncated, empty or unclear.",
            [Line(top(S.events(semconv.TOOL_REPEATS, by=PER_TOOL)), legend(TOOL))],
            span=8,
            links=LINKS,
        ),
    ),
)

ERRORS = Row(
    "Errors and latency",
    (
        events_of(
            "Calls by tool",
            "Calls, failed ones included. A jump without more users is an agent in a loop.",
            [Line(top(S.events(semconv.ARGS_SIZE, "_count", by=PER_TOOL)), legend(TOOL))],
            span=8,
            links=LINKS,
        ),
        graph_of(
            "Duration by tool, p95",
            "Seconds from the call to its result. Slow and large often come together: compare with the result size of "
            "the same tool.",
            [
                Line(
                    top(drawn(S.quantile(0.95, semconv.TOOL_DURATION, by=PER_TOOL, over=WINDOW))),
                    legend(TOOL),
                    exemplars=True,
                )
            ],
            SECONDS,
            span=8,
            links=LINKS,
        ),
        events_of(
            "Failed calls by error",
            "Errors by exception type; tool_error is an error without an exception. One error on one tool: the tool "
            "fails. The same error on all tools: the network or a key.",
            [
                Line(
                    top(S.events(semconv.TOOL_DURATION, "_count", by=(TOOL, ERROR), matchers=FAILURE)),
                    legend(TOOL, ERROR),
                    state="error",
                )
            ],
            span=8,
            links=LINKS,
        ),
    ),
)

#: In the place of bars: tools without a change have none.
_UNCHANGED = "no change seen"

RARE = Row(
    "Arguments and shapes",
    (
        events_of(
            "Calls with invalid arguments by tool",
            "The framework or the server refused the arguments before the tool ran. A rise after a change of the "
            "schema, the prompt or the model: the model writes calls of the old form.",
            [Line(top(S.events(semconv.INVALID_ARGUMENTS, by=PER_TOOL)), legend(TOOL), state="error")],
            links=(links.to_alert("AgentToolArgumentsInvalid"), *LINKS),
        ),
        bars_of(
            "Changed definitions by tool",
            "Definitions in model requests whose properties, types or required properties differ from the agent's "
            "requests before. The traces name the properties.",
            worst(f"({S.sum(semconv.SCHEMA_CHANGES, by=PER_TOOL)}) > 0"),
            legend(TOOL),
            COUNT,
            steps=NONE_IS_GOOD,
            empty=_UNCHANGED,
            links=LINKS,
        ),
        table_of(
            "Definitions in use",
            "Definitions of tools in model requests, by a hash of their properties, types and required properties. Two "
            "rows of a tool and agent: a deployment in the time range, or a definition that changes in a process.",
            {TOOL: "Tool", AGENT: "Agent", semconv.FINGERPRINT: "Definition"},
            [
                Column(
                    "Processes",
                    f"count by ({TOOL}, {AGENT}, {semconv.FINGERPRINT}) "
                    f"(last_over_time({S.select(semconv.DEFINITION_INFO)}[{RANGE}]))",
                    COUNT,
                )
            ],
            ("Tool", "Agent", "Processes"),
            empty="No request has offered a tool.",
        ),
    ),
)

TRACES = Row(
    "Traces of large results",
    (
        traces_of(
            "Calls with a large result",
            f"Spans of calls with more than {LARGE_BYTES:,} bytes, from the data source chosen as Tempo; empty "
            "without one. A span has the arguments' hash, the execution and the layer that truncated.",
            f"{{ span.{semconv.RESULT_BYTES} > {LARGE_BYTES} }} | select(span.{semconv.TOOL_NAME}, "
            f"span.{semconv.RESULT_BYTES}, span.{semconv.RESULT_TRUNCATED})",
        ),
    ),
)
