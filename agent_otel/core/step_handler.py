"""Entry points that adapters of durable runtimes call to report steps and payloads.

They are apart from those of `handler`, because a program without a durable runtime needs none of what they load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel._internal import errors
from agent_otel.core import execution_context, named_execution, step_visit, switches
from agent_otel.core import payload as payloads
from agent_otel.core.durable_runs import durable_runs
from agent_otel.core.executions import executions
from agent_otel.core.handler import execution_named
from agent_otel.core.names import plain_direction
from agent_otel.core.types import Payload
from agent_otel.measure.size import size
from agent_otel.telemetry.setup import telemetry

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation, Step, StepReader


@errors.guarded("step.enter")
def enter_step(reader: StepReader, invocation: Invocation) -> step_visit.WrappedStep | None:
    """Begin to measure a function that runs a step of a durable runtime; return None when it is not to be recorded."""
    if not switches.enabled or switches.muted.get():
        return None
    step = reader.step(invocation)
    return None if step is None else step_visit.WrappedStep(reader, payloads.placed(step), invocation)


@errors.guarded("step.enter")
def begin_step(
    step: Step, carried: Payload | None = None, *, opened_by_handler: bool = False
) -> step_visit.StepVisit | None:
    """Begin a step whose end the adapter learns of elsewhere: it calls the visit's ``finish``.

    ``carried`` is the step's input. Where ``opened_by_handler`` is true, `step_started` opens the span. Return None
    when nothing is to be recorded.
    """
    if not switches.enabled or switches.muted.get():
        return None
    visit = step_visit.StepVisit(payloads.placed(step), opened_by_handler=opened_by_handler)
    visit.begin(carried)
    return visit


@errors.guarded("step.start")
def step_started() -> None:
    """Open the step's span: the runtime is about to run the step's code, and all interceptors have opened theirs."""
    step_visit.step_started()


@errors.guarded("execution.began")
def execution_began(execution_id: str, workflow: str, traceparent: str | None = None) -> None:
    """Report the run of a workflow that begins, or goes on, in this process, which calls `execution_ended` later.

    ``traceparent`` is the W3C header of a span that the runtime itself has propagated to the run.
    """
    execution_named(execution_id, workflow)
    plain_id = execution_context.id_or_none(execution_id)
    if switches.enabled and plain_id is not None:
        workflow_name = execution_context.text_or_none(workflow)
        durable_runs.began(plain_id, workflow_name, execution_context.text_or_none(traceparent))


@errors.guarded("execution.finish")
def execution_ended(execution_id: str) -> None:
    """Record the totals of an execution that a runtime reports as ended, whatever its outcome."""
    plain_id = execution_context.id_or_none(execution_id)
    if plain_id is not None:
        durable_runs.ended(plain_id)
    execution = executions.known(plain_id) if plain_id is not None else None
    if switches.enabled and plain_id is not None and execution is not None:
        named_execution.end(execution.labelled or telemetry(), plain_id, execution.workflow, None)


def payload(step: Step, reading: Payload, started_ns: int | None = None, refused: str | None = None) -> None:
    """Record a payload that a runtime made outside any wrapped step function.

    ``started_ns`` (epoch nanoseconds) is the start of the step that the payload ends. ``refused`` is the runtime's
    message when it rejected the payload.
    """
    if switches.enabled:
        with errors.reported("payload"):
            step_visit.payload(payloads.placed(step), reading, started_ns, refused)


def current_step() -> Step | None:
    """Return the step that runs in this context, for payloads that its own code hands on."""
    return execution_context.current_step() if switches.enabled else None


@errors.guarded("payload")
def is_over_cap(step: Step, reading: Payload) -> bool:
    """Return true when a payload is larger than its cap; its receiver, where it would be measured, never gets it."""
    return switches.enabled and payloads.is_over_cap(step, reading)


@errors.guarded("payload")
def object_carried(step: Step, direction: str, value: Any) -> None:
    """Record a payload that the program reports itself, serialised or as the object to be serialised."""
    if not switches.enabled or switches.muted.get():
        return
    direction = plain_direction(direction)
    # type() and not isinstance(), which would read __class__ from the value; the value may be a lazy proxy.
    if issubclass(type(value), str | bytes | bytearray | memoryview):
        reading = Payload(direction, size(value).bytes, data=value)
    else:
        reading = Payload(direction, size(value).bytes, value=value)
    step_visit.payload(payloads.named(step), reading)


@errors.guarded("payload.refused")
def payload_refused(step: Step, direction: str) -> None:
    """Count a payload that a runtime rejected after it was reported, or that no adapter could measure."""
    if switches.enabled:
        payloads.refused(payloads.placed(step), direction)
