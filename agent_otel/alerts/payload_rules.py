"""Recorded series and alerts about the payloads of durable runtimes and their caps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_otel import semconv
from agent_otel.alerts import promql
from agent_otel.alerts.rule_types import (
    ACTIVITY,
    COUNT,
    CRITICAL,
    DIRECTION,
    IN_JOB,
    RUNTIME,
    SHARE,
    WARNING,
    WORKFLOW,
    Alert,
    Recording,
    link,
    on_payload,
    value_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.alerts.promql import Query

_WORKFLOW: Final = (semconv.RUNTIME, semconv.WORKFLOW_NAME)
_DIRECTED: Final = (*_WORKFLOW, semconv.DIRECTION)
_BOUNDARY: Final = (*_WORKFLOW, semconv.ACTIVITY, semconv.DIRECTION)

# daprd's own histograms (1.17.7 and newer), payload ÷ --max-body-size, and their labels: dapr/dapr,
# pkg/diagnostics/workflow_monitoring.go.
DAPR_WORKFLOW: Final = "dapr_runtime_workflow_payload_size_ratio"
DAPR_ACTIVITY: Final = "dapr_runtime_workflow_activity_payload_size_ratio"
DAPR_LABELS: Final = ("app_id", "namespace", "workflow_name", "activity_name")


def utilization(query: Query) -> Recording:
    """Record the utilization of the fullest payload, as the upper bound of its bucket."""
    bucket = query.part(semconv.UTILIZATION, "bucket")
    return query.fullest(semconv.UTILIZATION.exposed_name, bucket, query.thresholds.payload_window, *_DIRECTED)


def turns_left(query: Query) -> Recording:
    """Record how many turns the fullest payload has left at the average growth per turn; no series without growth.

    Of all directions, the one with the fewest free bytes counts.
    """
    used, window = utilization(query), query.thresholds.growth_window
    capped = query.by(semconv.RUNTIME, semconv.DIRECTION)
    cap = f"min by ({capped}) ({query.counter(semconv.PAYLOAD_CAP)})"
    free = f"clamp_min(1 - {used}, 0)\n* on ({capped}) group_left ()\n{cap}"
    grown, turns = (
        f"sum by ({query.by(*_WORKFLOW)}) (rate({query.part(semconv.PAYLOAD_GROWTH, part)}[{window}]))"
        for part in ("sum", "count")
    )
    least = f"min by ({query.by(*_WORKFLOW)}) (\n{promql.indented(free)}\n)"
    per_turn = promql.indented(f"{grown}\n/\n{turns}\n> 0")
    name = query.record("agent_otel_workflow_payload", "turns_left", *_WORKFLOW)
    return Recording(name, f"{least}\n/\n(\n{per_turn}\n)", (used,))


def near_cap(query: Query) -> Alert:
    """Return a critical alert: the runtime may reject the next turn's payload, and the run's work is lost with it."""
    chosen = query.thresholds
    used = utilization(query)
    near = query.counted(semconv.PAYLOAD_NEAR_CAP, chosen.payload_window, *_DIRECTED)
    return Alert(
        "AgentWorkflowPayloadNearCap",
        CRITICAL,
        f"{used} > {chosen.payload_near_ratio:g}\nand {near} > 0",
        reads=(used, near),
        summary=f"A payload of workflow {WORKFLOW} is near its cap",
        description=f"A payload ({DIRECTION}) of workflow {WORKFLOW} on {RUNTIME}{IN_JOB} has reached {SHARE} of its "
        f"cap within {chosen.payload_window}. Above the cap the runtime rejects it, and the run fails or retries "
        "forever. End or compact the execution now.",
        dashboard=on_payload(),
        keep=chosen.keep_firing,
    )


def over_cap(query: Query) -> Alert:
    """Return a critical alert: runs fail or are stuck now."""
    chosen = query.thresholds
    window = chosen.payload_over_window
    over, rejected = (
        query.counted(metric, window, *_BOUNDARY) for metric in (semconv.PAYLOAD_OVER_CAP, semconv.PAYLOADS_REJECTED)
    )
    return Alert(
        "AgentWorkflowPayloadOverCap",
        CRITICAL,
        f"{over} > 0\nor {rejected} > 0",
        reads=(over, rejected),
        summary=f"Payloads of workflow {WORKFLOW} are over their cap",
        description=f"Payloads ({DIRECTION}){ACTIVITY} of workflow {WORKFLOW} on {RUNTIME}{IN_JOB} over their cap or "
        f"rejected within {window}: {COUNT}. Their runs fail or stall, and a retry sends the same bytes. Terminate or "
        "reset them.",
        dashboard=on_payload(),
        keep=chosen.keep_firing,
    )


def few_turns_left(query: Query) -> Alert:
    """Return a warning: there is time to act before the page."""
    chosen = query.thresholds
    window = chosen.few_turns_window
    few = query.counted(semconv.FEW_TURNS_LEFT, window, *_WORKFLOW)
    return Alert(
        "AgentWorkflowFewTurnsLeft",
        WARNING,
        f"{few} > 0",
        reads=(few,),
        summary=f"Executions of workflow {WORKFLOW} have few turns left",
        description=f"Executions of workflow {WORKFLOW} on {RUNTIME}{IN_JOB} that reached, within {window}, fewer than "
        f"3 turns to their cap at their recent growth: {COUNT}. End or compact them before the runtime rejects them.",
        dashboard=on_payload(),
        keep=chosen.keep_firing,
    )


def stuck_retries(query: Query) -> Alert:
    """Return a critical alert: the run makes no progress, the retries cost money, and no timeout ends them."""
    chosen = query.thresholds
    window = chosen.stuck_retries_window
    stuck = query.counted(semconv.STUCK_RETRIES, window, *_BOUNDARY)
    return Alert(
        "AgentWorkflowStuckRetries",
        CRITICAL,
        f"{stuck} > 0",
        reads=(stuck,),
        summary=f"Workflow {WORKFLOW} retries rejected payloads",
        description=f"Payloads ({DIRECTION}){ACTIVITY} of workflow {WORKFLOW} on {RUNTIME}{IN_JOB} rejected again "
        f"within {window}: {COUNT}. Each retry sends the same bytes and cannot succeed. Terminate the executions.",
        dashboard=on_payload(),
        keep=chosen.keep_firing,
    )


def dapr_near_stall(query: Query) -> Alert:
    """Return a critical alert: daprd stalls a workflow above 0.95 and reports no error to the application.

    The alert cannot fire where daprd's metrics are not scraped.
    """
    chosen = query.thresholds
    workflow, activity = (
        query.fullest(name, query.select(f"{name}_bucket"), chosen.dapr_window, *labels)
        for name, labels in ((DAPR_WORKFLOW, DAPR_LABELS[:3]), (DAPR_ACTIVITY, DAPR_LABELS))
    )
    name, app = value_of(DAPR_LABELS[2]), value_of(DAPR_LABELS[0])
    of_activity = f"{{{{ with $labels.{DAPR_LABELS[3]} }}}} (activity {{{{ . }}}}){{{{ end }}}}"
    return Alert(
        "AgentDaprPayloadNearStall",
        CRITICAL,
        f"{workflow} > {chosen.dapr_ratio:g}\nor {activity} > {chosen.dapr_ratio:g}",
        reads=(workflow, activity),
        summary=f"daprd is about to stall workflow {name}",
        description=f"A dispatch of workflow {name}{of_activity} of app {app} has reached {SHARE} of --max-body-size "
        f"within {chosen.dapr_window}. Above 95 % daprd stalls the workflow without an error. Raise --max-body-size.",
        dashboard=link("agent-otel-payload", workflow=DAPR_LABELS[2]),
        keep=chosen.keep_firing,
    )


#: Series that no alert reads; panels and runbooks do.
RECORDINGS: Final[tuple[Callable[[Query], Recording], ...]] = (turns_left,)
ALERTS: Final[tuple[Callable[[Query], Alert], ...]] = (
    near_cap,
    over_cap,
    few_turns_left,
    stuck_retries,
    dapr_near_stall,
)
