"""A program that calls tools over the Model Context Protocol and shows what it got, both forms and the flag."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from tests.contract.agents import mcp_client, mcp_server
from tests.contract.remedies import tools as offered

if TYPE_CHECKING:
    from collections.abc import Sequence

mcp_server.FUNCTIONS[:] = offered.FUNCTIONS


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Make the calls of the prompt, those of a turn at once."""
    del base_url, tools
    async with mcp_client.connect(setting) as client:
        return await call_all(client, prompt)


async def call_all(client: Any, prompt: str, **more: Any) -> str:
    """Make the calls of the prompt; what each returned, by its id."""
    found = {}
    script = json.loads(prompt)
    at_once = len(script["calls"]) if script.get("at_once") else 1
    calls = script["calls"]
    for first in range(0, len(calls), at_once):
        turn = calls[first : first + at_once]
        results = await asyncio.gather(*(client.call_tool(name, arguments, **more) for _, name, arguments in turn))
        found.update({id_: shown(result) for (id_, _, _), result in zip(turn, results, strict=True)})
    return json.dumps(found)


def shown(result: Any) -> dict[str, Any]:
    """A result in the words of either major."""
    structured = getattr(result, "structured_content", None) or getattr(result, "structuredContent", None)
    is_error = getattr(result, "is_error", None) or getattr(result, "isError", None) or False
    return {"text": "".join(b.text for b in result.content), "structured": structured, "is_error": is_error}
