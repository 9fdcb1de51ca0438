"""A server of the toolbox whose telemetry is written to a file when it ends: ``served.py KIND TRANSPORT FILE``.

KIND is ``high`` (the server of decorators), ``low`` or ``fastmcp``. Over ``http`` it prints its port and serves until
its standard input ends; ``memory`` has the client in this process as well.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from tests.contract import toolbox
from tests.contract.child import Messages, Telemetry

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("lookup", {"key": "größe"}),
    ("big", {"n": 20_000}),
    ("cut", {}),
    ("broken", {"key": "größe"}),
]


def cut() -> str:
    """Return JSON that the tool itself cut."""
    return json.dumps([{"row": row} for row in range(2000)])[:10_000]


FUNCTIONS = {function.__name__: function for function in (toolbox.lookup, toolbox.big, toolbox.broken, cut)}
#: What the program announces itself about its tools.
ANNOUNCED = {"cut": {"anthropic/maxResultSizeChars": 12_000}}


def make(kind: str) -> Any:
    """Return a server of this kind."""
    if kind == "low":
        return _low()
    if kind == "fastmcp":
        from fastmcp import FastMCP as Server
    else:
        try:
            from mcp.server.mcpserver import MCPServer as Server
        except ImportError:
            from mcp.server.fastmcp import FastMCP as Server
    server: Any = Server("toolbox")
    for name, function in FUNCTIONS.items():
        add = server.add_tool if kind == "high" else server.tool
        add(function, meta=ANNOUNCED.get(name))
    return server


def _low() -> Any:
    from mcp import types
    from mcp.server.lowlevel import Server

    schema = {"type": "object"}
    if hasattr(Server, "call_tool"):
        old: Any = Server("toolbox")

        @old.list_tools()
        async def listed() -> Any:
            return [types.Tool(name=name, inputSchema=schema, _meta=ANNOUNCED.get(name)) for name in FUNCTIONS]

        @old.call_tool()
        async def called(name: str, arguments: Any) -> Any:
            return [types.TextContent(type="text", text=FUNCTIONS[name](**arguments))]

        return old

    async def tools(_: Any, __: Any) -> Any:
        offered = [types.Tool(name=name, input_schema=schema, _meta=ANNOUNCED.get(name)) for name in FUNCTIONS]
        return types.ListToolsResult(tools=offered)

    async def call(_: Any, params: Any) -> Any:
        try:
            text, is_error = FUNCTIONS[params.name](**params.arguments or {}), False
        except Exception as error:
            text, is_error = str(error), True
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)

    return Server("toolbox", on_list_tools=tools, on_call_tool=call)


async def _serve_low(server: Any) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _serve_http(server: Any, kind: str) -> None:
    import uvicorn

    app = server.http_app() if kind == "fastmcp" else server.streamable_http_app()
    serving = uvicorn.Server(uvicorn.Config(app, log_level="error"))

    def stop() -> None:
        sys.stdin.read()
        serving.should_exit = True

    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        threading.Thread(target=stop, daemon=True).start()
        serving.run(sockets=[listening])


async def _in_memory(server: Any, kind: str) -> None:
    if kind == "fastmcp":
        from fastmcp import Client as FastMcpClient

        async with FastMcpClient(server) as client:
            await call_all(client)
        return
    try:
        from mcp import Client
    except ImportError:
        from mcp.shared.memory import create_connected_server_and_client_session as connected

        async with connected(getattr(server, "_mcp_server", server)) as session:
            await call_all(session)
    else:
        async with Client(server) as client:
            await call_all(client)


async def call_all(client: Any) -> None:
    """Make the calls."""
    for name, arguments in CALLS:
        with contextlib.suppress(Exception):  # FastMCP's client raises the error of a tool
            await client.call_tool(name, arguments)


def main(kind: str, transport: str, file: str) -> None:
    """Serve, and then write what was recorded."""
    messages, telemetry = Messages(), Telemetry()
    server = make(kind)
    if transport == "memory":
        asyncio.run(_in_memory(server, kind))
    elif transport == "http":
        _serve_http(server, kind)
    elif kind == "low":
        asyncio.run(_serve_low(server))
    else:
        server.run("stdio")
    from agent_otel._internal import errors

    report = {
        "spans": telemetry.spans(),
        "metrics": telemetry.metrics(),
        "messages": messages.take(),
        "errors": dict(errors.errors),
    }
    Path(file).write_text(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
