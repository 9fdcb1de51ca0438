"""Azure Durable Functions: activities and orchestrators where the Functions worker is invoked.

The worker, ``azure-functions-runtime`` for Python 3.13 and newer, gets each call of a function from the host as one
message with the JSON text of its input, and answers with the text of its output: these are the measured bytes. A
function that is no coroutine runs in a pool's thread, without the context of its invocation: its step begins there.

The host sends an orchestrator its whole history with each call. Its code runs again with each, so that nothing in it
is measured. Its output is part of the answer, and counts as compact JSON. The host does not report attempts to the
worker, and an activity's instance only with the data of its trigger.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from contextvars import ContextVar
from typing import Any

from agent_otel._internal.object_kinds import class_of, fields, text
from agent_otel.core import handler, step_handler
from agent_otel.core.types import Invocation, Step, StepOutcome
from agent_otel.integrations.hooks import Flag, Hook
from agent_otel.integrations.payloads import carried
from agent_otel.integrations.readers import remember
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.semconv import HISTORY, INPUT, OUTPUT

_WORKER = "azure_functions_runtime.handle_event"

ENTRY = Integration(
    "azure-durable",
    distribution="azure-functions-durable",
    minimum="1.7",
    tested="1.7 with the worker azure-functions-runtime 1.3",
    uncovered="entities; sub-orchestrations and events as payloads; attempts; workers of Python 3.12 and older",
    packages=("azure.durable_functions",),
    sites=(
        Candidate("azure.durable_functions.orchestrator", orchestrator="Orchestrator.handle"),
        Candidate(_WORKER, invoked="invocation_request", in_thread="run_sync_func", awaited="execute_async"),
        # The same function under the name by which it was imported; it is wrapped by now, unless activation was late.
        Candidate("azure_functions_runtime", invoked="invocation_request"),
    ),
)

_RUNTIME = "azure-durable"
_ACTIVITY, _ORCHESTRATOR = "activityTrigger", "orchestrationTrigger"
_REMEMBERED = 1_000
_FIRST_TURN = 1
_TURN_BEGINS = 12  # HistoryEventType.ORCHESTRATOR_STARTED


class _Call:
    """An invocation of an activity or an orchestrator by the host."""

    __slots__ = ("error", "is_activity", "name", "sent", "step", "visit")

    def __init__(self, name: str, instance: str | None, sent: str, *, is_activity: bool) -> None:
        self.name = name
        self.sent = sent
        self.is_activity = is_activity
        self.step = Step(_RUNTIME, name, _workflows.get(instance or ""), instance)
        self.visit: Any = None
        self.error: str | None = None

    def begin(self) -> None:
        """Begin the step of an activity in the context of its function."""
        if self.is_activity:
            self.visit = step_handler.begin_step(self.step, carried(INPUT, self.sent))


_calls: OrderedDict[str, _Call] = OrderedDict()
#: The names of the orchestrators of instances, which activities in the same process belong to.
_workflows: OrderedDict[str, str] = OrderedDict()
_current: ContextVar[_Call | None] = ContextVar("agent_otel_azure_durable_call", default=None)


def _invoked(invocation: Invocation) -> _Call | None:
    request = invocation.arg(0, "request").request.invocation_request
    function = sys.modules[_WORKER]._functions.get_function(request.function_id)
    if function is None:
        return None
    for binding in request.input_data:
        kind = function.input_types[binding.name].binding_name
        sent = text(_data(binding.data))
        if kind in {_ACTIVITY, _ORCHESTRATOR} and sent is not None:
            instance = text(_data(dict(request.trigger_metadata).get("instanceId")))
            call = _Call(function.name, instance, sent, is_activity=kind == _ACTIVITY)
            remember(_calls, request.invocation_id, call, _REMEMBERED)
            _current.set(call)
            return call
    return None


def _data(value: Any) -> Any:
    """Return the one field of a message that is set."""
    kind = None if value is None else value.WhichOneof("data")
    return None if kind is None else getattr(value, kind)


def _answered(invocation: Invocation, response: Any, error: BaseException | None) -> None:
    call: _Call = invocation.state
    _calls.pop(invocation.arg(0, "request").request.invocation_request.invocation_id, None)
    _current.set(None)
    if call.visit is None:
        return
    answer = text(_data(getattr(response, "return_value", None)))
    output = None if call.error is not None or answer is None else carried(OUTPUT, answer)
    call.visit.finish(StepOutcome(output, call.error))


def _entered(invocation: Invocation) -> _Call | None:
    """Begin the step in the thread in which its function runs."""
    call = _calls.get(invocation.arg(0, "invocation_id"))
    if call is not None:
        _current.set(call)
        call.begin()
    return call


def _left(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    call: _Call = invocation.state
    call.error = None if error is None else class_of(error)
    if call.visit is not None:
        call.visit.leave()
    _current.set(None)


def _awaiting(_: Invocation) -> _Call | None:
    call = _current.get()
    if call is not None:
        call.begin()
    return call


def _orchestrating(invocation: Invocation) -> Any:
    """Read the history, and the input in the first call of an instance."""
    context, call = invocation.arg(0, "context"), _current.get()
    name = text(getattr(context.histories[1], "Name", None)) or (None if call is None else call.name)
    instance = text(context.instance_id)
    step = Step(_RUNTIME, None, name, instance)
    if instance is not None and name is not None:
        remember(_workflows, instance, name, _REMEMBERED)
        handler.execution_named(instance, name)
    turns = sum(event.event_type == _TURN_BEGINS for event in context.histories)
    given = fields(context).get("_input")
    is_first = turns == _FIRST_TURN and not context.is_replaying and len(context.histories) == 2  # noqa: PLR2004
    if is_first and type(given) is str:
        step_handler.payload(step, carried(INPUT, given))
    if call is not None:
        step_handler.payload(step, carried(HISTORY, call.sent))
    return step


def _orchestrated(invocation: Invocation, value: Any, error: BaseException | None) -> None:
    executor = invocation.instance.task_orchestration_executor
    if error is None and executor.orchestrator_returned is True:
        step_handler.object_carried(invocation.state, OUTPUT, executor.output)


orchestrator = Hook(_orchestrating, _orchestrated, within=Flag(handler.muted))
invoked = Hook(_invoked, _answered)
in_thread = Hook(_entered, _left)
awaited = Hook(_awaiting, _left)
