"""The Claude Agent SDK, whose agent is a program of its own: the requests to the model leave from there.

Produced is read where that program asks a tool of this process, over the Model Context Protocol. What it has given the
model as the result comes back in the stream of messages, and is read where the SDK parses them. So are the calls of its
built-in tools: their size is that of the text that the model got.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from agent_otel._internal.object_kinds import fields, is_empty, is_text, listed, sole, text
from agent_otel.core import handler, remedy_hooks
from agent_otel.core.types import AgentRun, McpCall, RequestPart, RunReader, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.readers import remember
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.messages.fields import RESULT_ID
from agent_otel.semconv import TOOL_CALL_ARGUMENTS, TOOL_ERROR, TOOL_RESULTS

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation, Replacement

ENTRY = Integration(
    "claude-agent-sdk",
    minimum="0.2",
    tested="0.2.186 with its bundled program",
    uncovered=("built-in tools (Bash, Read, …): only the delivered size is known; remedies and the policy do not act"),
    sites=(
        Candidate("claude_agent_sdk._internal.query", request="Query._handle_sdk_mcp_request"),
        Candidate("claude_agent_sdk._internal.query", agent_run="Query._read_messages"),
        Candidate("claude_agent_sdk._internal.message_parser", parsing="parse_message"),
        # The same function under the name by which it was imported; it is wrapped by now, unless activation was late.
        Candidate("claude_agent_sdk._internal.client", parsing="parse_message"),
    ),
)

_CALL_ID = "claudecode/toolUseId"


def _call(invocation: Invocation) -> ToolCall | None:
    message = fields(invocation.arg(1, "message"))
    if text(message.get("method")) != "tools/call":
        return None
    parameters = fields(message["params"])
    arguments, call_id = parameters.get("arguments"), fields(parameters.get("_meta")).get(_CALL_ID)
    arguments = {} if is_empty(arguments) else arguments
    return ToolCall(parameters["name"], arguments, call_id, type="extension", mcp=McpCall())


def _result(response: Any) -> ToolResult | None:
    """Read a response of JSON-RPC: the server turns an exception of a tool into a result with ``isError``."""
    if response is None:
        return None
    answer = fields(response)
    if "error" in answer:
        return ToolResult(fields(answer["error"])["message"], error_type=TOOL_ERROR, raised=True)
    result = fields(answer["result"])
    if result.get("isError") is True:
        return ToolResult(result["content"], error_type=TOOL_ERROR, raised=True)
    return ToolResult(result["content"], result.get("structuredContent"))


def _replace(response: Any, replacement: Replacement, invocation: Invocation) -> dict[str, Any]:
    """Put a replacement into a response; an error of the protocol becomes a result with ``isError``.

    The program sends the requests to the model, so that no tool can be added to them. A tool of the process has another
    name there, ``mcp__server__tool``.
    """
    written = remedy_hooks.unnamed(__name__, replacement.text)
    result = {} if response is None else fields(fields(response).get("result", {}))
    structured = result.get("structuredContent")
    kept = {name: value for name, value in result.items() if name != "structuredContent"}
    if is_text(sole("result", structured)):  # the form that a server gives to a text; no other form can carry one
        kept["structuredContent"] = {"result": written}
    flag = {"isError": True} if replacement.is_error else {}
    message = fields(invocation.arg(1, "message"))
    content = [{"type": "text", "text": written}]
    return {"jsonrpc": "2.0", "id": message.get("id"), "result": {**kept, "content": content, **flag}}


def _inject(invocation: Invocation, values: dict[str, Any]) -> None:
    message = fields(invocation.arg(1, "message"))
    parameters = fields(message["params"])
    arguments = {**fields(parameters.get("arguments")), **values}
    invocation.put(1, "message", {**message, "params": {**parameters, "arguments": arguments}})


# Calls that the model has asked for, by their ids, until their results come.
_asked: OrderedDict[str, RequestPart] = OrderedDict()
_MOST_ASKED = 256


@Hook
def parsing(invocation: Invocation) -> None:
    data = fields(invocation.arg(0, "data"))
    kind = text(data.get("type"))
    if kind not in {"assistant", "user"}:
        return
    for block in map(fields, listed(fields(data["message"])["content"])):
        what = text(block["type"])
        if kind == "assistant" and what == "tool_use" and (call_id := text(block["id"])) is not None:
            part = RequestPart(TOOL_CALL_ARGUMENTS, block["input"], call_id, text(block["name"]))
            remember(_asked, call_id, part, _MOST_ASKED)
        elif kind == "user" and what == "tool_result":
            call_id = text(block[RESULT_ID])
            failed = block.get("is_error") is True
            part = RequestPart(TOOL_RESULTS, block.get("content", ""), call_id, failed=failed)
            handler.result_delivered(part, __name__, None if call_id is None else _asked.pop(call_id, None))


request = ToolReader(_call, _result, replace=_replace, inject=_inject)


# Read a run: the reading of what the program sends, which asks for the tools, until it is disconnected.
agent_run = RunReader(lambda _: AgentRun(), is_cancelled_at_end=True)
