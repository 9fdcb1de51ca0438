"""Workflow payload: how near to its cap, how fast it comes nearer, and who fills it."""

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
from dashboards.queries import (
    RANGE,
    RUNTIME,
    WINDOW,
    WORKFLOW,
    drawn,
    legend,
    mean,
    or_zero,
    worst,
)

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
        "The largest share of its cap that a payload took, as the upper bound of its bucket. From "
        f"{NEAR_RATIO:.0%} on the next turn may be the last; above 100 % the runtime refuses it or stalls. Look "
        "under What fills it.",
        S.quantile(1, semconv.UTILIZATION),
        SHARE,
        NEAR,
    ),
    stat_of(
        "Room left",
        "Bytes that the payload nearest to its cap has left. Red: less than one large result, and the next call "
        "of a tool may end the execution. What fills it says whose results to drop or to store.",
        f"min({_room(1)})",
        BYTES,
        _ROOM,
    ),
    stat_of(
        "Fewest turns left",
        "Turns that fit at the mean growth, for the workflow that has fewest, from the p95 of its payloads. Below "
        "3: drop old results from the state, or store them and carry a reference. None: nothing grows.",
        f"min({_turns_left()})",
        COUNT,
        _FEW,
    ),
    stat_of(
        "Executions near their end",
        "Executions whose own payload had room for fewer than 3 more turns. Each is one that dies if it goes on.",
        or_zero(S.sum(semconv.FEW_TURNS_LEFT)),
        COUNT,
        FEW_IS_GOOD,
    ),
    stat_of(
        "Near the cap",
        f"Payloads from {NEAR_RATIO:.0%} of their cap (AGENT_OTEL_PAYLOAD_NEAR_RATIO) up to it. A warning with "
        "time left.",
        or_zero(S.sum(semconv.PAYLOAD_NEAR_CAP)),
        COUNT,
        FEW_IS_GOOD,
    ),
    stat_of(
        "Over the cap",
        "Payloads above their cap: refused, stalled, or taken by an engine that is configured for more (set "
        "AGENT_OTEL_CAPS then).",
        or_zero(S.sum(semconv.PAYLOAD_OVER_CAP)),
        COUNT,
        NONE_IS_GOOD,
    ),
    stat_of(
        "Refused",
        "Payloads that the runtime refused. The execution has failed, or is about to be retried in vain.",
        or_zero(S.sum(semconv.PAYLOADS_REJECTED)),
        COUNT,
        NONE_IS_GOOD,
    ),
    stat_of(
        "Stuck retries",
        "Refusals of what the same execution had refused before. No retry can succeed: end the execution, then "
        "make its state smaller.",
        or_zero(S.sum(semconv.STUCK_RETRIES)),
        COUNT,
        NONE_IS_GOOD,
    ),
)

_CAP = Row(
    "Against the cap",
    (
        graph_of(
            "Worst payload by workflow",
            "Share of the cap that each workflow's largest payload took. Dashed: near and at the cap. A sawtooth is "
            "an agent that is restarted; a line that only climbs ends at the cap. Dots lead to traces.",
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
            "Sizes by workflow; dashed in red the caps of the chosen runtimes, by direction. The distance is the room "
            "left. A line that meets its cap names the workflow to shrink.",
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
            f"Payloads by share of their cap. Few cells above {NEAR_RATIO:.0%} are single executions that die; a band "
            "that moves up is all of them.",
            S.buckets(semconv.UTILIZATION),
            SHARE,
            exemplars=True,
        ),
        bars_of(
            "Worst payload by runtime and direction",
            "Upper bound of the largest share of the cap in the time range. input, state and history carry the whole "
            "conversation again and again; output is one result. Red: over the cap.",
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
            "Bytes that a turn adds to the payload nearest to its cap, on average. A jump is a tool that began to "
            "return more, or a second copy in the state.",
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
            "Turns that fit into the cap at the mean growth, from the p95 of each workflow's payloads. Below 3 (red) "
            "an execution of usual length ends at the cap. Single executions are counted on the right.",
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
            "Single executions whose own growth meets the cap within 3 turns, counted once each. Any: look up their "
            "traces, and what fills them below.",
            [Line(S.events(semconv.FEW_TURNS_LEFT, by=PER_WORKFLOW), legend(*PER_WORKFLOW))],
            span=8,
            links=LINKS,
        ),
    ),
)

DASHBOARD = Frame(
    uid=links.PAYLOAD,
    title="Agents: workflow payload",
    description="How near the payloads of durable runtimes are to their caps, how fast they grow, and who fills them.",
    rows=(_GLANCE, _CAP, _GROWTH, FILL, BOUNDARIES, HISTORIES, DAPR, TRACES),
    variables={
        "runtime": (semconv.PAYLOAD_SIZE, semconv.RUNTIME),
        "workflow": (semconv.PAYLOAD_SIZE, semconv.WORKFLOW_NAME),
        "activity": (semconv.PAYLOAD_SIZE, semconv.ACTIVITY),
        "tool": (semconv.PAYLOAD_BY_TOOL, semconv.GEN_AI_TOOL_NAME),
    },
)
