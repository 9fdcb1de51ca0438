"""Servers of the Model Context Protocol, both majors, high and low level, and FastMCP's, over any transport.

The call is read at the function that handles one request, and the result where the server has made its answer of it:
before the transport, so that one adapter serves all of them. mcp 2 traces each request itself; the look-up of the
handler is inside its span, which the call is written onto. FastMCP's span is around ``Tool._run``, which is read alone.

The list of the tools is read there, too: a tool may announce how long its results are (``anthropic/maxResultSizeChars``
in its ``_meta``), and the setting announces it for the others.

A tool that a client in this process has called is left to the client, whose call contains the server's.

The entry is in ``mcp.py``.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agent_otel import settings
from agent_otel.core import handler
from agent_otel.core.plain import fields, is_empty, is_named, is_raised_within, is_text, listed, number, text
from agent_otel.core.result_budget import MOST_ANNOUNCED
from agent_otel.core.types import HANDED_BACK, PRODUCED, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.frameworks import mcp
from agent_otel.integrations.hooks import Hook
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation, Replacement

_METHOD = "tools/call"
_LISTING = "tools/list"
_ANNOUNCEMENT = "anthropic/maxResultSizeChars"
_MOST_ANNOUNCEMENTS = 2_048
#: The announcements of the program itself, in characters, by the tools' names.
_announced: dict[str, int] = {}
#: The name by which the client of a request has introduced itself, such as ``claude-code``.
_host: ContextVar[str | None] = ContextVar("agent_otel_mcp_host", default=None)
#: True in the context of a request that is measured.
_is_measured: ContextVar[bool] = ContextVar("agent_otel_mcp_server", default=False)


def _call(name: object, arguments: object) -> ToolCall | None:
    named = text(name)
    call = None
    if named is not None and not mcp.is_called(named):
        arguments, announced = {} if is_empty(arguments) else arguments, _announced.get(named)
        call = ToolCall(named, arguments, type="extension", host=_host.get(), announced=announced)
    _is_measured.set(call is not None)
    return call


def _is_fastmcp(server: object) -> bool:
    return type(server).__module__.partition(".")[0] == "fastmcp"


def _introduce(session: object) -> None:
    """Remember the client's name for the request; a stateless server has none."""
    params = fields(fields(session).get("_client_params"))
    client = fields(params.get("clientInfo", params.get("client_info")))
    _host.set(text(client.get("name")))


def _nothing(_: Any) -> None:
    """Return no result: the hooks inside the request have read it."""


def _handled(invocation: Invocation) -> ToolCall | None:
    asked = invocation.arg(1, "req")
    known = fields(asked)
    if text(known.get("method")) != _METHOD:
        return None
    _introduce(invocation.arg(2, "session"))
    if _is_fastmcp(invocation.instance):
        return None
    given = fields(known.get("params"))
    return _call(given.get("name"), given.get("arguments"))


def _announcing(listed_tools: object) -> Any:
    """Return a list of tools in which each announces the length of its results; remember the program's own.

    The program may keep and send the same list again, so that each changed tool is a copy.
    """
    characters = settings.current().mcp_result_characters
    tools = listed(fields(listed_tools).get("tools"))
    made = [_announced_tool(tool, characters) for tool in tools]
    if characters is None or not is_named(listed_tools, "ListToolsResult"):
        return listed_tools
    return listed_tools.model_copy(update={"tools": made})  # type: ignore[attr-defined] # a model of the SDK


def _announced_tool(tool: Any, characters: int | None) -> Any:
    known = fields(tool)
    name, meta = text(known.get("name")), fields(known.get("meta"))
    own = number(meta.get(_ANNOUNCEMENT))
    if own is not None and name is not None:
        if len(_announced) < _MOST_ANNOUNCEMENTS:
            _announced[name] = own
    elif characters is not None and is_named(tool, "Tool"):
        return tool.model_copy(update={"meta": {**meta, _ANNOUNCEMENT: min(characters, MOST_ANNOUNCED)}})
    return tool


