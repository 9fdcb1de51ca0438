"""DSPy's native tool calls, which a program executes with ``call.execute()``; the entry is in ``dspy.py``.

The function runs without its tool. Where the program passes no functions, the framework takes one of the caller's
variables. Its caller is a frame of this package then, so that the function is found here and passed on.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from agent_otel._internal import signatures
from agent_otel._internal.errors import guarded
from agent_otel.core import handler
from agent_otel.core.plain import fields, is_dict, is_empty, listed, text
from agent_otel.core.types import NOT_HERE, PRODUCED, Invocation, Replacement, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.hooks import Door
from agent_otel.integrations.reader_functions import cause_behind, raises_within
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap

if TYPE_CHECKING:
    from types import FrameType

CALLS = Site(
    Candidate("dspy.adapters.types.tool", Wrap("ToolCalls.ToolCall.execute", "execute")),
    adapter="frameworks.dspy_native_calls",
)


def _caller() -> FrameType | None:
    """Return the innermost frame that is of no module of this package."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and (text(frame.f_globals.get("__name__")) or "").startswith("agent_otel."):
        frame = frame.f_back
    return frame


def _function(invocation: Invocation) -> Any:
    """Return the function that the call is about to run; None without one."""
    name, functions = text(invocation.instance.name) or "", invocation.arg(0, "functions")
    if is_dict(functions):
        return fields(functions).get(name)
    if functions is not None:
        tools = map(fields, listed(functions))
        return next((tool.get("func") for tool in tools if text(tool.get("name")) == name), None)
    frame = _caller()
    if frame is None:
        return None
    found = frame.f_locals.get(name)
    return frame.f_globals.get(name) if is_empty(found) else found


@guarded("dspy.function")
def _pass_on(invocation: Invocation) -> None:
    """Pass on one of the caller's functions; an empty dictionary where there is none of that name."""
    if invocation.arg(0, "functions") is None:
        function = _function(invocation)
        invocation.put(0, "functions", {} if function is None else {text(invocation.instance.name): function})


def _call(invocation: Invocation) -> ToolCall | None:
    asked = invocation.instance
    return None if _function(invocation) is None else ToolCall(asked.name, asked.args, text(asked.id))


def _replace(_: Any, __: Replacement, ___: Invocation) -> Any:
    """Return no replacement: the program computes with the result."""
    return NOT_HERE


def _inject(invocation: Invocation, values: dict[str, Any]) -> bool:
    """Put arguments behind those of the model."""
    name, function = text(invocation.instance.name), _function(invocation)
    invocation.put(0, "functions", {name: lambda **arguments: function(**{**arguments, **values})})
    return True


_cause = cause_behind("RuntimeError")  # which the framework makes of the function's own exception
_executed = ToolReader(
    PRODUCED,
    _call,
    ToolResult,
    is_refusal=raises_within("dspy", "TypeError", cause=_cause),
    cause=_cause,
    replace=_replace,
    parameters=lambda invocation: signatures.parameter_names(_function(invocation)),
    inject=_inject,
)


def _enter(invocation: Invocation) -> handler.Visit | handler.Unrecorded | None:
    _pass_on(invocation)
    return handler.enter_tool(_executed, invocation)


execute = Door(_enter)
