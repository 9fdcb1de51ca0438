"""The client of the Model Context Protocol, and FastMCP's, which ends in it.

Produced is read at ``ClientSession.call_tool``. mcp 2's ``Client`` and FastMCP's may go through that several times
for one call, because the server asks something back or the listing was stale; they stand outside, as what hands back,
so that this is one call and its last answer counts. A program that drives those rounds itself makes a call of each.

Inside a tool of a framework none of this is a call of its own: it is how that tool gets its result.
"""

from __future__ import annotations

import functools
import re
import sys
import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from agent_otel import settings
from agent_otel._internal import errors, fork
from agent_otel._internal.object_kinds import (
    fields,
    is_dict,
    is_empty,
    is_named,
    is_text,
    listed,
    number,
    properties,
    sole,
    text,
)
from agent_otel.core import handler
from agent_otel.core.payload_cap import MOST_ANNOUNCED
from agent_otel.core.types import (
    HANDED_BACK,
    LEFT_ALONE,
    Invocation,
    McpCall,
    Replacement,
    ToolCall,
    ToolReader,
    ToolResult,
)
from agent_otel.integrations.hooks import Flag, Hook, Passing, Within, on_return
from agent_otel.integrations.readers import inject_into, nothing, raises_within, replace_by_text
from agent_otel.integrations.registry import Candidate, Integration, Site
from agent_otel.semconv import PIPE, TCP, TOOL_ERROR

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


ENTRY = Integration(
    "mcp",
    minimum="1.9",
    tested="1.30 and 2.3",
    uncovered="resources, prompts, sampling and elicitation; `call_tool_as_task` of SDK 1's client",
    sites=(
        Candidate("mcp.client.session", session="ClientSession.call_tool", listing="ClientSession.list_tools"),
        Site(
            Candidate("mcp.client.session", sending="BaseSession.send_request"),  # mcp 1
            Candidate("mcp.client.session", sending="ClientSession.send_request"),
        ),
        Candidate("mcp.client.session", beginning="ClientSession.__init__", introduced="ClientSession.initialize"),
        Candidate("mcp.client.stdio", piping="_create_platform_compatible_process"),
        Candidate("mcp.client.streamable_http", requesting="StreamableHTTPTransport.__init__"),
        Candidate("mcp.client.sse", subscribing="sse_client"),
        Candidate("mcp.server.stdio", serving="stdio_server"),
        # Clients that may go through the session several times for one call.
        Site(Candidate("mcp.client.client", client="Client.call_tool"), minimum="2.0"),
        Site(
            Candidate("mcp.server.lowlevel.server", looking_up="Server.get_request_handler"),  # 2.0 and later
            Candidate(
                "mcp.server.lowlevel.server", handled="Server._handle_request", responding="RequestResponder.respond"
            ),
        ),
        Site(
            Candidate(
                "mcp.server.runner",
                request="ServerRunner._on_request",
                composing="ServerRunner._compose_server_middleware",
                serialising="ServerRunner._serialize",
            ),
            minimum="2.0",
        ),
    ),
)
FASTMCP_ENTRY = Integration(
    "fastmcp",
    minimum="3.0",
    tested="3.0 and 4.1",
    uncovered="resources and prompts; runs of tools as background tasks (the policy applies to their dispatch)",
    sites=(
        Candidate(
            "fastmcp.client.mixins.tools", client="ClientToolsMixin.call_tool_mcp", raising="ClientToolsMixin.call_tool"
        ),
        Site(
            Candidate("fastmcp.tools.base", tool="Tool._run"),  # 4.0 and later
            Candidate("fastmcp.tools.tool", tool="Tool._run"),
        ),
        # Up to 3: tools that a middleware answers, and those that a server offers to the client's model.
        Candidate("fastmcp.server.middleware.tool_injection", injected="ToolInjectionMiddleware.on_call_tool"),
        Site(
            Candidate("fastmcp.server.sampling.run", sampling="execute_tools", sampled="SamplingTool.run"),
            beside=("fastmcp.server.sampling",),
        ),
        Candidate("fastmcp_tasks.extension", task="create_task"),
    ),
)

_listed: WeakKeyDictionary[Any, dict[str, tuple[str, ...]]] = WeakKeyDictionary()
# The names of the structured result and of the error flag, in mcp 2 and before.
_SPELLINGS = (("structured_content", "is_error"), ("structuredContent", "isError"))

