"""Agents and servers whose tools change: the keys of their results, and their definitions.

``python -m tests.system.drift.programs AGENT URL`` prints what was counted by tool, the events, and the messages.
"""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The frameworks are not installed where types are checked.

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from tests.contract.child import Messages, Telemetry

#: Calls before and after the change.
BEFORE, AFTER = 16, 16
COUNTERS = (
    *("agent_otel.tool.result.shape_changes", "agent_otel.tool.schema_changes"),
    "agent_otel.tool.invalid_arguments",
)


def row(number: int) -> dict[str, Any]:
    """Return a record of the tool's vendor, who renames a field."""
    return {"id": number, "name" if number < BEFORE else "title": "secret"}


def langchain(_: str) -> None:
    """Call a tool of LangChain that returns records: the model gets them as JSON text."""
    from langchain_core.tools import tool

    @tool
    def search(number: int) -> list[dict[str, Any]]:
        """Search."""
        return [row(number), row(number)]

    for number in range(BEFORE + AFTER):
        search.invoke({"type": "tool_call", "id": f"call_{number}", "name": "search", "args": {"number": number}})


def mcp(_: str) -> None:
    """Call a tool of a server in this process, which returns structured content."""
    asyncio.run(_mcp())


async def _mcp() -> None:
    from mcp.server.fastmcp import FastMCP
    from mcp.shared.memory import create_connected_server_and_client_session as connected

    server = FastMCP("records")

    @server.tool()
    def search(number: int) -> dict[str, Any]:
        """Search."""
        return {"rows": [row(number)], "total": 1}

    async with connected(server._mcp_server) as session:
        for number in range(BEFORE + AFTER):
            await session.call_tool("search", {"number": number})


def main(name: str, url: str) -> None:
    """Run an agent and print what was counted."""
    messages, telemetry = Messages(), Telemetry()
    globals()[name](url)
    counted = {
        f"{metric['name'].removeprefix('agent_otel.tool.')} {metric['attributes']['gen_ai.tool.name']}": metric["sum"]
        for metric in telemetry.metrics()
        if metric["name"] in COUNTERS and metric["sum"]
    }
    events = [
        {"span": span["name"], "event": event["name"], **event["attributes"]}
        for span in telemetry.spans()
        for event in span["events"]
        if event["name"] != "exception"
    ]
    print(json.dumps({"counted": counted, "events": events, "messages": messages.take()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
