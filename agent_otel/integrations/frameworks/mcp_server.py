"""Servers of the Model Context Protocol, both majors, high and low level, and FastMCP's, over any transport.

The call is read at the function that handles one request, and the result where the server has made its answer of it:
before the transport, so that one adapter serves all of them. mcp 2 traces each request itself; the look-up of the
handler is inside its span, which the call is written onto. FastMCP's span is around ``Tool._run``, which is read alone.

The list of the tools is read there, too.

A tool that a client in this process is calling is left to the client, whose call contains the server's.

The entry is in ``mcp.py``.
"""

from __future__ import annotations

import functools
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agent_otel._internal import errors
from agent_otel.core import handler
from agent_otel.core.plain import fields, is_empty, is_named, is_text, properties, text
from agent_otel.core.types import (
    HANDED_BACK,
    LEFT_ALONE,
    PRODUCED,
    Invocation,
    McpCall,
    ToolCall,
    ToolReader,
    ToolResult,
)
from agent_otel.integrations.frameworks import mcp, mcp_calls, mcp_connections, mcp_listing
from agent_otel.integrations.hooks import Hook, Passing
from agent_otel.integrations.reader_functions import inject_into, raises_within
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_otel.core.types import Replacement

_METHOD = "tools/call"
_LISTING = "tools/list"
#: The modules of FastMCP whose tools call other tools of the server as the model asks; those are calls of their own.
_CALLERS = (
    "fastmcp.contrib.bulk_tool_caller.bulk_tool_caller",
    "fastmcp.experimental.transforms.code_mode",
    "fastmcp.server.transforms.search.base",
)
#: The name by which the client of a request has introduced itself, such as ``claude-code``.
_host: ContextVar[str | None] = ContextVar("agent_otel_mcp_host", default=None)
#: The connection over which a request came.
_connection: ContextVar[McpCall | None] = ContextVar("agent_otel_mcp_over", default=None)
#: The tool of the request that is measured in this context.
_measured: ContextVar[str | None] = ContextVar("agent_otel_mcp_server", default=None)


def call_of(name: object, arguments: object) -> ToolCall | None:
    """Read the call of a server's tool; return None for one that is left to the client."""
    named = text(name)
    call = None
    if named is not None and not mcp_calls.is_called(named):
        arguments, announced = {} if is_empty(arguments) else arguments, mcp_listing.announced.get(named)
        host, connection = _host.get(), _connection.get()
        call = ToolCall(named, arguments, type="extension", host=host, announced=announced, mcp=connection)
    _measured.set(None if call is None else named)
    return call


def _is_fastmcp(server: object) -> bool:
    return type(server).__module__.partition(".")[0] == "fastmcp"


def _introduce(session: object, message: object) -> None:
    """Remember the client's name and its connection for the request; a stateless server has no name."""
    _connection.set(mcp_connections.of_server(message))
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
    _introduce(invocation.arg(2, "session"), invocation.arg(0, "message"))
    if _is_fastmcp(invocation.instance):
        return None
    given = fields(known.get("params"))
    return call_of(given.get("name"), given.get("arguments"))


async def _responding(respond: Callable[..., Any], invocation: Invocation) -> Any:
    """Read the answer to a request of mcp 1, and send it or what a remedy puts in its place."""
    root = _answer_of(invocation)
    if root is not None:
        answer = await handler.aremedied(_answer, root, invocation)
        handler.handler_left()
        if answer is not root:
            invocation.put(0, "response", sys.modules["mcp.types"].ServerResult(answer))
    return await respond(*invocation.args, **invocation.kwargs)


@errors.guarded("mcp_server.answer")
def _answer_of(invocation: Invocation) -> Any:
    """Return the result of a measured call; of another answer, make the announcement or read the protocol's error."""
    response = invocation.arg(0, "response")
    known = fields(response)
    root = known.get("root")
    if is_named(root, "ListToolsResult"):
        invocation.put(0, "response", response.model_copy(update={"root": mcp_listing.announcing(root)}))
    if _measured.get() is None:
        return None
    if root is None and is_text(known.get("message")):
        handler.handler_returned(ToolResult(known["message"], error_type=TOOL_ERROR, raised=True))
    return root