# Answers to arguments that do not fit the schema: of servers of mcp, low and high level, of fastmcp, and of other SDKs.
_REFUSAL = re.compile(
    r"(MCP error -32602: )?Input validation error: |MCP error -32602: Invalid arguments "
    r"|(Error (executing|calling) tool '?[\w.-]+'?: )?\d+ validation errors? for (\w+Arguments|call\[\w+\])\n"
)


def _call(invocation: Invocation) -> ToolCall:
    name = invocation.arg(0, "name")
    asked.set(text(name))
    arguments = invocation.arg(1, "arguments")
    connection = of_client(invocation.instance)
    return ToolCall(name, {} if is_empty(arguments) else arguments, type="extension", mcp=connection)


def result(answer: Any) -> ToolResult | None:
    """Read an answer; one without content is a question back, or an extension's."""
    known = fields(answer)
    names = _field_names(known)
    if names is None:
        return None
    beside = known.get(names[0])
    error_type = TOOL_ERROR if known.get(names[1]) is True else None
    texts, others = [], []
    for block in map(fields, listed(known["content"])):
        said = text(fields(block.get("resource", block)).get("text"))
        if said is None:
            others.append({name: value for name, value in block.items() if value is not None})
        else:
            texts.append(said)
    if not texts and beside is not None:
        return ToolResult(beside, error_type=error_type)
    whole = texts[0] if len(texts) == 1 else "".join(texts)
    value = [{"type": "text", "text": whole}, *others] if others else whole
    is_refused = error_type is not None and _REFUSAL.match(whole) is not None
    return ToolResult(value, beside, error_type, is_refused=is_refused)


def replace(answer: Any, replacement: Replacement, _: Invocation) -> Any:
    """Put a replacement into an answer, in both of its forms; an answer on the wire is a dictionary.

    FastMCP's client raises errors by default. An unchanged loop ends with that, so that it gets the replacement only.
    """
    types = sys.modules["mcp.types"]
    known = types.CallToolResult.model_fields if answer is None else fields(answer)
    structured_name, error_name = _field_names(known) or _SPELLINGS[0]
    produced = None if answer is None else known.get(structured_name)
    is_error = replacement.is_error and not (_raises.get() and (answer is None or known.get(error_name) is not True))
    data = structured(replacement, produced, is_error=replacement.is_error)
    update = {"content": _content(replacement), structured_name: data, error_name: is_error}
    if is_dict(answer):
        update["content"] = [{"type": "text", "text": replacement.text}]
        return {name: value for name, value in {**answer, **update}.items() if value is not None}
    return types.CallToolResult(**update) if answer is None else answer.model_copy(update=update)


def _content(replacement: Replacement) -> list[Any]:
    return [sys.modules["mcp.types"].TextContent(type="text", text=replacement.text)]


def denied(replacement: Replacement) -> Any:
    """Return the result of a call that a policy denies."""
    return replace(None, replacement, Invocation(None, (), {}))


def structured(replacement: Replacement, produced: Any, *, is_error: bool) -> Any:
    """Return the structured form: the replacement's data if it is an error or there was no form, else the text or None.

    Servers wrap the text of a tool in ``{"result": …}``; only this form can carry a text. Clients do not validate the
    structured form of errors.
    """
    if is_error or produced is None:
        return replacement.data
    inner = sole("result", produced)
    return {"result": replacement.text} if inner is not produced and is_text(inner) else None


def _parameters(invocation: Invocation) -> Any:
    """Return the parameters of the tool if the session has listed it, else those of the call."""
    call = _call(invocation)
    return _listed.get(invocation.instance, {}).get(text(call.name) or "") or tuple(fields(call.arguments))


@on_return
def listing(invocation: Invocation, listed: Any) -> None:
    """Remember which parameters the tools of a session have, as long as there is the session."""
    known = _listed.setdefault(invocation.instance, {})
    for tool in listed.tools:
        offered = fields(tool)
        known[tool.name] = properties(offered.get("inputSchema", offered.get("input_schema")))
        handler.tool_described(tool.name, offered.get("description"))


def _field_names(known: Mapping[str, Any]) -> tuple[str, str] | None:
    if "content" not in known:
        return None
    return next((names for names in _SPELLINGS if names[1] in known), None)


def _inject(invocation: Invocation, values: dict[str, Any]) -> None:
    arguments = invocation.arg(1, "arguments")
    invocation.put(1, "arguments", {**({} if is_empty(arguments) else arguments), **values})


#: True while FastMCP's client makes a call whose errors it raises.
_raises: ContextVar[bool] = ContextVar("agent_otel_mcp_raises", default=False)


