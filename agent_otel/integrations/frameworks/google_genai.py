"""Automatic function calling of Google's Gen AI SDK, which knows no ids of calls.

The SDK raises an error of its own for what a function raises, and makes text of that; the function's own is read.

The entry is in ``model_sdks/google_genai.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core.plain import context_of, fields, is_named, sole
from agent_otel.core.types import PRODUCED, Invocation, Replacement, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.reader_functions import cause_behind, inject_into

if TYPE_CHECKING:
    from collections.abc import Iterable

_OF_THE_SDK = "FunctionInvocationError"


def _call(invocation: Invocation) -> ToolCall:
    return ToolCall(invocation.arg(1, "function_to_invoke").__name__, invocation.arg(0, "args"))


def _result(value: Any) -> ToolResult:
    """Read a result without the object around it that the model gets, where the function has made one itself."""
    return ToolResult(sole("result", value))


def _told(error: BaseException) -> Any:
    """Read the text that the model gets of the SDK's exception."""
    return str(error) if is_named(error, _OF_THE_SDK) else None


def _replace(value: Any, replacement: Replacement, _: Invocation) -> Any:
    """Put a replacement into the SDK's exception, or return it as the function's result."""
    if issubclass(type(value), BaseException):
        value.args = (replacement.text,)
    return replacement.text


def _parameters(invocation: Invocation) -> Iterable[str]:
    return tuple(fields(_call(invocation).arguments))


invoke = ToolReader(
    PRODUCED,
    _call,
    _result,
    failure_text=_told,
    cause=cause_behind(_OF_THE_SDK, of=context_of),  # the SDK raises its own within the function's exception
    replace=_replace,
    parameters=_parameters,
    inject=inject_into(0, "args"),
)
