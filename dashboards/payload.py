"""Workflow payload: its utilization, its growth, and the tools and paths that fill it."""

from __future__ import annotations

from agent_otel import semconv
from agent_otel.core.payload import FEW_TURNS
from agent_otel.settings import Settings
from dashboards import links
from dashboards.forecast import DIRECTION, PER_WORKFLOW, room, turns_left
from dashboards.frame import Frame, Row, glance
from dashboards.panels import (
    BYTES,
    COUNT,
    FEW_IS_GOOD,
    NO_RUNTIME,
    SHARE,
    Line,
    bars_of,
    events_of,
    graph_of,
    heatmap_of,
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
from dashboards.queries import RUNTIME, TOOL, WINDOW, WORKFLOW, drawn, highest, legend, lowest, mean, most_often, worst

FEW = ((None, "red"), (FEW_TURNS, "green"))
_NO_HISTORY = (f'{DIRECTION}!="{semconv.HISTORY}"',)
ROOM = ((None, "red"), (Settings().large_result_bytes, "green"))
NO_GROWTH = "no payload grows"
_OF_WORKFLOW = (WORKFLOW,)

_GLANCE = glance(
    stat_of(
        "Busiest runtime",
        "The durable runtime with the most payloads, and how many they are. No durable runtime seen: no Temporal, "
        "Dapr, LangGraph checkpointer or the like ran in these processes, and this dashboard stays empty.",
        highest(S.sum(semconv.PAYLOAD_SIZE, "_count", by=(RUNTIME,))),
        COUNT,
        who=legend(RUNTIME),
        empty=NO_RUNTIME,
    ),
    stat_of(
        "Worst payload",
        "The workflow with the highest share of its cap that a payload reached, as the upper bound of its bucket. From "
        f"{NEAR_RATIO:.0%} on the next turn may be the last; above 100 % the runtime rejects the payload or stalls. "
        "See What fills it.",
        highest(drawn(S.quantile(1, semconv.UTILIZATION, by=_OF_WORKFLOW))),
        SHARE,
        NEAR,
        who=legend(WORKFLOW),
        alerts=("AgentWorkflowPayloadNearCap", "AgentDaprPayloadNearStall"),
        links=LINKS,
        empty=NO_RUNTIME,
    ),
    stat_of(
        "Room left",
        "The workflow with the fewest free bytes below its cap. Red: less than one large result; the next tool call "
        "may end the execution. What fills it shows the results to drop or to store.",
        lowest(room(S, 1)),
        BYTES,
        ROOM,
        who=legend(WORKFLOW),
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
        "Executions with few turns left",
        "The workflow with the most executions whose payload had room for fewer than 3 more turns. Each fails if it "
        "continues: end or compact it.",
        most_often(S.sum(semconv.FEW_TURNS_LEFT, by=_OF_WORKFLOW), WORKFLOW),
        COUNT,
        FEW_IS_GOOD,
        who=legend(WORKFLOW),
        alerts=("AgentWorkflowPayloadNearCap",),
        links=LINKS,
    ),
    stat_of(
        "Near the cap",
        f"The workflow with the most payloads from {NEAR_RATIO:.0%} of their cap (AGENT_OTEL_PAYLOAD_NEAR_RATIO) up to "
        "it. There is time to act: see What fills it.",
        most_often(S.sum(semconv.PAYLOAD_NEAR_CAP, by=_OF_WORKFLOW), WORKFLOW),
        COUNT,
        none_of("near"),
        who=legend(WORKFLOW),
        alerts=("AgentWorkflowPayloadNearCap",),
        links=LINKS,
    ),
    stat_of(
        "Over the cap",
        "The workflow with the most payloads above their cap. The runtime rejects them or stalls, or its real cap is "
        "higher: then set AGENT_OTEL_CAPS.",
        most_often(S.sum(semconv.PAYLOAD_OVER_CAP, by=_OF_WORKFLOW), WORKFLOW),
        COUNT,
        none_of("over"),
        who=legend(WORKFLOW),
        alerts=("AgentWorkflowPayloadOverCap",),
        links=LINKS,
    ),
    stat_of(
        "Rejected",
        "The workflow with the most payloads that the runtime rejected. The execution has failed, or its retries will "
        "fail.",
        most_often(S.sum(semconv.PAYLOADS_REJECTED, by=_OF_WORKFLOW), WORKFLOW),
        COUNT,
        none_of("rejected"),
        who=legend(WORKFLOW),
        alerts=("AgentWorkflowPayloadOverCap",),
        links=LINKS,
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
    (
        heatmap_of(
            "Distribution of utilization",
            f"Payloads by share of their cap. Few cells above {NEAR_RATIO:.0%}: single executions are at risk; a band "
            "that moves up: all are.",
            S.buckets(semconv.UTILIZATION),
            SHARE,
            exemplars=True,
            empty=NO_RUNTIME,
        ),
        bars_of(
            "Worst payload by runtime and direction",
            "Upper bound of the highest share of the cap in the time range. input, state and history carry the whole "
            "conversation in each turn; output is one result. Red: over the cap.",
            worst(drawn(S.quantile(1, semconv.UTILIZATION, by=(*PER_WORKFLOW, DIRECTION)))),
            legend(WORKFLOW, DIRECTION, RUNTIME),
            SHARE,
            steps=NEAR,
            links=LINKS,
            empty=NO_RUNTIME,
        ),
    ),
)

_GROWTH = Row(
    "Growth",
    (
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
        events_of(
            "Fewer than 3 turns left",
            "Executions whose own growth reaches the cap within 3 turns, each counted once. Look up their traces, "
            "and the tools that fill them below.",
            [Line(S.events(semconv.FEW_TURNS_LEFT, by=PER_WORKFLOW), legend(*PER_WORKFLOW))],
            span=8,
            links=LINKS,
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
