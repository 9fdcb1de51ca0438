"""Inngest: a step between its report and its end, its output where the answer to the server is prepared.

The server calls a function once for each step, with the results of all earlier steps: these are the run's state, which
has a cap of its own. A step whose result is in the state is skipped. The task that answers the request serialises a
step's result, in another context than the step ran in. The server does not report its refusals to the SDK.

The inputs of steps are Python references. Events have no text of their own in a request; the size of the first is that
of its data as compact JSON. A state that the SDK has to fetch (``use_api``) is not measured.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

from agent_otel._internal import collected
from agent_otel._internal.object_kinds import class_of, is_named, text
from agent_otel.core import step_handler
from agent_otel.core.types import Invocation, Payload, Step, StepOutcome
from agent_otel.integrations.hooks import Hook, Within, after, on_return
from agent_otel.integrations.readers import remember
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.semconv import INPUT, OUTPUT, STATE

ENTRY = Integration(
    "inngest",
    minimum="0.5",
    tested="0.5, its handler over HTTP",
    uncovered="the inputs of steps, which are references; a state that the SDK fetches (`use_api`)",
    sites=(
        Candidate(
            "inngest._internal.execution_lib.v0",
            reported="ExecutionV0.report_step ExecutionV0Sync.report_step",
            ended="ReportedStep.__aexit__ ReportedStepSync.__exit__",
        ),
        Candidate("inngest._internal.function", call="Function.call Function.call_sync"),
        # The request that calls a function, and the answer.
        Candidate(
            "inngest._internal.comm_lib.models",
            preparing="_prep_call_result",
            serialised="transforms.dump_json",
            received="server_lib.ServerRequest.from_raw",
        ),
    ),
)

_RUNTIME = "inngest"
_REMEMBERED = 1_000


class _Call(NamedTuple):
    """A call of a function by the server: its step, and the size of the state that came with it."""

    step: Step
    state: Payload | None


# By the id of a request, its body until its function is called; a request that calls none takes it along.
_bodies: dict[int, bytes] = {}
# By the id of an object that is kept beside it: steps until they are serialised, results until they are. What is never
# asked for is pushed out.
_ran: OrderedDict[int, tuple[Any, Any]] = OrderedDict()
_returned: OrderedDict[int, tuple[Any, Step]] = OrderedDict()
_call: Within[_Call] = Within("agent_otel_inngest_call")
_result: Within[Any] = Within("agent_otel_inngest_result")


def _keep(kept: OrderedDict[int, Any], key: Any, value: Any) -> None:
    remember(kept, id(key), (key, value), _REMEMBERED)


def _take(kept: OrderedDict[int, Any], key: Any) -> Any:
    return kept.pop(id(key), (None, None))[1]


@on_return
def received(invocation: Invocation, request: Any) -> None:
    if getattr(request, "use_api", True) is False:
        _bodies[id(request)] = invocation.arg(0, "raw")
        collected.at_end_of(request, _bodies.pop, id(request), None)


def _called(invocation: Invocation) -> _Call:
    """Read the state before the function runs or is replayed; a retry and a planned step get the same state again."""
    context = invocation.arg(1, "ctx")
    execution = context.step._execution
    body = _bodies.pop(id(execution._request), None)
    step = Step(_RUNTIME, None, invocation.instance.local_id, context.run_id, context.attempt + 1)
    again = context.attempt > 0 or execution._target_hashed_id is not None
    if execution._memos.size == 0 and not again:
        step_handler.object_carried(step, INPUT, context.event.data)
    return _Call(step, Payload(STATE, len(body), body, again=again) if body else None)


def _answered(invocation: Invocation, result: Any, error: BaseException | None) -> None:
    """After it: the state is one of those that led to the same step."""
    call: _Call = invocation.state
    steps = [item.step.display_name for item in (getattr(result, "multi", None) or ()) if item.step is not None]
    if call.state is not None:
        step_handler.payload(call.step._replace(attempt=1), call.state._replace(kind=steps[0] if steps else ""))
    if result is not None and not steps and result.error is None:
        _keep(_returned, result, call.step)


@on_return
def reported(invocation: Invocation, reported: Any) -> None:
    """Begin a step, unless it has a result, an error or a reason to skip it."""
    call = _call.get()
    info = invocation.arg(0, "step_info")
    if call is None or reported.error is not None or reported.skip:
        return
    if not is_named(reported.output, "EmptySentinel") or info.op.value != "StepRun":
        return
    visit = step_handler.begin_step(call.step._replace(activity=info.display_name))
    if visit is not None:
        _keep(_ran, info, visit)


@after
def ended(invocation: Invocation, value: Any, error: Any) -> None:
    """End the timing of the step's own code; the answer carries its result or its error."""
    reported = invocation.instance
    visit = _take(_ran, reported.info)
    if visit is None:
        return
    visit.leave()
    interrupt = invocation.args[1]
    responses = interrupt.responses if is_named(interrupt, "ResponseInterrupt") else None
    failed = (responses[0].original_error if responses else interrupt) if interrupt is not None else None
    if responses and failed is None:
        _keep(_ran, reported.info, visit)
        return
    visit.finish(error_type=None if failed is None else class_of(failed))


def _prepared(invocation: Invocation, value: Any, error: BaseException | None) -> None:
    """End a step whose result could not be serialised, with that error."""
    visit = _take(_ran, invocation.state.step)
    if visit is not None:
        visit.finish(error_type=class_of(value) if issubclass(type(value), Exception) else None)


@after
def serialised(invocation: Invocation, value: Any, error: Any) -> None:
    result, written = _result.get(), text(value)
    if result is None or written is None or invocation.arg(0, "obj") is not result.output:
        return
    carried = Payload(OUTPUT, len(written), written)  # escaped: a byte is a character
    visit, step = _take(_ran, result.step), _take(_returned, result)
    if visit is not None:
        visit.finish(StepOutcome(carried))
    elif step is not None:
        step_handler.payload(step, carried)


call = Hook(_called, _answered, within=_call)
preparing = Hook(lambda invocation: invocation.arg(0, "call_res"), _prepared, within=_result)
