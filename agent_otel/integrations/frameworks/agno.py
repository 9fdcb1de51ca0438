"""Agno.

Produced is read at ``FunctionCall._execute`` and ``_aexecute``, in older versions at ``execute`` and ``aexecute``. A
generator tool has produced nothing by then: its call ends where the framework has drained it and makes a message of all
its items. Exceptions become a status; the exception itself is available where the framework logs it.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agent_otel._internal import collected
from agent_otel._internal.errors import guarded
from agent_otel.core import execution_context, handler
from agent_otel.core.plain import fields, is_empty, is_named, is_text, properties, text, traceback_of
from agent_otel.core.types import PRODUCED, Invocation, Replacement, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.frameworks.agno_ids import IDS
from agent_otel.integrations.frameworks.agno_runs import CALLS, RUNS_AND_SESSIONS
from agent_otel.integrations.frameworks.offloaders import of_agno
from agent_otel.integrations.hooks import Door, Hook, Injecting
from agent_otel.integrations.left_results import AroundVisit
from agent_otel.integrations.reader_functions import raises, raises_within
from agent_otel.integrations.registry.entries import Candidate, Integration, Wrap
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from typing_extensions import Self


ENTRY = Integration(
    "agno",
    distribution="agno",
    minimum="2.3",
    tested="2.3 and 3.1",
    uncovered="the state of a session; databases other than `SqliteDb` and `AsyncSqliteDb`, and those before 3.1",
    sites=(
        CALLS,
        *RUNS_AND_SESSIONS,
        IDS,
        # The items of generator tools.
        Candidate("agno.models.base", Wrap("Model.create_function_call_result", "message")),
    ),
)


class _Failed(Exception):  # noqa: N818 - not raised: it stands for one that the framework has swallowed
    """The failure of a generator."""

    _gen_ai_error_type = TOOL_ERROR


# Names of classes; the second two are this package's own around a generator of the program.
_GENERATORS = ("generator", "async_generator", "MeasuredGenerator", "MeasuredAsyncGenerator")
# Begins what the framework makes of an MCP server's answer about an error.
_MCP_ERROR = "Error from MCP tool '"
# Begin the names of the framework's methods that call hooks.
_HOOKS = ("_handle_pre_hook", "_handle_post_hook")

# Calls whose generators are being drained, by the identity of the call, which has no hash.
_drained: dict[int, handler.StreamVisit] = {}
_logged: ContextVar[list[BaseException] | None] = ContextVar("agent_otel_agno_logged", default=None)


def _call(invocation: Invocation) -> ToolCall:
    call = invocation.instance
    function = call.function
    agent = function._team if function._agent is None else function._agent
    # The framework makes one up where the program names none.
    session = execution_context.outside_of_runs(getattr(function._run_context, "session_id", None))
    arguments = {} if is_empty(call.arguments) else call.arguments
    name, above = getattr(agent, "name", None), of_agno(agent)
    return ToolCall(function.name, arguments, call.call_id, name, session, offloads_above=above)


def _result(outcome: Any) -> ToolResult | None:
    """Read the end of a call, or the items of a generator; before version 3 a cancelled call has no outcome."""
    if outcome is None or is_text(outcome):
        return None if outcome is None else ToolResult(outcome)
    if text(outcome.status) == "failure":
        return ToolResult(outcome.error, error_type=TOOL_ERROR, raised=True)
    value = outcome.result
    if not is_named(value, "ToolResult"):
        return ToolResult(value)
    content = fields(value).get("content")
    return ToolResult(content, error_type=TOOL_ERROR if (text(content) or "").startswith(_MCP_ERROR) else None)


def _replace(outcome: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Put a replacement into the end of a call, and where the framework reads the text about an exception."""
    call = invocation.instance
    if outcome is None:
        outcome = sys.modules["agno.tools.function"].FunctionExecutionResult
        if not replacement.is_error:
            call.result = replacement.text
            return outcome(status="success", result=replacement.text)
        call.error = replacement.text
        return outcome(status="failure", error=call.error)
    if text(outcome.status) == "failure":
        outcome.error = call.error = replacement.text
        return outcome
    value = outcome.result
    is_envelope = is_named(value, "ToolResult")
    result = value.model_copy(update={"content": replacement.text}) if is_envelope else replacement.text
    outcome.result = call.result = result
    return outcome


