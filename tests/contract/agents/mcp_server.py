"""A server of the toolbox over standard input and output, on either major of mcp."""

from __future__ import annotations

from typing import Any

from tests.contract import toolbox


def make() -> Any:
    """The server."""
    try:
        from mcp.server.mcpserver import MCPServer as Server
    except ImportError:
        from mcp.server.fastmcp import FastMCP as Server  # type: ignore[no-redef]
    server: Any = Server("toolbox")
    for function in (toolbox.lookup, toolbox.big, toolbox.broken, toolbox.linger, toolbox.table):
        server.add_tool(function)
    return server


if __name__ == "__main__":
    make().run("stdio")