def _responding(invocation: Invocation) -> None:
    response = invocation.arg(0, "response")
    known = fields(response)
    if is_named(known.get("root"), "ListToolsResult"):
        made = response.model_copy(update={"root": _announcing(known["root"])})
        invocation.put(0, "response", made)
    if not _is_measured.get():
        return
    reading = mcp.result(known.get("root"))
    if reading is None and is_text(known.get("message")):  # an error of the protocol
        reading = ToolResult(known["message"], error_type=TOOL_ERROR, raised=True)
    if reading is not None:
        handler.handler_returned(reading)


def _request(invocation: Invocation) -> ToolCall | None:
    method = invocation.arg(1, "method")
    if text(method) != _METHOD:
        return None
    runner = fields(invocation.instance)
    _introduce(runner.get("connection"))
    if _is_fastmcp(runner.get("server")):
        return None
    given = fields(invocation.arg(2, "params"))
    return _call(given.get("name"), given.get("arguments"))


def _looking_up(invocation: Invocation) -> None:
    if text(invocation.arg(0, "method")) == _METHOD and _is_measured.get():
        handler.handler_started()


def _serialising(invocation: Invocation) -> None:
    method = text(invocation.arg(0, "method"))
    if method == _LISTING:
        invocation.put(2, "result", _announcing(invocation.arg(2, "result")))
    elif method == _METHOD and _is_measured.get():
        reading = mcp.result(invocation.arg(2, "result"))
        if reading is not None:
            handler.handler_returned(reading)


def _tool(invocation: Invocation) -> ToolCall | None:
    return _call(fields(invocation.instance).get("name"), invocation.arg(0, "arguments"))


def _tool_result(answer: Any) -> ToolResult | None:
    """Read FastMCP's own form of a result, which has no error flag in FastMCP 3."""
    return mcp.result({"is_error": False, "structured_content": None, **fields(answer)})


def _inject(invocation: Invocation, values: dict[str, Any]) -> bool:
    invocation.put(0, "arguments", {**fields(invocation.arg(0, "arguments")), **values})
    return True


def _inject_handled(invocation: Invocation, values: dict[str, Any]) -> bool:
    asked = invocation.arg(1, "req")
    arguments = {**fields(asked.params.arguments), **values}
    parameters = asked.params.model_copy(update={"arguments": arguments})
    invocation.put(1, "req", asked.model_copy(update={"params": parameters}))
    return True


def _inject_request(invocation: Invocation, values: dict[str, Any]) -> bool:
    known = fields(invocation.arg(2, "params"))
    invocation.put(2, "params", {**known, "arguments": {**fields(known.get("arguments")), **values}})
    return True


def _answer_handled(replacement: Replacement, invocation: Invocation) -> Any:
    """Return what sends the answer; it is no result of the tool."""
    _is_measured.set(False)
    types = sys.modules["mcp.types"]
    return invocation.arg(0, "message").respond(types.ServerResult(mcp.denied(replacement)))


def _answer_request(replacement: Replacement, _: Invocation) -> Any:
    """Return the answer as it goes on the wire."""
    return mcp.denied(replacement).model_dump(by_alias=True, mode="json", exclude_none=True)


handled = ToolReader(PRODUCED, _handled, _nothing, inject=_inject_handled, answer=_answer_handled)
responding = Hook(_responding)
request = ToolReader(HANDED_BACK, _request, _nothing, inject=_inject_request, answer=_answer_request)
looking_up = Hook(_looking_up)
serialising = Hook(_serialising)


def _is_refusal(error: BaseException) -> bool:
    return is_named(error, "ValidationError") and is_raised_within(error, "fastmcp")


tool = ToolReader(PRODUCED, _tool, _tool_result, is_refusal=_is_refusal, inject=_inject)
