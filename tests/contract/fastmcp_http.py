"""Calls of a FastMCP server's tools as another process makes them: over HTTP, and by no client of MCP's SDK."""

# mypy: disable-error-code="import-not-found,no-redef,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

from typing import Any

try:
    import httpx2 as httpx
except ImportError:
    import httpx


async def post(server: Any, name: str, arguments: dict[str, Any]) -> str:
    """Return the answer to a call of a tool."""
    app = server.http_app(stateless_http=True, json_response=True)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    accept = {"accept": "application/json, text/event-stream"}
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8000") as client,
    ):
        return str((await client.post("/mcp", headers=accept, json=body)).text)
