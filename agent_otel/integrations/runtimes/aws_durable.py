"""AWS Lambda durable functions: a plug-in of their SDK, and wrappers for the data that the SDK gives no plug-in.

The SDK calls the plug-in where a step's function begins and ends, and with each result after its checkpoint. It does
not pass the name of the function, the serialised input, the payload of a chained invoke, or a refusal by the service:
wrappers read these where an invocation begins and where a checkpoint is made. Two switches load the plug-in:
agent_otel's own, and the SDK's variable ``DURABLE_EXECUTION_PLUGINS=agent_otel``, because start-up files do not run in
a Lambda layer. The inputs of steps are Python references; only results are checkpointed.
"""

from __future__ import annotations

import re
import sys
from collections import OrderedDict
from typing import Any

from agent_otel._bootstrap import startup
from agent_otel._internal import env, errors
from agent_otel._internal.object_kinds import class_of
from agent_otel.core import handler, step_handler
from agent_otel.core.types import Invocation, Payload, Step, StepOutcome
from agent_otel.integrations.hooks import Hook, on_return
from agent_otel.integrations.payloads import carried_or_none
from agent_otel.integrations.readers import remember
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.semconv import INPUT, MESSAGE, OUTPUT

# The integration's plug-in is an entry point of the SDK's own, too.
ENTRY = Integration(
    "aws-durable",
    distribution="aws-durable-execution-sdk-python",
    minimum="3.0",
    tested="3.0, its in-process runner",
    uncovered="the inputs of steps, which are references",
    sites=(
        Candidate(
            "aws_durable_execution_sdk_python.execution",
            collected="load_configured_plugins",
            invocation="DurableContext.from_lambda_context",
            checkpoint="ExecutionState.create_checkpoint",
        ),
    ),
)

_RUNTIME = "aws-durable"
_PLUGINS = "aws_durable_execution_sdk_python.plugin"
# "STEP output payload size must be less than or equal to 262144 bytes."
_TOO_LARGE = re.compile(r"payload size must be less than or equal to (\d+) bytes")
_INVOKE_CAP = "chained-invoke"

# Executions whose input has been counted, the last few: an invocation that fails before its first checkpoint is made
# again with the same.
_begun: OrderedDict[str, None] = OrderedDict()
_REMEMBERED = 1_000
# Steps that are running, or have run and are not checkpointed yet.
_running: dict[tuple[str, str], Any] = {}


def _step(execution: str, operation: Any) -> Step:
    """Return the step of an operation, or of an update of one; without a name it has its sub-type as name."""
    kind = operation.operation_type.value
    activity = operation.sub_type if operation.sub_type in BRANCHES else operation.name or operation.sub_type
    return Step(
        _RUNTIME,
        activity if kind != "EXECUTION" else None,
        execution=execution,
        attempt=getattr(operation, "attempt", None) or 1,
        variant=_INVOKE_CAP if kind == "CHAINED_INVOKE" else None,
    )


def _error_type(error: Any) -> str | None:
    """Return the class name; the SDK writes the class with its module."""
    return error.type.rpartition(".")[2] if error is not None and error.type else None


def _end(execution: str, operation_id: str, outcome: StepOutcome) -> bool:
    """End a step, if this is one and has not ended."""
    visit = _running.pop((execution, operation_id), None)
    if visit is None:
        return False
    visit.finish(outcome)
    return True


class _Hooks:
    """The plug-in methods that the integration implements; one instance for each invocation."""

    def __init__(self, execution: str) -> None:
        self.execution = execution
        #: The contexts of branches, each with the number of its branch.
        self._numbers: dict[str, int] = {}

    @errors.guarded("aws_durable.plugin")
    def on_user_function_start(self, info: Any) -> None:
        """Run before a step's function, or that of a context with steps in it, in its thread."""
        if info.operation_type.value != "STEP":
            self._entered(info)
        elif (visit := step_handler.begin_step(_step(self.execution, info))) is not None:
            _running[self.execution, info.operation_id] = visit

    @errors.guarded("aws_durable.plugin")
    def on_user_function_end(self, info: Any) -> None:
        """Run after it, in its thread; what it returned is neither serialised nor checkpointed yet."""
        visit = _running.get((self.execution, info.operation_id))
        if visit is not None:
            visit.leave()
        if info.outcome.value != "SUCCEEDED":
            _end(self.execution, info.operation_id, StepOutcome(error_type=_error_type(info.error)))

    @errors.guarded("aws_durable.plugin")
    def on_operation_end(self, info: Any) -> None:
        """Run when a result has been checkpointed, here or by another; never for one that is replayed."""
        kind = info.operation_type.value
        carried = self._in_branch(info, carried_or_none(MESSAGE if kind == "CALLBACK" else OUTPUT, info.result))
        outcome = StepOutcome(carried, _error_type(info.error))
        if not _end(self.execution, info.operation_id, outcome) and carried is not None and not info.is_replayed:
            step_handler.payload(_step(self.execution, info), carried)

    @errors.guarded("aws_durable.plugin")
    def on_invocation_end(self, info: Any) -> None:
        """Run when the invocation's last hook has; its result is empty when a checkpoint has it."""
        for execution, operation_id in list(_running):
            if execution == self.execution:  # it came neither to a checkpoint nor to an error of its own
                _end(execution, operation_id, StepOutcome())
        carried = carried_or_none(OUTPUT, info.execution_result)
        if carried is not None:
            step_handler.payload(Step(_RUNTIME, execution=self.execution), carried)

    def _entered(self, context: Any) -> None:
        """Record a context whose function begins."""
        number = self._numbers.get(context.parent_id)
        if context.sub_type in BRANCHES:
            number = _number(self.execution, context.operation_id)
        elif context.sub_type in _WITH_BRANCHES:
            number = _MOST  # of its flat branches, whose steps are its own
        if number is not None:
            self._numbers[context.operation_id] = number

    def _in_branch(self, operation: Any, carried: Payload | None) -> Payload | None:
        """Put the result of an operation into the series of its branch: no payload of one is another's next turn."""
        is_branch = operation.sub_type in BRANCHES
        number = self._numbers.get(operation.operation_id if is_branch else operation.parent_id)
        if carried is None or number is None:
            return carried
        return carried._replace(kind=str(number), is_appended=number >= _MOST)


