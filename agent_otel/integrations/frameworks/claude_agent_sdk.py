"""The Claude Agent SDK, whose agent is a program of its own: the requests to the model leave from there.

Produced is read where that program asks a tool of this process, over the Model Context Protocol. What it has given the
model as the result comes back in the stream of messages, and is read where the SDK parses them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core import handler
from agent_otel.core.types import PRODUCED, Before, RequestPart, ToolCall, ToolReader, ToolResult
from agent_otel.semconv import TOOL_ERROR, TOOL_RESULTS

if TYPE_CHECKING:
    from collections.abc import Mapping

_CALL_ID = "claudecode/toolUseId"


def _call(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ToolCall | None:
    message = kwargs["message"] if "message" in kwargs else args[1]
    if message.get("method") != "tools/call":
        return None
    parameters = message["params"]
    call_id = (parameters.get("_meta") or {}).get(_CALL_ID)
    return ToolCall(parameters["name"], parameters.get("arguments") or {}, call_id, type="extension")


def _result(response: Any) -> ToolResult | None:
    """Read a response of JSON-RPC: the server turns an exception of a tool into a result with ``isError``."""
    if response is None or "error" in response:
        return (
            None if response is None else ToolResult(response["error"]["message"], error_type=TOOL_ERROR, raised=True)
        )
    result = response["result"]
    if result.get("isError"):
        return ToolResult(result["content"], error_type=TOOL_ERROR, raised=True)
    return ToolResult(result["content"], result.get("structuredContent"))


def _parsing(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    data = kwargs["data"] if "data" in kwargs else args[0]
    if data.get("type") != "user":
        return
    content = data["message"]["content"]
    for block in content if isinstance(content, list) else ():
        if block["type"] == "tool_result":
            handler.result_delivered(RequestPart(TOOL_RESULTS, block.get("content", ""), block["tool_use_id"]))


request = ToolReader(PRODUCED, _call, _result)
parsing = Before(_parsing)