raising = Hook(lambda call: call.kwargs.get("raise_on_error", True) is True or None, within=Flag(_raises))

session = ToolReader(_call, result, replace=replace, parameters=_parameters, inject=_inject)
client = ToolReader(_call, result, session, station=HANDED_BACK)

#: The tool of the call that is measured at the client in this context.
asked: ContextVar[str | None] = ContextVar("agent_otel_mcp_client", default=None)
#: The tools of the calls that have been sent and not been answered, one entry each.
_called: list[str] = []

# The calls that clients of the Model Context Protocol in this process wait for. A server in the same process leaves
# them to the client, and no others of the same tool: a client of another process may call it at any time.


def _sending(invocation: Invocation) -> str | None:
    known = fields(invocation.arg(0, "request"))
    known = fields(known.get("root", known))
    name = text(fields(known.get("params")).get("name"))
    if name is None or name != asked.get() or text(known.get("method")) != "tools/call":
        return None
    _called.append(name)
    return name


def _sent(invocation: Invocation, _: Any, __: BaseException | None) -> None:
    if invocation.state in _called:  # a fork forgets them
        _called.remove(invocation.state)


sending = Hook(_sending, _sent)
fork.after_fork(_called.clear)

_SESSION_ID = "mcp-session-id"

# Connections of the Model Context Protocol: the transport of a session, and the id that an HTTP server gave it. A
# client's session gets two streams and nothing of the transport. The transport that opened last in its context is the
# session's, unless two opened before a session did. A server gets the HTTP request with each message.


class _Connection(NamedTuple):
    """An open connection: its network transport, and the object that has the id of an HTTP session."""

    transport: str | None = None
    owner: Callable[[], Any] | None = None


#: The connection that opened last in this context, until a session takes it.
_opened: ContextVar[_Connection | None] = ContextVar("agent_otel_mcp_connection", default=None)
_sessions: WeakKeyDictionary[Any, _Connection] = WeakKeyDictionary()
_UNKNOWN = _Connection()
#: Names that the servers of sessions give themselves.
_names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
#: Holds an element when this process serves over its standard input and output.
_served: list[str] = []


def _open(connection: _Connection) -> None:
    """Remember a connection; of two that wait for a session, only a common transport is certain."""
    before = _opened.get()
    if before is not None:
        connection = _Connection(connection.transport if before.transport == connection.transport else None)
    _opened.set(connection)


@Hook
def beginning(invocation: Invocation) -> None:
    """Give a session the connection that has opened for it; an in-memory one has none."""
    connection = _opened.get()
    if connection is not None:
        _opened.set(None)
        _sessions[invocation.instance] = connection


@on_return
def introduced(invocation: Invocation, answer: Any) -> None:
    """Keep the name that a server gives itself in its answer to ``initialize``."""
    known = fields(answer)
    name = text(fields(known.get("serverInfo", known.get("server_info"))).get("name"))
    if name is not None:
        _names[invocation.instance] = name


@Hook
def serving(_: Invocation) -> None:
    if not _served:
        _served.append(PIPE)


def of_client(client: Any) -> McpCall:
    """Return the connection of a session, or of a client that has one."""
    known = fields(client)
    session = known.get("_session", fields(known.get("_session_state")).get("session", client))
    connection = _UNKNOWN if session is None else _sessions.get(session, _UNKNOWN)
    owner = None if connection.owner is None else connection.owner()
    server = None if session is None else _names.get(session)
    if server is None:  # a session of mcp 2 may have asked for it in another way
        server = text(fields(fields(session).get("_discover_server_info")).get("name"))
    return McpCall(text(fields(owner).get("session_id")), connection.transport, server)


def of_server(message: Any) -> McpCall:
    """Return the connection that a message with its metadata came over."""
    request = fields(fields(message).get("message_metadata")).get("request_context")
    if request is None:
        return McpCall(transport=_served[0] if _served else None)
    return McpCall(text(request.headers.get(_SESSION_ID)), TCP)


piping = Hook(lambda _: _open(_Connection(PIPE)))
requesting = Hook(lambda invocation: _open(_Connection(TCP, weakref.ref(invocation.instance))))
subscribing = Hook(lambda _: _open(_Connection(TCP)))

_ANNOUNCEMENT = "anthropic/maxResultSizeChars"
_MOST_TOOLS = 2_048
_UNLISTED: tuple[None, tuple[str, ...]] = (None, ())
#: The tools that a client has listed, by name: what the program itself announces, in characters, and the parameters.
_tools: dict[str, tuple[int | None, tuple[str, ...]]] = {}