class _Factory:
    """The object that the SDK loads under the name ``agent_otel`` from its group of entry points."""

    __durable_registration_api__ = 1

    def create_plugin(self, info: Any, /) -> Any:
        """Return the plug-in of an invocation; ``AGENT_OTEL=0`` makes it one that does nothing."""
        base = sys.modules[_PLUGINS].DurableInstrumentationPlugin
        if not env.active:
            return base()
        return type("AgentOtelPlugin", (_Hooks, base), {})(info.execution_arn)

    def on_registration_result(self, registered: bool) -> None:  # noqa: FBT001 - the SDK's own signature
        """Run when the SDK's variable names this: then all of the package is switched on."""
        if registered:
            startup.activate()


plugin = _Factory()


@on_return
def collected(_: Invocation, plugins: Any) -> None:
    """Add the plug-in to a handler's, unless the handler or the SDK's variable names it."""
    if not any(each is plugin for each in plugins):
        plugins.append(plugin)


@Hook
def invocation(invocation: Invocation) -> None:
    """Report the input of an invocation once per execution, as the service sent it; a resumed one has none."""
    state, context = invocation.kwargs["state"], invocation.kwargs["lambda_context"]
    execution, name = state.durable_execution_arn, getattr(context, "function_name", None)
    if name:
        handler.execution_named(execution, name)
    carried = None if state.has_prior_operations() else carried_or_none(INPUT, state.get_input_payload())
    if carried is None or execution in _begun:
        return
    remember(_begun, execution, None, _REMEMBERED)
    step_handler.payload(Step(_RUNTIME, None, name, execution), carried)


def _checkpointed(invocation: Invocation, value: Any, error: BaseException | None) -> None:
    """End the step of a checkpoint, else report its payload; the plug-in has ended the step of an accepted result."""
    state, update = invocation.instance, invocation.state
    kind, action = update.operation_type.value, update.action.value
    sent = kind == "CHAINED_INVOKE" or (kind == "EXECUTION" and action == "SUCCEED")
    carried = carried_or_none(INPUT if kind == "CHAINED_INVOKE" else OUTPUT, update.payload)
    refused = _refusal(error, carried)
    if action != "START" and _end(
        state.durable_execution_arn,
        update.operation_id,
        StepOutcome(carried, class_of(_source(error)) if error is not None else None, refused),
    ):
        return
    if carried is not None and (sent or refused is not None):
        step_handler.payload(_step(state.durable_execution_arn, update), carried, None, refused)


def _source(error: BaseException) -> BaseException:
    """Return the error of the thread that sends the checkpoints."""
    source: BaseException = getattr(error, "source_exception", error)
    return source


def _refusal(error: BaseException | None, carried: Payload | None) -> str | None:
    """Return the service's message if it refused this payload, not another one that the same checkpoint contained."""
    if error is None or carried is None:
        return None
    said = str(_source(error))
    limit = _TOO_LARGE.search(said)
    return said if limit is not None and carried.bytes > int(limit[1]) else None


checkpoint = Hook(lambda invocation: invocation.arg(0, "operation_update"), _checkpointed)

#: Sub-types of the contexts of branches. The SDK numbers their names.
BRANCHES = ("ParallelBranch", "MapIteration")
_WITH_BRANCHES = ("Parallel", "Map")
# Branches of an execution whose payloads have turns of their own; those of more would push out the others.
_MOST = 4

# The first branches of executions, the last few of these: an invocation that goes on with one starts only the branches
# that are not done.
_numbered: OrderedDict[str, list[str]] = OrderedDict()


def _number(execution: str, branch: str) -> int:
    """Return the number of a branch in its execution; all behind the first few have one together."""
    first = _numbered.get(execution)
    if first is None:
        first = []
        remember(_numbered, execution, first, _REMEMBERED)
    if branch not in first and len(first) < _MOST:
        first.append(branch)
    return first.index(branch) if branch in first else _MOST