def _request(invocation: Invocation) -> ToolCall | None:
    method = invocation.arg(1, "method")
    if text(method) != _METHOD:
        return None
    runner = fields(invocation.instance)
    _introduce(runner.get("connection"), invocation.arg(0, "dctx"))
    if _is_fastmcp(runner.get("server")):
        return None
    given = fields(invocation.arg(2, "params"))
    return call_of(given.get("name"), given.get("arguments"))


def _looking_up(invocation: Invocation) -> None:
    if text(invocation.arg(0, "method")) == _METHOD and _measured.get() is not None:
        handler.handler_started()


def _serialising(invocation: Invocation) -> None:
    if text(invocation.arg(0, "method")) == _LISTING:
        invocation.put(2, "result", mcp_listing.announcing(invocation.arg(2, "result")))


def _composing(invocation: Invocation) -> None:
    """Read the result of mcp 2 inside the server's middleware: its span is open there."""
    if _measured.get() is not None:
        invocation.put(0, "inner", functools.partial(_answering, invocation.arg(0, "inner")))


async def _answering(answer: Callable[[Any], Any], asked: Any) -> Any:
    made = await answer(asked)
    remedied = await handler.aremedied(_answer, made, Invocation(None, (asked,), {}))
    handler.handler_left()
    return remedied


def _tool(invocation: Invocation) -> ToolCall | None:
    known = fields(invocation.instance)
    call = call_of(known.get("name"), invocation.arg(0, "arguments"))
    if call is None or getattr(known.get("fn"), "__module__", None) not in _CALLERS:
        return call
    return call._replace(is_agent=True)


def tool_result(answer: Any) -> ToolResult | None:
    """Read FastMCP's own form of a result, which has no error flag in FastMCP 3."""
    return mcp.result({"is_error": False, "structured_content": None, **fields(answer)})


def replace_tool_result(answer: Any, replacement: Replacement, _: Invocation) -> Any:
    """Put a replacement into FastMCP's own form of a result; a structured form that has to stay is left alone."""
    if answer is None:
        return LEFT_ALONE  # FastMCP makes an answer of the exception about the denial
    known = fields(answer)
    produced = known.get("structured_content")
    data = mcp.structured(replacement, produced, is_error="is_error" in known and replacement.is_error)
    if produced is not None and data is None:
        return LEFT_ALONE
    update = {"content": [sys.modules["mcp.types"].TextContent(type="text", text=replacement.text)]}
    update |= {"structured_content": data} | ({"is_error": replacement.is_error} if "is_error" in known else {})
    return answer.model_copy(update=update)


def _parameters(_: Invocation) -> Iterable[str]:
    """Return the parameters of the tool of the running request, if the client has listed the tools."""
    return mcp_listing.parameters.get(_measured.get() or "", ())


def _tool_parameters(invocation: Invocation) -> Iterable[str]:
    return properties(fields(invocation.instance).get("parameters"))


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
    _measured.set(None)
    types = sys.modules["mcp.types"]
    return invocation.arg(0, "message").respond(types.ServerResult(mcp.denied(replacement)))


def _answer_request(_: Any, replacement: Replacement, __: Invocation) -> Any:
    """Return the answer to a denied call as it goes on the wire."""
    return mcp.denied(replacement).model_dump(by_alias=True, mode="json", exclude_none=True)


_answer = ToolReader(PRODUCED, _handled, mcp.result, replace=mcp.replace, parameters=_parameters)
handled = ToolReader(PRODUCED, _handled, _nothing, _answer, inject=_inject_handled, answer=_answer_handled)
responding = Passing(_responding)
request = ToolReader(HANDED_BACK, _request, _nothing, inject=_inject_request, replace=_answer_request)
looking_up = Hook(_looking_up)
composing = Hook(_composing)
serialising = Hook(_serialising)


tool = ToolReader(
    PRODUCED,
    _tool,
    tool_result,
    is_refusal=raises_within("fastmcp", "ValidationError"),
    replace=replace_tool_result,
    parameters=_tool_parameters,
    inject=inject_into(0, "arguments"),
)
