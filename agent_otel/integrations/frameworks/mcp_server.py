"""Servers of the Model Context Protocol, both majors, high and low level, and FastMCP's, over any transport.

The call is read at the function that handles one request, and the result where the server has made its answer of it:
before the transport, so that one adapter serves all of them. mcp 2 traces each request itself; the look-up of the
handler is inside its span, which the call is written onto. FastMCP's span is around ``Tool._run``, which is read alone.

A tool that a client in this process has called is left to the client, whose call contains the server's.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agent_otel.core import handler
from agent_otel.core.plain import fields, is_empty, is_text, text
from agent_otel.core.types import HANDED_BACK, PRODUCED, Before, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.frameworks import mcp
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from collections.abc import Mapping

_METHOD = "tools/call"
#: True in the context of a request that is measured.
_is_measured: ContextVar[bool] = ContextVar("agent_otel_mcp_server", default=False)


def _call(name: object, arguments: object) -> ToolCall | None:
    named = text(name)
    call = None
    if named is not None and not mcp.is_called(named):
        call = ToolCall(named, {} if is_empty(arguments) else arguments, type="extension")
    _is_measured.set(call is not None)
    return call


def _is_fastmcp(server: object) -> bool:
    return type(server).__module__.partition(".")[0] == "fastmcp"


def _nothing(_: Any) -> None:
    """Return no result: the hooks inside the request have read it."""


def _handled(server: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ToolCall | None:
    asked = kwargs["req"] if "req" in kwargs else args[1]
    known = fields(asked)
    if text(known.get("method")) != _METHOD or _is_fastmcp(server):
        return None
    given = fields(known.get("params"))
    return _call(given.get("name"), given.get("arguments"))


def _responding(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    if not _is_measured.get():
        return
    known = fields(kwargs["response"] if "response" in kwargs else args[0])
    reading = mcp.result(known.get("root"))
    if reading is None and is_text(known.get("message")):  # an error of the protocol
        reading = ToolResult(known["message"], error_type=TOOL_ERROR, raised=True)
    if reading is not None:
        handler.handler_returned(reading)


def _request(runner: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ToolCall | None:
    method = kwargs["method"] if "method" in kwargs else args[1]
    if text(method) != _METHOD or _is_fastmcp(fields(runner).get("server")):
        return None
    given = fields(kwargs["params"] if "params" in kwargs else args[2])
    return _call(given.get("name"), given.get("arguments"))


def _looking_up(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    if text(kwargs["method"] if "method" in kwargs else args[0]) == _METHOD and _is_measured.get():
        handler.handler_started()


def _serialising(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    method = kwargs["method"] if "method" in kwargs else args[0]
    if text(method) == _METHOD and _is_measured.get():
        reading = mcp.result(kwargs["result"] if "result" in kwargs else args[2])
        if reading is not None:
            handler.handler_returned(reading)


def _tool(tool: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ToolCall | None:
    return _call(fields(tool).get("name"), kwargs["arguments"] if "arguments" in kwargs else args[0])


def _tool_result(answer: Any) -> ToolResult | None:
    """Read FastMCP's own form of a result, which has no error flag in FastMCP 3."""
    return mcp.result({"is_error": False, "structured_content": None, **fields(answer)})


handled = ToolReader(PRODUCED, _handled, _nothing)
responding = Before(_responding)
request = ToolReader(HANDED_BACK, _request, _nothing)
looking_up = Before(_looking_up)
serialising = Before(_serialising)
tool = ToolReader(PRODUCED, _tool, _tool_result)
