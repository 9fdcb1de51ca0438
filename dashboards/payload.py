"""Workflow payload: its utilization, its growth, and the tools and paths that fill it."""

from __future__ import annotations

from agent_otel import semconv
from agent_otel.core.payload import FEW_TURNS
from agent_otel.settings import Settings
from dashboards import links
from dashboards.forecast import DIRECTION, PER_WORKFLOW, filled, turns_left
from dashboards.frame import Frame, Row, glance
from dashboards.panels import (
    BYTES,
    COUNT,
    NO_RUNTIME,
    SHARE,
    Line,
    bars_of,
    graph_of,
    none_of,
    stat_of,
)
from dashboards.payload_parts import (
    BOUNDARIES,
    DAPR,
    FILL,
    HISTORIES,
    LINKS,
    NEAR,
    NEAR_RATIO,
    TRACES,
    S,
    caps_in_use,
)
from dashboards.queries import RUNTIME, TOOL, WINDOW, WORKFLOW, highest, legend, lowest, mean, most_often

FEW = ((None, "red"), (FEW_TURNS, "green"))
_NO_HISTORY = (f'{DIRECTION}!="{semconv.HISTORY}"',)
ROOM = ((None, "red"), (Settings().large_result_bytes, "green"))
NO_GROWTH = "no payload grows"
_OF_WORKFLOW = (WORKFLOW,)

_GLANCE = glance(
    stat_of(
        "Worst payload",
        f"The workflow whose largest payload has the most of its cap. From {NEAR_RATIO:.0%} on the next turn may be "
        "the last. Above 100 % the runtime rejects the payload or stalls. See What fills it.",
        highest(filled(S, *_OF_WORKFLOW)),
        SHARE,
        NEAR,
        who=legend(WORKFLOW),
        alerts=("AgentWorkflowPayloadNearCap", "AgentDaprPayloadNearStall"),
        links=LINKS,
        empty=NO_RUNTIME,
    ),
    stat_of(
        "Fewest turns left",
        "The workflow with the fewest turns left at the mean growth, from the p95 of its payloads. Below 3: drop old "
        "results from the state, or store them and carry a reference. No data: no payload grows.",
        lowest(turns_left(S)),
        COUNT,
        FEW,
        who=legend(WORKFLOW),
        alerts=("AgentWorkflowPayloadNearCap",),
        links=LINKS,
        empty=NO_GROWTH,
    ),
    stat_of(
        "Stuck retries",
        "The workflow with the most rejected payloads that the same execution sent again. No retry can succeed: "
        "terminate the execution, then make its state smaller.",
        most_often(S.sum(semconv.STUCK_RETRIES, by=_OF_WORKFLOW), WORKFLOW),
        COUNT,
        none_of("stuck"),
        who=legend(WORKFLOW),
        alerts=("AgentWorkflowStuckRetries",),
        links=LINKS,
    ),
    stat_of(
        "Most carried tool",
        "The tool whose results are the most bytes of analysed payloads, `_other` being what no tool returned. Give it "
        "pages or a filter, or store its results; see What fills it.",
        highest(S.sum(semconv.PAYLOAD_BY_TOOL, by=(TOOL,))),
        BYTES,
        who=legend(TOOL),
        alerts=("AgentStateCostly",),
        links=(links.to_dashboard(links.TOOLS, "This tool's results", tool=links.field(TOOL)),),
    ),
)

_CAP = Row(
    "Utilization of the cap",
    (
        graph_of(
            "Worst payload by workflow",
            "Share of the cap that each workflow's largest payload reached. Dashed: near and at the cap. A sawtooth: "
            "executions restart; a line that only rises ends at the cap. Dots lead to traces.",
            [
                Line(
                    S.quantile(1, semconv.UTILIZATION, by=PER_WORKFLOW, over=WINDOW),
                    legend(*PER_WORKFLOW),
                    exemplars=True,
                )
            ],
            SHARE,
            steps=NEAR,
            links=LINKS,
            empty=NO_RUNTIME,
        ),
        graph_of(
            "Payload size, p95, and the caps",
            "Sizes by workflow; dashed red lines are the caps of their runtimes, by direction. The distance is "
            "the free room. Shrink a workflow whose line reaches its cap.",
            [
                Line(
                    S.quantile(0.95, semconv.PAYLOAD_SIZE, by=PER_WORKFLOW, over=WINDOW),
                    legend(*PER_WORKFLOW),
                    exemplars=True,
                ),
                Line(
                    caps_in_use(semconv.PAYLOAD_SIZE, DIRECTION, matchers=_NO_HISTORY),
                    f"cap {legend(RUNTIME, DIRECTION)}",
                    limit=True,
                ),
            ],
            BYTES,
            logarithmic=True,
            links=LINKS,
            empty=NO_RUNTIME,
        ),
    ),
    open=True,
)

_SPREAD = Row(
    "Spread of utilization",
    (),
)

_GROWTH = Row(
    "Growth",
    (
        graph_of(
            "Written to stores, in $window",
            "Bytes that threads write into stores that keep every payload, and the new ones among them. Far more "
            "written than new: keep fewer states, or store large results elsewhere (AGENT_OTEL_CLAIM_CHECK).",
            [
                Line(S.sum(semconv.STORE_WRITTEN, by=(WORKFLOW,), over=WINDOW), f"written {legend(WORKFLOW)}"),
                Line(S.sum(semconv.STORE_NEW, by=(WORKFLOW,), over=WINDOW), f"new {legend(WORKFLOW)}"),
            ],
            BYTES,
            links=LINKS,
            empty=NO_RUNTIME,
        ),
        graph_of(
            "Growth per turn",
            "Mean bytes that a turn adds to the payload nearest to its cap. A jump: a tool began to return more, or "
            "the state holds a second copy.",
            [
                Line(
                    mean(
                        S.sum(semconv.PAYLOAD_GROWTH, "_sum", by=PER_WORKFLOW, over=WINDOW, function="rate"),
                        S.sum(semconv.PAYLOAD_GROWTH, "_count", by=PER_WORKFLOW, over=WINDOW, function="rate"),
                    ),
                    legend(*PER_WORKFLOW),
                )
            ],
            BYTES,
            span=8,
            links=LINKS,
        ),
        bars_of(
            "Turns left to the cap",
            "Turns left to the cap at the mean growth, from the p95 of each workflow's payloads. Below 3 (red) an "
            "execution of usual length reaches the cap. The panel on the right counts single executions.",
            f"sort({turns_left(S)})",
            legend(*PER_WORKFLOW),
            COUNT,
            steps=FEW,
            span=8,
            most=20,
            links=LINKS,
            empty=NO_GROWTH,
        ),
    ),
)

DASHBOARD = Frame(
    uid=links.PAYLOAD,
    title="Agents: workflow payload",
    description="Payloads of durable runtimes: utilization, growth, and the tools and paths that fill them.",
    rows=(_GLANCE, _CAP, BOUNDARIES, _GROWTH, FILL, _SPREAD, HISTORIES, DAPR, TRACES),
    variables={
        "workflow": (semconv.PAYLOAD_SIZE, semconv.WORKFLOW_NAME),
        "tool": (semconv.PAYLOAD_BY_TOOL, semconv.GEN_AI_TOOL_NAME),
    },
)