# The list of an MCP server's tools: their parameters, and the announcement of how long their results may be. A tool
# announces it itself (``anthropic/maxResultSizeChars`` in its ``_meta``); the setting announces it for the others.


def announcing(listed_tools: object) -> Any:
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
    if name is not None:
        handler.tool_described(name, known.get("description"))
        if name in _tools or len(_tools) < _MOST_TOOLS:
            _tools[name] = own, properties(known.get("inputSchema", known.get("input_schema")))
    if own is None and characters is not None and is_named(tool, "Tool"):
        return tool.model_copy(update={"meta": {**meta, _ANNOUNCEMENT: min(characters, MOST_ANNOUNCED)}})
    return tool


_METHOD = "tools/call"
_LISTING = "tools/list"
#: The modules of FastMCP whose tools call other tools of the server as the model asks; those are calls of their own.
_CALLERS = (
    "fastmcp.contrib.bulk_tool_caller.bulk_tool_caller",
    "fastmcp.experimental.transforms.code_mode",
    "fastmcp.server.transforms.search.base",
)
#: The name by which the client of a request has introduced itself, such as ``claude-code``, and the connection.
_client: ContextVar[tuple[str | None, McpCall | None]] = ContextVar("agent_otel_mcp_host", default=(None, None))
#: The tool of the request that is measured in this context.
_measured: ContextVar[str | None] = ContextVar("agent_otel_mcp_server", default=None)

# Servers of the Model Context Protocol, both majors, high and low level, and FastMCP's, over any transport. The call
# is read at the function that handles one request, and the result where the server has made its answer of it: before
# the transport, so that one adapter serves all of them. mcp 2 traces each request itself; the look-up of the handler
# is inside its span, which the call is written onto. FastMCP's span is around ``Tool._run``, which is read alone. The
# list of the tools is read there, too. A tool that a client in this process is calling is left to the client, whose
# call contains the server's.


def call_of(name: object, arguments: object) -> ToolCall | None:
    """Read the call of a server's tool; return None for one that is left to the client."""
    named = text(name)
    call = None
    if named is not None and named not in _called:
        arguments, (announced, _) = {} if is_empty(arguments) else arguments, _tools.get(named, _UNLISTED)
        host, connection = _client.get()
        call = ToolCall(named, arguments, type="extension", host=host, announced=announced, mcp=connection)
    _measured.set(None if call is None else named)
    return call


def _served_call(server: object, session: object, message: object, given: object) -> ToolCall | None:
    """Read the call of a request; remember its client's name, which a stateless server has not, and its connection."""
    params = fields(fields(session).get("_client_params"))
    host = text(fields(params.get("clientInfo", params.get("client_info"))).get("name"))
    _client.set((host, of_server(message)))
    if type(server).__module__.partition(".")[0] == "fastmcp":
        return None
    asked = fields(given)
    return call_of(asked.get("name"), asked.get("arguments"))


def _handled(invocation: Invocation) -> ToolCall | None:
    known = fields(invocation.arg(1, "req"))
    if text(known.get("method")) != _METHOD:
        return None
    session, message = invocation.arg(2, "session"), invocation.arg(0, "message")
    return _served_call(invocation.instance, session, message, known.get("params"))


@Passing
async def responding(respond: Any, invocation: Invocation) -> Any:
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
        invocation.put(0, "response", response.model_copy(update={"root": announcing(root)}))
    if _measured.get() is None:
        return None
    if root is None and is_text(known.get("message")):
        handler.handler_returned(ToolResult(known["message"], error_type=TOOL_ERROR, raised=True))
    return root


def _request(invocation: Invocation) -> ToolCall | None:
    if text(invocation.arg(1, "method")) != _METHOD:
        return None
    runner, message = fields(invocation.instance), invocation.arg(0, "dctx")
    return _served_call(runner.get("server"), runner.get("connection"), message, invocation.arg(2, "params"))


@Hook
def looking_up(invocation: Invocation) -> None:
    if text(invocation.arg(0, "method")) == _METHOD and _measured.get() is not None:
        handler.handler_started()


@Hook
def serialising(invocation: Invocation) -> None:
    if text(invocation.arg(0, "method")) == _LISTING:
        invocation.put(2, "result", announcing(invocation.arg(2, "result")))


@Hook
def composing(invocation: Invocation) -> None:
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
    return result({"is_error": False, "structured_content": None, **fields(answer)})


