"""An MCP client inside an allowed tool, and calls while the program suppresses instrumentation."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,no-any-return,unused-ignore"
# The SDK is not installed where types are checked.
# ruff: noqa: ARG001, PERF401 - attempts, written as a program would
from __future__ import annotations

import asyncio
import json
from typing import Any

from mcp.server.fastmcp import FastMCP
from mcp.shared.memory import create_connected_server_and_client_session
from opentelemetry.instrumentation.utils import suppress_instrumentation

import agent_otel
from agent_otel.remedies import ToolDeniedError, use_policy

ran: list[str] = []
sessions: list[Any] = []
server = FastMCP("files")


@server.tool()
def delete(path: str) -> str:
    """Delete."""
    ran.append("delete")
    return "deleted"


@agent_otel.tool(name="delete")
def handwritten(path: str = "/") -> str:
    """Delete."""
    ran.append("handwritten")
    return "deleted"


@agent_otel.tool
async def outer() -> str:
    """Call the server's tool."""
    return str((await sessions[0].call_tool("delete", {"path": "/"})).content)


@agent_otel.tool
async def gathering() -> str:
    """Call the server's tool five times."""
    answers = await asyncio.gather(*(sessions[0].call_tool("delete", {"path": "/"}) for _ in range(5)))
    return str([answer.content for answer in answers])


@agent_otel.tool(name="files_delete")
async def prefixed(path: str) -> str:
    """Pass a call on to the server, as an adapter of a framework does."""
    return str((await sessions[0].call_tool("delete", {"path": path})).content)


@agent_otel.tool
def suppressing() -> str:
    """Call a tool while instrumentation is suppressed."""
    with suppress_instrumentation():
        return handwritten()


async def at_the_top() -> Any:
    return (await sessions[0].call_tool("delete", {"path": "/"})).content


async def suppressed() -> Any:
    with suppress_instrumentation():
        return await at_the_top()


async def in_suppressing() -> Any:
    return suppressing()


async def suppressed_outer() -> Any:
    with suppress_instrumentation():
        return await outer()


CASES = {
    "at the top": at_the_top,
    "in a tool": outer,
    "gathered in a tool": gathering,
    "under another name": lambda: prefixed("/"),
    "suppressed": suppressed,
    "suppressed in a tool": in_suppressing,
    "suppressed around a tool": suppressed_outer,
}


async def main() -> None:
    """Print what ran and what came back of each case."""
    report = {}
    use_policy({"rules": [{"tools": ["outer", "gathering", "files_delete", "suppressing"]}]})
    async with create_connected_server_and_client_session(server._mcp_server) as session:
        sessions.append(session)
        for name, call in CASES.items():
            ran.clear()
            try:
                answer = str(await call())
            except ToolDeniedError as error:
                answer = str(error)
            report[name] = [list(ran), answer]
        use_policy({"rules": [{"tools": "*"}]})
        limits = []
        with agent_otel.execution("run-1"):
            for _ in range(3):
                limits.append(await prefixed("/"))
        with agent_otel.execution("run-2"):
            limits.append(await gathering())
    print(json.dumps({"cases": report, "limits": limits}))


asyncio.run(main())
