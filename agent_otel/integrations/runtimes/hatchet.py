"""Hatchet: a task around its function, its output where the worker serialises it.

The worker receives actions and sends events in a process of its own, which knows neither tasks nor what they cost; what
reaches the tasks' process is an object, so that the size of an input is that of its compact JSON. Outputs are the text
that is sent. Batches and ``mock_run`` are passed over.
"""

from __future__ import annotations

from typing import Any

from agent_otel._internal.object_kinds import class_of, fields, is_empty
from agent_otel.core import step_handler
from agent_otel.core.durable_runs import durable_runs
from agent_otel.core.types import Invocation, Step, StepOutcome
from agent_otel.integrations.hooks import Hook, Within, after
from agent_otel.integrations.payloads import carried_or_none
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.semconv import INPUT, OUTPUT

ENTRY = Integration(
    "hatchet",
    distribution="hatchet-sdk",
    minimum="1.43",
    tested="1.43, its runner without an engine",
    uncovered="batches and `mock_run`; the exact bytes of an input: its compact JSON counts",
    sites=(
        Candidate(
            "hatchet_sdk.worker.runner.runner",
            step_run="Runner.handle_start_step_run",
            serialised="Runner.serialize_output",
            task="Task.call Task.aio_call",
        ),
    ),
)

_RUNTIME = "hatchet"

#: Step runs that the worker has begun, by their action's key: the visit, once there is one.
_begun: dict[str, Any] = {}
# A task's callbacks run with the context in which they were added; threads have none of it.
_action: Within[Any] = Within("agent_otel_hatchet_action")


def _beginning(invocation: Invocation) -> Any:
    action = invocation.arg(0, "action")
    _begun[action.key] = None
    return action


def _over(invocation: Invocation, value: Any, error: BaseException | None) -> None:
    action = invocation.state
    _finish(action, StepOutcome(error_type="CancelledError"))
    _begun.pop(action.key, None)


def _finish(action: Any, outcome: StepOutcome) -> None:
    visit = _begun.get(action.key)
    if visit is not None:
        _begun[action.key] = None
        visit.finish(outcome)


def _calling(invocation: Invocation) -> Any:
    task, action = invocation.instance, invocation.arg(0, "ctx").action
    if action.key not in _begun:
        return None
    # The engine's instrumentation adds it where a run is started.
    durable_runs.propagated(action.workflow_run_id, fields(action.additional_metadata).get("traceparent"))
    step = Step(_RUNTIME, task.name, task.workflow.name, action.workflow_run_id, action.retry_count + 1)
    visit = step_handler.begin_step(step)
    if visit is None:
        return None
    if (action.durable_task_invocation_count or 1) == 1:  # a durable task that was put away begins again with the same
        payload = action.action_payload
        given = {"input": payload.input, **({} if is_empty(payload.parents) else {"parents": payload.parents})}
        step_handler.object_carried(visit.step, INPUT, given)
    return action, visit


def _called(invocation: Invocation, value: Any, error: BaseException | None) -> None:
    action, visit = invocation.state
    visit.leave()
    _begun[action.key] = visit
    if error is not None:
        _finish(action, StepOutcome(error_type=class_of(error)))


@after
def serialised(_: Invocation, text: Any, error: Any) -> None:
    """Report the serialised output; an output that is no JSON object is an error of the task."""
    action = _action.get()
    if action is not None:
        _finish(action, StepOutcome(carried_or_none(OUTPUT, text), None if error is None else class_of(error)))


step_run = Hook(_beginning, _over, within=_action)
task = Hook(_calling, _called)
