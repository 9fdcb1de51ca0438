"""Clients of the Model Context Protocol, either major, connected to a server of the toolbox in the same process."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.contract.agents import mcp_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

try:
    from mcp import Client
except ImportError:
    Client = None


@asynccontextmanager
async def connect(setting: str) -> AsyncIterator[Any]:
    """A client: the newest kind, or the session when the setting says so."""
    if Client is None:
        from mcp.shared.memory import create_connected_server_and_client_session

        async with create_connected_server_and_client_session(mcp_server.make()._mcp_server) as session:
            yield session
    else:
        async with Client(mcp_server.make()) as client:
            yield client.session if setting == "session" else client


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Make the calls of the prompt at once; the texts they gave, joined."""
    del base_url, tools
    async with connect(setting) as client:
        return await call_all(client, prompt)


async def call_all(client: Any, prompt: str) -> str:
    """Make the calls of the prompt at once."""
    calls = [(name, arguments) for _, name, arguments in json.loads(prompt)["calls"]]
    results = await asyncio.gather(*(client.call_tool(name, arguments) for name, arguments in calls))
    blocks = [getattr(block, "resource", block) for result in results for block in result.content]
    return "".join(getattr(block, "text", "") for block in blocks)