def _inject(invocation: Invocation, values: dict[str, Any]) -> bool:
    """Leave the values to `_build`, because messages and events show the call's arguments; drop the model's own."""
    call = invocation.instance
    if not is_empty(call.arguments):
        call.arguments = {name: value for name, value in call.arguments.items() if name not in values}
    return True


def _build(wrapped: Callable[..., Any], invocation: Invocation) -> Any:
    return {**wrapped(*invocation.args, **invocation.kwargs), **(handler.injected() or {})}


def _parameters(invocation: Invocation) -> Iterable[str]:
    return properties(invocation.instance.function.parameters)


_execute = ToolReader(
    PRODUCED,
    _call,
    _result,
    is_control_flow=raises("StopAgentRun"),
    is_refusal=raises_within("agno", "ValidationError"),
    replace=_replace,
    parameters=_parameters,
    inject=_inject,
    also_timed_by=("opentelemetry.instrumentation.genai.agno:AgnoInstrumentor",),
)


class _Visit(AroundVisit):
    """A call while its function runs; that of a generator goes on until the framework has drained it."""

    __slots__ = ("_call", "_is_drained", "_token")

    def __init__(self, call: Any, visit: handler.Visit | handler.Unrecorded) -> None:
        super().__init__(visit)
        self._call = call
        self._is_drained = False

    def __enter__(self) -> Self:
        self._token = _logged.set([])
        return super().__enter__()

    def returned(self, outcome: Any) -> None:
        if not self._begins_to_drain(outcome):
            self._visit.returned(outcome)

    def remedied(self, outcome: Any, invocation: Invocation) -> Any:
        return outcome if self._begins_to_drain(outcome) else self._visit.remedied(outcome, invocation)

    async def aremedied(self, outcome: Any, invocation: Invocation) -> Any:
        return outcome if self._begins_to_drain(outcome) else await self._visit.aremedied(outcome, invocation)

    def raised(self, error: Exception, invocation: Invocation) -> None:
        """Leave an exception that ends the run as it is."""

    async def araised(self, error: Exception, invocation: Invocation) -> None:
        """Leave an exception that ends the run as it is."""

    @guarded("agno.outcome")
    def _begins_to_drain(self, outcome: Any) -> bool:
        """Return True if a generator is to be drained; else record the exception that the framework has logged."""
        if not isinstance(self._visit, handler.Visit):
            return False
        if is_named(getattr(outcome, "result", None), *_GENERATORS):
            self._is_drained = True
            _drained[id(self._call)] = handler.as_stream(self._visit)
            collected.at_end_of(self._call, _abandon, id(self._call))
        elif (logged := _logged.get()) and text(getattr(outcome, "status", None)) == "failure":
            handler.handler_raised(logged[-1], _execute)
        return self._is_drained

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with suppress(ValueError):  # cancelled, the call ends in another context than it began in
            _logged.reset(self._token)
        if not self._is_drained:
            self._visit.__exit__(kind, error, traceback)


def _enter(invocation: Invocation) -> _Visit | None:
    visit = handler.enter_tool(_execute, invocation)
    return None if visit is None else _Visit(invocation.instance, visit)


def _log(invocation: Invocation) -> None:
    logged, error = _logged.get(), invocation.arg(0, "msg")
    if logged is not None and issubclass(type(error), BaseException) and not _is_of_a_hook(error):
        logged.append(error)


def _is_of_a_hook(error: Any) -> bool:
    """Return True for an exception that a hook before or after the call raised: then the call goes on."""
    caught = traceback_of(error)
    return caught is not None and caught.tb_frame.f_code.co_name.startswith(_HOOKS)


def _abandon(key: int) -> None:
    visit = _drained.pop(key, None)
    if visit is not None:
        collected.run(visit.abandon)


def _message(invocation: Invocation) -> None:
    visit = _drained.pop(id(invocation.arg(0, "function_call")), None)
    if visit is None:
        return
    succeeded = invocation.arg(1, "success")
    end = StopIteration() if succeeded else _Failed()
    with suppress(StopIteration, _Failed), visit.step():
        if succeeded:
            visit.item(invocation.arg(2, "output"))
        raise end


execute = Door(_enter)
logged = Hook(_log)
building = Injecting(_build)
message = Hook(_message)
