"""A client of mcp 2 or of FastMCP 4, which trace themselves; prints its spans and its metrics as JSON.

Argument: ``fastmcp``; ``memory`` for mcp's client and server in one process, ``stdio`` for a server of its own.
"""

# In its environment the framework is there, and where types are checked it is not.
# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"

from __future__ import annotations

import asyncio
import sys
from typing import Any

from tests.system.coexistence import reporting

tracer = reporting.provide()


def repeat(text: str) -> str:
    """Return ten times the text."""
    with tracer.start_as_current_span("body of repeat"):
        return text * 10


def plain_server() -> Any:
    """Return a server of mcp's own."""
    from mcp.server import MCPServer

    server = MCPServer("server")
    server.tool()(repeat)
    return server


def connect(kind: str) -> Any:
    """Return a client that is connected when entered."""
    if kind == "fastmcp":
        import fastmcp

        server = fastmcp.FastMCP("server")
        server.tool(repeat)
        return fastmcp.Client(server)
    import mcp
    from mcp.client.stdio import StdioServerParameters, stdio_client

    if kind == "memory":
        return mcp.Client(plain_server())
    arguments = ["-m", "tests.system.coexistence.mcp_program", "serve"]
    return mcp.Client(stdio_client(StdioServerParameters(command=sys.executable, args=arguments)))


async def main(kind: str) -> None:
    """Call the tool twice at once."""
    async with connect(kind) as client:
        for result in await asyncio.gather(*(client.call_tool("repeat", {"text": "abc"}) for _ in range(2))):
            assert "abc" * 10 == result.content[0].text


if sys.argv[1] == "serve":
    plain_server().run("stdio")
else:
    asyncio.run(main(sys.argv[1]))
    reporting.report()
