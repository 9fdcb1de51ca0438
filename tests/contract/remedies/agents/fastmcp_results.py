"""The same through FastMCP's client."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import fastmcp

from tests.contract.agents import mcp_server
from tests.contract.remedies.agents import mcp_results

if TYPE_CHECKING:
    from collections.abc import Sequence


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Make the calls of the prompt."""
    del base_url, tools, setting
    async with fastmcp.Client(mcp_server.make()) as client:
        return await mcp_results.call_all(client, prompt, raise_on_error=False)
