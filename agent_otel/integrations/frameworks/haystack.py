"""Haystack.

Produced is read at ``Tool.invoke`` and ``Tool.invoke_async``. Neither knows the call: the model's arguments and the
call's id stand in the call for which the framework opens a span of its own, one frame further out. The exception of a
tool becomes the cause of the framework's, whose text the model gets.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agent_otel._internal.object_kinds import fields, is_empty, is_named, listed, properties, text
from agent_otel.core.types import LEFT_ALONE, NOT_HERE, RunReader, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.readers import cause_behind, inject_by_name, raises_within, run_named
from agent_otel.integrations.registry import Candidate, Integration

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation, Replacement

ENTRY = Integration(
    "haystack",
    distribution="haystack-ai",
    minimum="3.0",
    tested="3.4.0",
    uncovered="runs of pipelines (the calls of their agents are measured); tools that the provider runs",
    sites=(
        Candidate("haystack.tools.tool", tool="Tool.invoke Tool.invoke_async"),
        # The function that knows the call's id.
        Candidate("haystack.components.agents.tool_calling", before_span="_create_tool_span"),
        Candidate("haystack.components.agents.agent", agent_run="Agent.run Agent.run_async"),
    ),
)

# The model's call of the tool that runs; None where the program calls a tool itself.
_asked: ContextVar[Any] = ContextVar("agent_otel_haystack_call", default=None)


before_span = Hook(lambda invocation: _asked.set(invocation.arg(1, "tool_call")))


def _call(invocation: Invocation) -> ToolCall:
    asked = _asked.get()
    if asked is None:
        return ToolCall(invocation.instance.name, invocation.kwargs)
    # OpenAI's Responses have an id for the item, too; other models have none, and the call is still a model's.
    call_id = text(fields(asked.extra).get("call_id")) or text(asked.id) or asked.tool_name
    return ToolCall(invocation.instance.name, asked.arguments, call_id)


def _replace(value: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Return a replacement, except where the framework takes the result apart or where it is an image or a file."""
    tool = invocation.instance
    if _asked.get() is None:
        return NOT_HERE
    if is_named(value, "ToolInvocationError"):
        value.args = (replacement.text,)
        return value
    is_taken_apart = not is_empty(tool.outputs_to_state) or not is_empty(tool.outputs_to_string)
    if is_taken_apart or any(is_named(item, "ImageContent", "FileContent") for item in listed(value)):
        return LEFT_ALONE
    return replacement.text


_cause = cause_behind("ToolInvocationError")
tool = ToolReader(
    _call,
    ToolResult,
    is_refusal=raises_within("haystack", "TypeError", cause=_cause),
    cause=_cause,
    failure_text=lambda error: next(map(text, error.args), None) if is_named(error, "ToolInvocationError") else None,
    replace=_replace,
    parameters=lambda invocation: properties(invocation.instance.parameters),
    inject=inject_by_name,
)


agent_run = RunReader(run_named("__component_name__"))  # an agent has a name only as a component of a pipeline