def replace_tool_result(answer: Any, replacement: Replacement, _: Invocation) -> Any:
    """Put a replacement into FastMCP's own form of a result; a structured form that has to stay is left alone."""
    if answer is None:
        return LEFT_ALONE  # FastMCP makes an answer of the exception about the denial
    known = fields(answer)
    produced = known.get("structured_content")
    data = structured(replacement, produced, is_error="is_error" in known and replacement.is_error)
    if produced is not None and data is None:
        return LEFT_ALONE
    update = {"content": _content(replacement), "structured_content": data}
    update |= {"is_error": replacement.is_error} if "is_error" in known else {}
    return answer.model_copy(update=update)


def _inject_handled(invocation: Invocation, values: dict[str, Any]) -> None:
    asked = invocation.arg(1, "req")
    parameters = asked.params.model_copy(update={"arguments": {**fields(asked.params.arguments), **values}})
    invocation.put(1, "req", asked.model_copy(update={"params": parameters}))


def _inject_request(invocation: Invocation, values: dict[str, Any]) -> None:
    known = fields(invocation.arg(2, "params"))
    invocation.put(2, "params", {**known, "arguments": {**fields(known.get("arguments")), **values}})


def _answer_handled(replacement: Replacement, invocation: Invocation) -> Any:
    """Return what sends the answer; it is no result of the tool."""
    _measured.set(None)
    types = sys.modules["mcp.types"]
    return invocation.arg(0, "message").respond(types.ServerResult(denied(replacement)))


_answer = ToolReader(
    _handled,
    result,
    replace=replace,
    parameters=lambda _: _tools.get(_measured.get() or "", _UNLISTED)[1],  # if the client has listed the tools
)
# The hooks inside the request read the result.
handled = ToolReader(_handled, nothing, _answer, inject=_inject_handled, answer=_answer_handled)
request = ToolReader(
    _request,
    nothing,
    station=HANDED_BACK,
    inject=_inject_request,
    # A denied call is answered as it goes on the wire.
    replace=lambda _, denial, __: denied(denial).model_dump(by_alias=True, mode="json", exclude_none=True),
)


tool = ToolReader(
    _tool,
    tool_result,
    is_refusal=raises_within("fastmcp", "ValidationError"),
    replace=replace_tool_result,
    parameters=lambda invocation: properties(fields(invocation.instance).get("parameters")),
    inject=inject_into(0, "arguments"),
)

#: The ids of the calls of a model's turn, by id() of their arguments.
_turn: Within[dict[int, str | None]] = Within("agent_otel_fastmcp_sampling")

# FastMCP's servers: tools that run without the function which runs those of the server. Up to 3 a middleware answers
# the calls of the tools that it injects. With ``ctx.sample`` a tool offers further tools to the client's model, whose
# calls the server makes in a loop; their ids are known by the very object that a tool gets. From 4 on an extension
# has workers run a tool in the background. The policy decides when it is queued, before there is a result.


def _injected(invocation: Invocation) -> ToolCall | None:
    """Read a call; None for a tool that the middleware leaves to the server, as newer ones leave all."""
    if hasattr(type(invocation.instance), "get_injected_tool"):
        return None
    message = fields(fields(invocation.arg(0, "context")).get("message"))
    name = text(message.get("name"))
    if name not in fields(invocation.instance).get("_tools_to_inject_by_name", ()):
        return None
    return call_of(name, message.get("arguments"))


def _asked(invocation: Invocation) -> dict[int, str | None]:
    calls = map(fields, listed(invocation.arg(0, "tool_calls")))
    return {id(call.get("input")): text(call.get("id")) for call in calls}


def _sampled(invocation: Invocation) -> ToolCall:
    arguments = invocation.arg(0, "arguments")
    return ToolCall(invocation.instance.name, arguments, (_turn.get() or {}).get(id(arguments)))


injected = ToolReader(_injected, tool_result, replace=replace_tool_result)
task = ToolReader(
    lambda invocation: call_of(fields(invocation.arg(0, "tool")).get("name"), invocation.arg(1, "arguments")),
    nothing,  # the tool has not run yet
    # The answer to a denied call, in place of the task.
    replace=lambda _, denial, __: sys.modules["fastmcp.tools.base"].ToolResult(content=_content(denial), is_error=True),
)
sampling = Hook(_asked, within=_turn)
sampled = ToolReader(_sampled, ToolResult, replace=replace_by_text, inject=inject_into(0, "arguments"))
