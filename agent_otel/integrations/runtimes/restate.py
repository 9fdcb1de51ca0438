"""Restate: the inputs, results and state of handlers, and the payload that each of their runs adds to the journal.

The SDK passes a run's name where the run is registered and its bytes where they are proposed to the server, both to the
state machine of the attempt; the adapter joins them by that state machine. While the journal is replayed no run is
executed and no byte is proposed again.

The server does not report to the SDK that it refuses a result: it ends the attempt and begins another. The adapter
counts a refusal when a run, or a whole handler, is executed again after its result was handed over. Results below 1 MiB
are excluded: no server runs with a smaller limit, and a retry after a lost connection must not count as a refusal.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agent_otel._internal.failures import context_of
from agent_otel._internal.object_kinds import class_of, fields
from agent_otel.core import execution_context, step_handler
from agent_otel.core import handler as observer
from agent_otel.core.durable_runs import durable_runs
from agent_otel.core.types import Invocation, Payload, Step, StepOutcome, StepReader
from agent_otel.integrations.hooks import Hook, on_return
from agent_otel.integrations.payloads import Recent
from agent_otel.integrations.readers import nothing
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.semconv import INPUT, OUTPUT, STATE

if TYPE_CHECKING:
    _Key = tuple[str | None, int | None]

ENTRY = Integration(
    "restate",
    distribution="restate-sdk",
    minimum="1.0",
    tested="1.3, the server 1.7.12",
    uncovered="the inputs of runs, which are references; a tool in a handler's own code counts again in each attempt",
    sites=(
        Candidate(
            "restate.server_context",
            run="ServerInvocationContext.create_run_coroutine",
            invocation="ServerInvocationContext.enter",
            handler="invoke_handler",
            registered="VMWrapper.sys_run",
            success="VMWrapper.propose_run_completion_success",
            failure="VMWrapper.propose_run_completion_failure VMWrapper.propose_run_completion_transient "
            "VMWrapper.propose_run_completion_transient_with_delay_override",
            state="VMWrapper.sys_set_state",
        ),
    ),
)

_RUNTIME = "restate"
_REFUSABLE_BYTES = 1024 * 1024


class _Attempt:
    """An attempt at an invocation: its step, the names of its runs and their outcomes."""

    __slots__ = ("large", "names", "outcomes", "step")

    def __init__(self, step: Step) -> None:
        self.step = step
        self.names: dict[int, str] = {}
        self.outcomes: dict[int, StepOutcome] = {}
        self.large: list[_Key] = []


_attempts: WeakKeyDictionary[Any, _Attempt] = WeakKeyDictionary()
# Invocations that have begun, and large results that were handed over: by run, or None for the handler's own.
_begun, _proposed = Recent(), Recent()
# Runs that this process has executed: the SDK names no attempt.
_executed = Recent()


def _invocation() -> str | None:
    """Return the id of the invocation whose handler runs here, for tools in the handler's own code."""
    module = sys.modules.get("restate.server_context")
    context = None if module is None else module._restate_context_var.get(None)
    return None if context is None else context.invocation.invocation_id


execution_context.workflows.append(_invocation)


@Hook
def invocation(invocation: Invocation) -> None:
    """Begin an attempt and report its input, if the journal contains nothing else yet."""
    context = invocation.instance
    handler, begun = context.handler, context.invocation
    name = f"{handler.service_tag.name}/{handler.name}"
    step = Step(_RUNTIME, None, name, begun.invocation_id)
    _attempts[context.vm] = _Attempt(step)
    observer.execution_named(begun.invocation_id, name)
    durable_runs.propagated(begun.invocation_id, fields(fields(context).get("attempt_headers")).get("traceparent"))
    given = begun.input_buffer
    if given and not context.vm.is_replaying():
        step_handler.payload(step, Payload(INPUT, len(given), given, again=_begun.note(step.execution) > 1))


@on_return
def registered(invocation: Invocation, registered: Any) -> None:
    if not registered.replayed:
        _attempts[invocation.instance].names[registered.handle] = invocation.arg(0, "name")


def _step(invocation: Invocation) -> Step:
    attempt, handle = _attempts[invocation.instance.vm], invocation.arg(0, "handle")
    step = attempt.step._replace(activity=attempt.names.pop(handle))
    key = (step.execution, handle)
    if _proposed.count(key):
        step_handler.payload_refused(step, OUTPUT)
    return step._replace(attempt=_executed.note(key))


def _raised(error: BaseException) -> StepOutcome:
    """Return the step's own error, which is the context of the one that the state machine raises to end an attempt."""
    own = context_of(error)
    return StepOutcome(error_type=class_of(error if own is None else own))


@Hook
def success(invocation: Invocation) -> None:
    attempt = _attempts[invocation.instance]
    handle, output = invocation.arg(0, "handle"), invocation.arg(1, "output")
    attempt.outcomes[handle] = StepOutcome(Payload(OUTPUT, len(output), output))
    _hand_over(attempt, handle, output)


@Hook
def failure(invocation: Invocation) -> None:
    """Keep the failure that the SDK proposes for a step; the server may lose this attempt's other proposals."""
    attempt = _attempts[invocation.instance]
    attempt.outcomes[invocation.arg(0, "handle")] = StepOutcome(error_type=class_of(sys.exc_info()[1]))
    for key in attempt.large:
        _proposed.forget(key)


@on_return
def handler(invocation: Invocation, output: Any) -> None:
    attempt = _attempts[invocation.arg(1, "ctx").vm]
    if _proposed.count((attempt.step.execution, None)):
        step_handler.payload_refused(attempt.step, OUTPUT)
    step_handler.payload(attempt.step, Payload(OUTPUT, len(output), output))
    _hand_over(attempt, None, output)


def _hand_over(attempt: _Attempt, handle: int | None, output: bytes) -> None:
    if len(output) >= _REFUSABLE_BYTES:
        key = (attempt.step.execution, handle)
        attempt.large.append(key)
        _proposed.note(key)


@Hook
def state(invocation: Invocation) -> None:
    vm = invocation.instance
    if not vm.is_replaying():
        name, value = invocation.arg(0, "name"), invocation.arg(1, "value")
        step_handler.payload(_attempts[vm].step, Payload(STATE, len(value), value, kind=name))


# The inputs of runs are Python references, and the journal contains none of them.
run = StepReader(
    _step,
    nothing,
    lambda invocation, _: _attempts[invocation.instance.vm].outcomes.pop(invocation.arg(0, "handle"), None),
    _raised,
)
