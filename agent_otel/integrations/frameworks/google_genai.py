"""Automatic function calling of Google's Gen AI SDK, which knows no ids of calls.

The SDK raises an error of its own for what a function raises, and makes text of that; the function's own is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core import handler
from agent_otel.core.plain import is_named, sole
from agent_otel.core.types import PRODUCED, Around, ToolCall, ToolReader, ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping


def _call(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ToolCall:
    given = kwargs["args"] if "args" in kwargs else args[0]
    function = kwargs["function_to_invoke"] if "function_to_invoke" in kwargs else args[-1]
    return ToolCall(function.__name__, given)


def _result(value: Any) -> ToolResult:
    """Read a result without the object around it that the model gets, where the function has made one itself."""
    return ToolResult(sole("result", value))


_reader = ToolReader(PRODUCED, _call, _result)


def _begin(instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    visit = handler.enter_tool(_reader, instance, args, kwargs)
    return None if visit is None else visit.__enter__()


def _end(
    visit: Any,
    _: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    value: Any,
    error: BaseException | None,
) -> None:
    if error is None:
        visit.returned(value)
        visit.__exit__(None, None, None)
        return
    if is_named(error, "FunctionInvocationError") and error.__context__ is not None:
        error = error.__context__
    visit.__exit__(type(error), error, None)


invoke = Around(_begin, _end)
