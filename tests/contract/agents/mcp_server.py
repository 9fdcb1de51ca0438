"""A server of the toolbox over standard input and output, on either major of mcp."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

from typing import Any

from mcp import types

from tests.contract import toolbox

try:
    from mcp.server.mcpserver import Context  # noqa: TC002 - the server reads annotations
    from mcp.server.mcpserver import MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server


def blocks() -> types.CallToolResult:
    """Return a text of 7 bytes, a resource with a text of 4 and another text of 1."""
    return types.CallToolResult.model_validate(
        {
            "content": [
                {"type": "text", "text": "größe"},
                {"type": "resource", "resource": {"uri": "file:///a", "text": "maß"}},
                {"type": "text", "text": "!"},
            ]
        }
    )


def structured() -> types.CallToolResult:
    """Return no text, only ``{"rows":[]}``, 11 bytes."""
    return types.CallToolResult.model_validate({"content": [], "structuredContent": {"rows": []}})


def picture() -> types.CallToolResult:
    """Return a text of 7 bytes and a picture."""
    picture = {"type": "image", "data": "R0lG", "mimeType": "image/gif"}
    return types.CallToolResult.model_validate({"content": [{"type": "text", "text": "größe"}, picture]})


FUNCTIONS: list[Any] = [
    toolbox.lookup,
    toolbox.lookup_later,
    toolbox.big,
    toolbox.broken,
    toolbox.broken_later,
    toolbox.linger,
    toolbox.table,
    blocks,
    structured,
    picture,
]

if hasattr(types, "InputRequiredResult"):

    def asks_back(context: Context) -> types.CallToolResult | types.InputRequiredResult:
        """Ask to be called again, and then return what ``lookup`` does."""
        if context.request_state is None:
            return types.InputRequiredResult(request_state="again")
        return types.CallToolResult.model_validate({"content": [{"type": "text", "text": toolbox.LOOKUP}]})

    FUNCTIONS.append(asks_back)


def make() -> Any:
    """The server."""
    server: Any = Server("toolbox")
    for function in FUNCTIONS:
        server.add_tool(function)
    return server


if __name__ == "__main__":
    make().run("stdio")
