"""A server of the toolbox over standard input and output, on either major of mcp."""

from __future__ import annotations

from typing import Any

from tests.contract import toolbox

try:
    from mcp.server.mcpserver import Image
    from mcp.server.mcpserver import MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server  # type: ignore[no-redef]
    from mcp.server.fastmcp import Image  # type: ignore[no-redef]


def picture() -> list[Any]:
    """Return a text and six bytes of a picture."""
    return ["größe", Image(data=b"GIF89a", format="gif")]


FUNCTIONS = (
    toolbox.lookup,
    toolbox.lookup_later,
    toolbox.big,
    toolbox.broken,
    toolbox.broken_later,
    toolbox.linger,
    toolbox.table,
    picture,
)


def make() -> Any:
    """The server."""
    server: Any = Server("toolbox")
    for function in FUNCTIONS:
        server.add_tool(function)
    return server


if __name__ == "__main__":
    make().run("stdio")
