"""Tool results: how big they are, who cuts them, what of them a model sees."""

from __future__ import annotations

from agent_otel import semconv
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
from dashboards.queries import (
    ERROR,
    JOB,
    TOOL,
    WINDOW,
    Scope,
    drawn,
    legend,
    mean,
    or_zero,
    share,
    share_or_none,
    worst,
)

S = Scope({JOB: "job", TOOL: "tool"})

_LARGE_BYTES = Settings().large_result_bytes
_LARGE = ((None, "green"), (_LARGE_BYTES, "orange"))
_CUT = ((None, "green"), (0.1, "orange"), (0.5, "red"))
_FAILED = ((None, "green"), (0.05, "orange"), (0.2, "red"))
_TOOL = (TOOL,)
_LINKS = links.of_tool(links.field(TOOL))
# A length that equals a known cap is a hint and no cut.
_REAL_CUT = (f'{semconv.REASON}!="{semconv.SUSPECTED}"',)
_WARN = (f'{semconv.THRESHOLD}="{semconv.WARN}"',)
_FAILURE = (f'{ERROR}!=""',)

_CUTS = S.sum(semconv.RESULTS_TRUNCATED, matchers=_REAL_CUT)

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
        f"Results above AGENT_OTEL_LARGE_RESULT_BYTES, {_LARGE_BYTES:,} bytes unless set. Each is carried in "
        "every later turn. Look up the tool under Worst tools and give it paging or a filter.",
        or_zero(S.sum(semconv.RESULTS_LARGE, matchers=_WARN)),
        COUNT,
        FEW_IS_GOOD,
    ),
    stat_of(
        "Largest result",
        f"Upper bound of the bucket that holds the largest result. Orange: above {_LARGE_BYTES:,} bytes. From "
        "about 100 KiB on, layers begin to cut, and durable runtimes to refuse.",
        S.quantile(1, semconv.RESULT_SIZE),
        BYTES,
        _LARGE,
    ),
    stat_of(
        "Cut results",
        "Results that the model does not see whole. It answers from what is left and does not know. Find the "
        "layer under Cuts: only some of them can be configured.",
        or_zero(_CUTS),
        COUNT,
        FEW_IS_GOOD,
    ),
    stat_of(
        "Share cut",
        "Cut results of all results. Above a half, the model works on fragments most of the time: make the tool "
        "return less, or in pages.",
        share(_CUTS, S.sum(semconv.RESULT_SIZE, "_count")),
        SHARE,
        _CUT,
    ),
    stat_of(
        "Kept from the model",
        "Share of the bytes that tools produced and no model was sent. High without cuts: the agent fetches what "
        "it does not use. None where model requests are not seen.",
        f"clamp_min(1 - {mean(S.sum(semconv.RESULT_DELIVERED), S.sum(semconv.RESULT_PRODUCED))}, 0)",
        SHARE,
    ),
    stat_of(
        "Repeated calls",
        "Calls with the same arguments again in one execution. The agent did not understand the answer, often "
        "because it was cut.",
        or_zero(S.sum(semconv.TOOL_REPEATS)),
        COUNT,
        FEW_IS_GOOD,
    ),
    stat_of(
        "Calls that failed",
        "Share of calls that ended in an error. Above a fifth the agent mostly retries: see Errors and latency. "
        "None where another instrumentation emits the durations.",
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
            "What the handlers of all chosen tools produced. Dashed: from where a result counts as large. A p99 that "
            "pulls away from p50 is one tool or one kind of question: see the next graph.",
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
            "A tool that climbs returns more than it did: a changed back end, a wider question. Dots are calls: click "
            "one for its trace, the line for the payloads that carry it.",
            [Line(S.quantile(0.95, semconv.RESULT_SIZE, by=_TOOL, over=WINDOW), legend(TOOL), exemplars=True)],
            BYTES,
            steps=_LARGE,
            logarithmic=True,
            links=_LINKS,
        ),
        heatmap_of(
            "Distribution of result sizes",
            "Results by size over time. A second band far above the first is a mode of its own, such as a whole file "
            "in place of a listing; averages hide it.",
            S.buckets(semconv.RESULT_SIZE),
            BYTES,
            exemplars=True,
        ),
        bars_of(
            "Largest result by tool",
            "Upper bound of the bucket of each tool's largest result in the time range. Orange needs a limit at the "
            "tool; click for the payloads that carry it.",
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
            "All numbers of a tool in the time range, most bytes first. Much produced and little delivered: fetched "
            "in vain. Many repeats beside cuts: the agent asks again for what was cut. Click a tool for its payloads "
            "and traces.",
            {TOOL: "Tool"},
            [
                Column("Calls", S.sum(semconv.ARGS_SIZE, "_count", by=_TOOL), COUNT),
                Column("Bytes", S.sum(semconv.RESULT_PRODUCED, by=_TOOL), BYTES),
                Column("p95", drawn(S.quantile(0.95, semconv.RESULT_SIZE, by=_TOOL)), BYTES, _LARGE),
                Column("Largest", drawn(S.quantile(1, semconv.RESULT_SIZE, by=_TOOL)), BYTES, _LARGE),
                Column("Large", S.sum(semconv.RESULTS_LARGE, by=_TOOL, matchers=_WARN), COUNT, FEW_IS_GOOD),
                Column(
                    "Cut",
                    share(
                        S.sum(semconv.RESULTS_TRUNCATED, by=_TOOL, matchers=_REAL_CUT),
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
    "Cuts",
    (
        events_of(
            "Cut results by layer",
            "Who cut: the tool itself, the framework around it, the layer that builds the model's request, or a "
            "remedy that you switched on. What you did not switch on is a default that you can change.",
            [
                Line(
                    S.events(semconv.RESULTS_TRUNCATED, by=(semconv.LAYER,), matchers=_REAL_CUT),
                    legend(semconv.LAYER),
                )
            ],
            span=8,
        ),
        events_of(
            "Cut results by reason",
            "How a cut is known. marker: the text says so; cut_json: JSON ends in the middle; shrunk: fewer bytes "
            "came out than went in; suspected: only the length equals a known cap, which counts nowhere else.",
            [Line(S.events(semconv.RESULTS_TRUNCATED, by=(semconv.REASON,)), legend(semconv.REASON))],
            span=8,
        ),
        events_of(
            "Cut results by tool",
            "A tool that was never cut before and is now has grown past a limit. Make it return less, page it, or "
            "raise the limit of the layer that cuts.",
            [Line(S.events(semconv.RESULTS_TRUNCATED, by=_TOOL, matchers=_REAL_CUT), legend(TOOL))],
            span=8,
            links=_LINKS,
        ),
        events_of(
            "Large results by tool",
            "Results above a threshold: `warn` is AGENT_OTEL_LARGE_RESULT_BYTES, `ceiling` the size from which "
            "results are withheld. A withheld result means that the agent has to ask for less: check that it does, on "
            "the right.",
            [Line(S.events(semconv.RESULTS_LARGE, by=(TOOL, semconv.THRESHOLD)), legend(TOOL, semconv.THRESHOLD))],
            links=_LINKS,
        ),
        events_of(
            "What the agent did after a cut",
            "paginated and narrowed are what you want. ignored: it answered from a fragment; say in the tool's "
            "description, or in the text at the cut, how to ask for the rest. repeated: it asked the same again.",
            [Line(S.events(semconv.TOOL_FOLLOWUPS, by=(semconv.OUTCOME,)), legend(semconv.OUTCOME))],
        ),
    ),
)

_DELIVERED = Row(
    "Produced and delivered",
    (
        graph_of(
            "Produced and delivered",
            "Bytes that handlers made, and bytes of them that models were sent, each result once. A gap that opens is "
            "a cut that began; none at all is a healthy agent.",
            [
                Line(S.sum(semconv.RESULT_PRODUCED, over=WINDOW, function="rate"), "produced"),
                Line(S.sum(semconv.RESULT_DELIVERED, over=WINDOW, function="rate"), "delivered"),
            ],
            BYTES_A_SECOND,
            span=8,
        ),
        graph_of(
            "Share delivered by tool",
            "What of a tool's bytes reaches a model. Low: most of the tool's work is thrown away, and the model does "
            "not see what it asked for.",
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
            "The same arguments again in one execution. A tool on top of this graph confuses the agent: its answers "
            "are cut, empty or unclear.",
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
            "Errors by the exception's name; tool_error is one that the tool reported without an exception. One error "
            "on one tool is the tool's; one on all is the network or a key.",
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
            "Arguments are written by the model and carried like results. Kilobytes mean that it copies results into "
            "its next calls: give the tool a reference to take.",
            [Line(S.quantile(0.95, semconv.ARGS_SIZE, by=_TOOL, over=WINDOW), legend(TOOL))],
            BYTES,
            logarithmic=True,
            links=_LINKS,
        ),
        bars_of(
            "Changed shapes by tool",
            "Structured results whose keys are not those that the tool's results had before. Any: the API behind the "
            "tool changed, and prompts that name its keys are out of date.",
            worst(S.sum(semconv.SHAPE_CHANGES, by=_TOOL)),
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
            "without one. Open one for its arguments' hash, its execution and who cut it.",
            f"{{ span.{semconv.RESULT_BYTES} > {_LARGE_BYTES} }} | select(span.{semconv.TOOL_NAME}, "
            f"span.{semconv.RESULT_BYTES}, span.{semconv.RESULT_TRUNCATED})",
        ),
    ),
    rare=True,
)

DASHBOARD = Frame(
    uid=links.TOOLS,
    title="Agents: tool results",
    description="What tools return, who cuts it and what of it a model sees.",
    rows=(_GLANCE, _SIZES, _WORST, _CUTTING, _DELIVERED, _ERRORS, _RARE, _TRACES),
    variables={"tool": (semconv.ARGS_SIZE, semconv.GEN_AI_TOOL_NAME)},
)
