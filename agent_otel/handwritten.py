"""Tools without a framework: a decorator, a context manager around a call, and the name of an execution.

All three do nothing, at the price of one test, while ``AGENT_OTEL`` is off.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import wrapt

from agent_otel import _shield, _startup, identity, observer
from agent_otel.integrations import wrapping
from agent_otel.reading import PRODUCED, Call, Result, ToolReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextvars import Token
    from types import TracebackType

    from typing_extensions import Self

    from agent_otel.identity import Identity

_F = TypeVar("_F", bound="Callable[..., Any]")
_V = TypeVar("_V")


def _as_is(value: Any) -> Result:
    return Result(value)


def _given(call: Call, _: tuple[Any, ...], __: Mapping[str, Any]) -> Call:
    return call


_READER = ToolReader(PRODUCED, _given, _as_is)


@overload
def tool(function: _F) -> _F: ...
@overload
def tool(*, name: str | None = None, agent: str | None = None) -> Callable[[_F], _F]: ...
def tool(function: _F | None = None, *, name: str | None = None, agent: str | None = None) -> _F | Callable[[_F], _F]:
    """Measure each call of a function as a tool call.

    For sync and async functions and generators of both kinds; a generator's items are measured as they pass, never
    collected. The function keeps its signature, its result and its exceptions. ``name`` is the tool's name, by
    default the function's.
    """

    def decorate(target: _F) -> _F:
        parameters = tuple(inspect.signature(target).parameters)
        tool_name = name or target.__name__

        def read_call(instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
            if not args:
                return Call(tool_name, kwargs, agent=agent)
            names = parameters if instance is None or inspect.isclass(instance) else parameters[1:]
            return Call(tool_name, dict(zip(names, args)) | kwargs, agent=agent)  # noqa: B905 - varargs are longer

        wrapper = wrapping.wrapper_for(ToolReader(PRODUCED, read_call, _as_is), target)
        measured: Any = wrapt.FunctionWrapper(target, wrapper, enabled=lambda: _startup.active)
        return cast("_F", measured)

    return decorate if function is None else decorate(function)


class tool_call:  # noqa: N801 - reads as a function: with agent_otel.tool_call(...)
    """Measure one tool call of a hand-written loop.

    ``with agent_otel.tool_call(name, arguments) as call: call.result(run(arguments))``. An exception that leaves the
    block is the call's failure, and passes.
    """

    __slots__ = ("_call", "_failure", "_visit")

    def __init__(
        self, name: str, arguments: object = None, *, call_id: str | None = None, agent: str | None = None
    ) -> None:
        self._call = Call(name, arguments, call_id=call_id, agent=agent)
        self._visit: observer.Visit | None = None

    def __enter__(self) -> Self:
        if _startup.active:
            self._visit = observer.enter_tool(_READER, self._call, (), {})
        return self

    def result(self, value: _V) -> _V:
        """Measure what the handler returned; returns it, so that it can stand around the call."""
        if self._visit is not None:
            self._visit.returned(value)
        return value

    def error(self, error: Exception) -> None:
        """Note a failure that the loop handles itself."""
        if self._visit is not None:
            observer.handler_raised(error, _READER)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._visit is not None:
            self._visit.__exit__(kind, error, traceback)
            self._visit = None


class execution:  # noqa: N801 - reads as a function: with agent_otel.execution(...)
    """Name the execution that everything inside belongs to; wins over what frameworks and traces say.

    ``id`` goes on spans, ``workflow`` and ``agent`` on metrics as well. When the block ends, the execution's number
    of tool calls and bytes are recorded.
    """

    __slots__ = ("_identity", "_token")

    def __init__(self, id: str, *, workflow: str | None = None, agent: str | None = None) -> None:  # noqa: A002
        self._identity = identity.Identity(str(id), workflow, agent)
        self._token: Token[Identity | None] | None = None

    def __enter__(self) -> Self:
        self._token = identity.explicit.set(self._identity)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            identity.explicit.reset(self._token)
            self._token = None
        if _startup.active:
            _shield.shielded("execution.finish")(observer.finish_execution)(self._identity)
