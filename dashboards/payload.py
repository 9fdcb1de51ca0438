"""Workflow payload: its utilization, its growth, and the tools and paths that fill it."""

from __future__ import annotations

from agent_otel import semconv
from agent_otel.core.payload import FEW_TURNS
from agent_otel.settings import Settings
from dashboards import links
from dashboards.frame import Frame, Row, glance
from dashboards.panels import (
    BYTES,
    COUNT,
    FEW_IS_GOOD,
    NONE_IS_GOOD,
    SHARE,
    Line,
    bars_of,
    events_of,
    graph_of,
    heatmap_of,
    stat_of,
)
from dashboards.payload_parts import (
    BOUNDARIES,
    DAPR,
    DIRECTION,
    FILL,
    HISTORIES,
    LINKS,
    NEAR,
    NEAR_RATIO,
    PER_WORKFLOW,
    TRACES,
    S,
    cap,
)
from dashboards.queries import RANGE, RUNTIME, WINDOW, WORKFLOW, drawn, legend, mean, or_zero, worst

_FEW = ((None, "red"), (FEW_TURNS, "green"))
_NO_HISTORY = (f'{DIRECTION}!="{semconv.HISTORY}"',)
_ROOM = ((None, "red"), (Settings().large_result_bytes, "green"))


def _room(at: float) -> str:
    """Bytes that still fit, by runtime, workflow and direction.

    From the utilization, whose buckets are narrow where they matter; those of sizes are megabytes wide there.
    """
    used = drawn(S.quantile(at, semconv.UTILIZATION, by=(*PER_WORKFLOW, DIRECTION)))
    on = f"on ({RUNTIME}, {DIRECTION})"
    return f"clamp_min(1 - ({used}), 0) * {on} group_left () {cap(RUNTIME, DIRECTION, over=RANGE)}"


def _turns_left() -> str:
    """Whole turns that fit at the mean growth, by runtime and workflow: of the direction that is nearest to its cap."""
    per_workflow = ", ".join(PER_WORKFLOW)
    used = drawn(S.quantile(0.95, semconv.UTILIZATION, by=(*PER_WORKFLOW, DIRECTION)))
    nearest = f"({used}) == on ({per_workflow}) group_left () max by ({per_workflow}) ({used})"
    room = f"min by ({per_workflow}) ({_room(0.95)} and on ({per_workflow}, {DIRECTION}) ({nearest}))"
    growth = mean(
        S.sum(semconv.PAYLOAD_GROWTH, "_sum", by=PER_WORKFLOW),
        S.sum(semconv.PAYLOAD_GROWTH, "_count", by=PER_WORKFLOW),
    )
    return f"floor({room} / ({growth} > 0))"


_GLANCE = glance(
    stat_of(
        "Worst payload",
        "The highest share of its cap that a payload reached, as the upper bound of its bucket. From "
        f"{NEAR_RATIO:.0%} on the next turn may be the last; above 100 % the runtime rejects the payload or stalls. "
        "See What fills it.",
        S.quantile(1, semconv.UTILIZATION),
        SHARE,
        NEAR,
    ),
    stat_of(
        "Room left",
        "Free bytes of the payload nearest to its cap. Red: less than one large result; the next tool call may end "
        "the execution. What fills it shows the results to drop or to store.",
        f"min({_room(1)})",
        BYTES,
        _ROOM,
    ),
    stat_of(
        "Fewest turns left",
        "Turns left at the mean growth, for the workflow with the fewest, from the p95 of its payloads. Below 3: "
        "drop old results from the state, or store them and carry a reference. No data: no payload grows.",
        f"min({_turns_left()})",
        COUNT,
        _FEW,
    ),
    stat_of(
        "Executions with few turns left",
        "Executions whose payload had room for fewer than 3 more turns. Each fails if it continues: end or compact it.",
        or_zero(S.sum(semconv.FEW_TURNS_LEFT)),
        COUNT,
        FEW_IS_GOOD,
    ),
    stat_of(
        "Near the cap",
        f"Payloads from {NEAR_RATIO:.0%} of their cap (AGENT_OTEL_PAYLOAD_NEAR_RATIO) up to it. There is time to act.",
        or_zero(S.sum(semconv.PAYLOAD_NEAR_CAP)),
        COUNT,
        FEW_IS_GOOD,
    ),
    stat_of(
        "Over the cap",
        "Payloads above their cap. The runtime rejects them or stalls, or its real cap is higher: then set "
        "AGENT_OTEL_CAPS.",
        or_zero(S.sum(semconv.PAYLOAD_OVER_CAP)),
        COUNT,
        NONE_IS_GOOD,
    ),
    stat_of(
        "Rejected",
        "Payloads that the runtime rejected. The execution has failed, or its retries will fail.",
        or_zero(S.sum(semconv.PAYLOADS_REJECTED)),
        COUNT,
        NONE_IS_GOOD,
    ),
    stat_of(
        "Stuck retries",
        "Rejected payloads that the same execution had sent before. No retry can succeed: terminate the execution, "
        "then make its state smaller.",
        or_zero(S.sum(semconv.STUCK_RETRIES)),
        COUNT,
        NONE_IS_GOOD,
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
        ),
        graph_of(
            "Payload size, p95, and the caps",
            "Sizes by workflow; dashed red lines are the caps of the chosen runtimes, by direction. The distance is "
            "the free room. Shrink a workflow whose line reaches its cap.",
            [
                Line(
                    S.quantile(0.95, semconv.PAYLOAD_SIZE, by=PER_WORKFLOW, over=WINDOW),
                    legend(*PER_WORKFLOW),
                    exemplars=True,
                ),
                Line(cap(RUNTIME, DIRECTION, matchers=_NO_HISTORY), f"cap {legend(RUNTIME, DIRECTION)}", limit=True),
            ],
            BYTES,
            logarithmic=True,
            links=LINKS,
        ),
        heatmap_of(
            "Distribution of utilization",
            f"Payloads by share of their cap. Few cells above {NEAR_RATIO:.0%}: single executions are at risk; a band "
            "that moves up: all are.",
            S.buckets(semconv.UTILIZATION),
            SHARE,
            exemplars=True,
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
            f"sort({_turns_left()})",
            legend(*PER_WORKFLOW),
            COUNT,
            steps=_FEW,
            span=8,
            most=20,
            links=LINKS,
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
    rows=(_GLANCE, _CAP, _GROWTH, FILL, BOUNDARIES, HISTORIES, DAPR, TRACES),
    variables={
        "runtime": (semconv.PAYLOAD_SIZE, semconv.RUNTIME),
        "workflow": (semconv.PAYLOAD_SIZE, semconv.WORKFLOW_NAME),
        "activity": (semconv.PAYLOAD_SIZE, semconv.ACTIVITY),
        "tool": (semconv.PAYLOAD_BY_TOOL, semconv.GEN_AI_TOOL_NAME),
    },
)
