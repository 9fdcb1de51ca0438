"""Agno.

Produced is read at ``FunctionCall.execute`` and ``aexecute``. A generator tool has produced nothing by then: its call
ends where the framework has drained it and makes a message of all its items. Exceptions become a status; the exception
itself is available where the framework logs it.
"""

from __future__ import annotations

from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import finalize

from agent_otel.core import handler
from agent_otel.core.plain import fields, is_empty, is_named, is_text, text, traceback_of
from agent_otel.core.types import PRODUCED, Around, Before, ToolCall, ToolReader, ToolResult
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Failed(Exception):  # noqa: N818 - not raised: it stands for one that the framework has swallowed
    """The failure of a generator."""

    _gen_ai_error_type = TOOL_ERROR


# Names of classes; the second two are this package's own around a generator of the program.
_GENERATORS = ("generator", "async_generator", "MeasuredGenerator", "MeasuredAsyncGenerator")
# Begin the names of the framework's methods that call hooks.
_HOOKS = ("_handle_pre_hook", "_handle_post_hook")

# Calls whose generators are being drained, by the identity of the call, which has no hash.
_drained: dict[int, handler.StreamVisit] = {}
_logged: ContextVar[list[BaseException] | None] = ContextVar("agent_otel_agno_logged", default=None)


def _call(call: Any, _: tuple[Any, ...], __: Mapping[str, Any]) -> ToolCall:
    function = call.function
    agent = function._team if function._agent is None else function._agent
    session = getattr(function._run_context, "session_id", None)
    arguments = {} if is_empty(call.arguments) else call.arguments
    return ToolCall(function.name, arguments, call.call_id, getattr(agent, "name", None), session)


def _result(outcome: Any) -> ToolResult | None:
    """Read the end of a call, or the items of a generator; before version 3 a cancelled call has no outcome."""
    if outcome is None or is_text(outcome):
        return None if outcome is None else ToolResult(outcome)
    if text(outcome.status) == "failure":
        return ToolResult(outcome.error, error_type=TOOL_ERROR, raised=True)
    value = outcome.result
    return ToolResult(fields(value).get("content") if is_named(value, "ToolResult") else value)


def _is_control_flow(error: BaseException) -> bool:
    return is_named(error, "StopAgentRun")


_execute = ToolReader(PRODUCED, _call, _result, is_control_flow=_is_control_flow)


def _begin(call: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    visit = handler.enter_tool(_execute, call, args, kwargs)
    if visit is None:
        return None
    visit.__enter__()
    return visit, _logged.set([])


def _end(state: Any, call: Any, _: Any, __: Any, outcome: Any, error: BaseException | None) -> None:
    visit, token = state
    logged = _logged.get() or []
    with suppress(ValueError):  # cancelled, the call ends in another context than it began in
        _logged.reset(token)
    if error is None and isinstance(visit, handler.Visit):
        value = getattr(outcome, "result", None)
        if is_named(value, *_GENERATORS):
            _drained[id(call)] = visit.as_stream()
            finalize(call, _abandon, id(call)).atexit = False
            return
        if logged and text(getattr(outcome, "status", None)) == "failure":
            handler.handler_raised(logged[-1], _execute)
        visit.returned(outcome)
    visit.__exit__(None if error is None else type(error), error, None)


def _log(_: Any, args: tuple[Any, ...], __: Mapping[str, Any]) -> None:
    logged = _logged.get()
    error: Any = args[0] if args else None
    if logged is not None and issubclass(type(error), BaseException) and not _is_of_a_hook(error):
        logged.append(error)


def _is_of_a_hook(error: Any) -> bool:
    """Return True for an exception that a hook before or after the call raised: then the call goes on."""
    caught = traceback_of(error)
    return caught is not None and caught.tb_frame.f_code.co_name.startswith(_HOOKS)


def _abandon(key: int) -> None:
    visit = _drained.pop(key, None)
    if visit is not None:
        visit.abandon()


def _message(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    visit = _drained.pop(id(kwargs["function_call"] if "function_call" in kwargs else args[0]), None)
    if visit is None:
        return
    succeeded = kwargs["success"] if "success" in kwargs else args[1]
    end = StopIteration() if succeeded else _Failed()
    with suppress(StopIteration, _Failed), visit.step():
        if succeeded:
            visit.item(kwargs["output"] if "output" in kwargs else args[2])
        raise end


execute = Around(_begin, _end)
logged = Before(_log)
message = Before(_message)
