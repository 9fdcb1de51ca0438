"""FastMCP's servers: tools that run without the function which runs those of the server.

Up to 3 a middleware answers the calls of the tools that it injects. With ``ctx.sample`` a tool offers further tools to
the client's model, whose calls the server makes in a loop; their ids are known by the very object that a tool gets.

From 4 on an extension has workers run a tool in the background. The policy decides when it is queued, before there is
a result.

The entry is in ``mcp.py``.
"""

from __future__ import annotations

import sys
from typing import Any

from agent_otel.core.plain import fields, listed, text
from agent_otel.core.types import PRODUCED, Invocation, Replacement, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.frameworks import mcp_server
from agent_otel.integrations.hooks import Hook, Within
from agent_otel.integrations.reader_functions import inject_into, replace_by_text

#: The ids of the calls of a model's turn, by id() of their arguments.
_turn: Within[dict[int, str | None]] = Within("agent_otel_fastmcp_sampling")


def _injected(invocation: Invocation) -> ToolCall | None:
    """Read a call; None for a tool that the middleware leaves to the server, as newer ones leave all."""
    if hasattr(type(invocation.instance), "get_injected_tool"):
        return None
    message = fields(fields(invocation.arg(0, "context")).get("message"))
    name = text(message.get("name"))
    if name not in fields(invocation.instance).get("_tools_to_inject_by_name", ()):
        return None
    return mcp_server.call_of(name, message.get("arguments"))


def _asked(invocation: Invocation) -> dict[int, str | None]:
    calls = map(fields, listed(invocation.arg(0, "tool_calls")))
    return {id(call.get("input")): text(call.get("id")) for call in calls}


def _sampled(invocation: Invocation) -> ToolCall:
    arguments = invocation.arg(0, "arguments")
    return ToolCall(invocation.instance.name, arguments, (_turn.get() or {}).get(id(arguments)))


def _queued(invocation: Invocation) -> ToolCall | None:
    return mcp_server.call_of(fields(invocation.arg(0, "tool")).get("name"), invocation.arg(1, "arguments"))


def _no_result(_: Any) -> None:
    """Return None: the tool has not run yet."""


def _refuse(_: Any, replacement: Replacement, __: Invocation) -> Any:
    """Return the answer to a denied call, in place of the task."""
    content = [sys.modules["mcp.types"].TextContent(type="text", text=replacement.text)]
    return sys.modules["fastmcp.tools.base"].ToolResult(content=content, is_error=True)


injected = ToolReader(PRODUCED, _injected, mcp_server.tool_result, replace=mcp_server.replace_tool_result)
task = ToolReader(PRODUCED, _queued, _no_result, replace=_refuse)
sampling = Hook(_asked, lambda *_: None, _turn)
sampled = ToolReader(PRODUCED, _sampled, ToolResult, replace=replace_by_text, inject=inject_into(0, "arguments"))
