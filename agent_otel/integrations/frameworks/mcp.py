"""The client of the Model Context Protocol, and FastMCP's, which ends in it.

Produced is read at ``ClientSession.call_tool``. mcp 2's ``Client`` and FastMCP's may go through that several times
for one call, because the server asks something back or the listing was stale; they stand outside, as what hands back,
so that this is one call and its last answer counts. A program that drives those rounds itself makes a call of each.

Inside a tool of a framework none of this is a call of its own: it is how that tool gets its result.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agent_otel.core import handler
from agent_otel.core.plain import fields, is_dict, is_empty, is_text, listed, properties, sole, text
from agent_otel.core.types import HANDED_BACK, PRODUCED, Invocation, Replacement, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.frameworks import mcp_calls
from agent_otel.integrations.frameworks.mcp_connections import of_client
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.registry.entries import Candidate, Integration, Site, Wrap
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ENTRY = Integration(
    "mcp",
    distribution="mcp",
    minimum="1.9",
    tested="1.30 and 2.3",
    uncovered="resources, prompts, sampling and elicitation; on the client, `call_tool_as_task` of SDK 1",
    sites=(
        Candidate(
            "mcp.client.session",
            Wrap("ClientSession.call_tool", "session"),
            Wrap("ClientSession.list_tools", "listing"),
        ),
        Site(
            Candidate("mcp.client.session", Wrap("BaseSession.send_request", "sending")),  # mcp 1
            Candidate("mcp.client.session", Wrap("ClientSession.send_request", "sending")),
            adapter="frameworks.mcp_calls",
        ),
        Site(
            Candidate(
                "mcp.client.session",
                Wrap("ClientSession.__init__", "beginning"),
                Wrap("ClientSession.initialize", "introduced"),
            ),
            adapter="frameworks.mcp_connections",
        ),
        Site(
            Candidate("mcp.client.stdio", Wrap("_create_platform_compatible_process", "piping")),
            adapter="frameworks.mcp_connections",
        ),
        Site(
            Candidate("mcp.client.streamable_http", Wrap("StreamableHTTPTransport.__init__", "requesting")),
            adapter="frameworks.mcp_connections",
        ),
        Site(Candidate("mcp.client.sse", Wrap("sse_client", "subscribing")), adapter="frameworks.mcp_connections"),
        Site(Candidate("mcp.server.stdio", Wrap("stdio_server", "serving")), adapter="frameworks.mcp_connections"),
        # Clients that may go through the session several times for one call.
        Site(Candidate("mcp.client.client", Wrap("Client.call_tool", "client")), minimum="2.0"),
        Site(
            Candidate("mcp.server.lowlevel.server", Wrap("Server.get_request_handler", "looking_up")),  # 2.0 and later
            Candidate(
                "mcp.server.lowlevel.server",
                Wrap("Server._handle_request", "handled"),
                Wrap("RequestResponder.respond", "responding"),
            ),
            adapter="frameworks.mcp_server",
        ),
        Site(
            Candidate(
                "mcp.server.runner",
                Wrap("ServerRunner._on_request", "request"),
                Wrap("ServerRunner._compose_server_middleware", "composing"),
                Wrap("ServerRunner._serialize", "serialising"),
            ),
            adapter="frameworks.mcp_server",
            minimum="2.0",
        ),
    ),
)
FASTMCP_ENTRY = Integration(
    "fastmcp",
    distribution="fastmcp",
    minimum="3.0",
    tested="3.0 and 4.1",
    uncovered="resources and prompts; the runs of tools as background tasks, to whose dispatch a policy applies",
    sites=(
        Candidate("fastmcp.client.mixins.tools", Wrap("ClientToolsMixin.call_tool_mcp", "client")),
        Site(
            Candidate("fastmcp.tools.base", Wrap("Tool._run", "tool")),  # 4.0 and later
            Candidate("fastmcp.tools.tool", Wrap("Tool._run", "tool")),
            adapter="frameworks.mcp_server",
        ),
        # Up to 3: tools that a middleware answers, and those that a server offers to the client's model.
        Site(
            Candidate(
                "fastmcp.server.middleware.tool_injection", Wrap("ToolInjectionMiddleware.on_call_tool", "injected")
            ),
            adapter="frameworks.fastmcp_server",
        ),
        Site(
            Candidate(
                "fastmcp.server.sampling.run", Wrap("execute_tools", "sampling"), Wrap("SamplingTool.run", "sampled")
            ),
            adapter="frameworks.fastmcp_server",
            beside=("fastmcp.server.sampling",),
        ),
        Site(Candidate("fastmcp_tasks.extension", Wrap("create_task", "task")), adapter="frameworks.fastmcp_server"),
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
    mcp_calls.asked.set(text(name))
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
    """Put a replacement into an answer, in both of its forms; an answer on the wire is a dictionary."""
    types = sys.modules["mcp.types"]
    content = [types.TextContent(type="text", text=replacement.text)]
    known = types.CallToolResult.model_fields if answer is None else fields(answer)
    structured_name, error_name = _field_names(known) or _SPELLINGS[0]
    produced = None if answer is None else known.get(structured_name)
    data = structured(replacement, produced, is_error=replacement.is_error)
    update = {"content": content, structured_name: data, error_name: replacement.is_error}
    if is_dict(answer):
        update["content"] = [{"type": "text", "text": replacement.text}]
        return {name: value for name, value in {**answer, **update}.items() if value is not None}
    return types.CallToolResult(**update) if answer is None else answer.model_copy(update=update)


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


def _parameters(invocation: Invocation) -> Iterable[str]:
    """Return the parameters of the tool if the session has listed it, else those of the call."""
    call = _call(invocation)
    return _listed.get(invocation.instance, {}).get(text(call.name) or "") or tuple(fields(call.arguments))


def _listing(invocation: Invocation, listed: Any, error: BaseException | None) -> None:
    """Remember which parameters the tools of a session have, as long as there is the session."""
    if error is None:
        known = _listed.setdefault(invocation.instance, {})
        for tool in listed.tools:
            offered = fields(tool)
            known[tool.name] = properties(offered.get("inputSchema", offered.get("input_schema")))
            handler.tool_described(tool.name, offered.get("description"))


def _field_names(known: Mapping[str, Any]) -> tuple[str, str] | None:
    if "content" not in known:
        return None
    return next((names for names in _SPELLINGS if names[1] in known), None)


def _inject(invocation: Invocation, values: dict[str, Any]) -> bool:
    arguments = invocation.arg(1, "arguments")
    invocation.put(1, "arguments", {**({} if is_empty(arguments) else arguments), **values})
    return True


session = ToolReader(PRODUCED, _call, result, replace=replace, parameters=_parameters, inject=_inject)
client = ToolReader(HANDED_BACK, _call, result, session)
listing = Hook(after=_listing)
