"""AG2, from 1.0 on.

Produced is read where a tool is called: one of a function, of an MCP server, or the shell, which make an event of an
exception. Handed back is read at ``_execute_call``, behind middleware. Neither knows the agent: its name is kept where
a turn begins, because each call runs in a task with a copy of that context.
"""

from __future__ import annotations

import copy
import sys
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agent_otel._internal.object_kinds import fields, identity, is_named, listed, properties, text
from agent_otel.core import handler
from agent_otel.core.types import HANDED_BACK, LEFT_ALONE, AgentRun, RunReader, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.hooks import revising
from agent_otel.integrations.readers import held, raises, raises_within
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent_otel.core.types import Invocation, Replacement

ENTRY = Integration(
    "ag2",
    minimum="1.2",
    tested="1.2",
    uncovered="tools that the provider (`ag2.tools.builtin`) or the program's client runs",
    sites=(
        Candidate("ag2.tools.final.function_tool", tool="FunctionTool.__call__"),
        Candidate("ag2.tools.toolkits.mcp_server.toolkit", tool="_MCPProxyTool.__call__"),
        # The shell of Anthropic's models: its commands run here.
        Candidate("ag2.tools.builtin.anthropic_bash", tool="AnthropicBashTool.__call__"),
        Candidate("ag2.tools.executor", execute="_execute_call"),
        Candidate(  # all ways to run an agent pass both
            "ag2.agent", agent_run="Agent._turn_scope", scope="Agent._drive_scope"
        ),
    ),
)

#: The arguments of the tool with a schema at Anthropic.
_BASH = ("command", "restart")

_agent: ContextVar[str | None] = ContextVar("agent_otel_ag2_agent", default=None)


@asynccontextmanager
async def _named(scope: Any, name: str | None) -> AsyncIterator[Any]:
    """Enter the scope of a turn: tools in it belong to its agent. A tool may be an agent with further turns."""
    with held(_agent, name):
        async with scope as drive:
            yield drive


scope = revising(lambda invocation, scope: _named(scope, text(invocation.instance.name)))


def _call(event: Any) -> ToolCall:
    return ToolCall(event.name, event.arguments, event.id, _agent.get())


def _result(event: Any) -> ToolResult:
    """Read an event; one of an error carries the exception."""
    if is_named(event, "ToolErrorEvent"):
        handler.handler_raised(event.error, tool)
    return _handed_back(event) or ToolResult("")


def _handed_back(event: Any) -> ToolResult | None:
    """Read an event; a call that is left to the program's client has no result yet."""
    result = getattr(event, "result", None)
    if result is None:
        return None
    # The text, the data, or the fields of a file.
    parts = [known.get("content", known.get("data", known)) for known in map(fields, listed(result.parts))]
    is_error = hasattr(event, "error")
    return ToolResult(parts[0] if len(parts) == 1 else parts, None, TOOL_ERROR if is_error else None, is_error)


def _replace(event: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Put a replacement into an event, which the framework has made; the result in it may be the tool's own."""
    if event is None:
        return sys.modules["ag2.events"].ToolResultEvent.from_call(invocation.arg(0, "event"), replacement.text)
    result = event.result
    if not all(is_named(part, "TextInput", "DataInput") for part in listed(result.parts)):
        return LEFT_ALONE  # an image or another file
    event.result = type(result)(replacement.text, final=result.final, metadata=result.metadata)
    return event


def _inject(invocation: Invocation, values: dict[str, Any]) -> None:
    """Put arguments into a copy of the call, which middleware has seen."""
    event = invocation.arg(0, "event")
    call = copy.copy(event)
    call.serialized_arguments = {**event.serialized_arguments, **values}
    invocation.put(0, "event", call)


def _parameters(invocation: Invocation) -> Any:
    schema = getattr(invocation.instance, "schema", None)
    return properties(schema.function.parameters) if schema is not None else _BASH


_is_control_flow = raises("HumanInputError")
tool = ToolReader(
    lambda invocation: _call(invocation.arg(0, "event")),
    _result,
    is_control_flow=_is_control_flow,
    is_refusal=raises_within("fast_depends", "ValidationError"),
    replace=_replace,
    parameters=_parameters,
    inject=_inject,
)
execute = ToolReader(
    lambda invocation: _call(invocation.arg(1, "call")),
    _handed_back,
    tool,
    station=HANDED_BACK,
    is_control_flow=_is_control_flow,
)


@RunReader
def agent_run(invocation: Invocation) -> AgentRun:
    """Read a turn of an agent; the stream keeps the messages of all turns."""
    stream = getattr(getattr(invocation.kwargs.get("context"), "stream", None), "id", None)
    return AgentRun(text(invocation.instance.name), identity(stream))
