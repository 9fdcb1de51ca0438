"""A support agent whose host cuts a tool's result in silence: the delayed order is in the half that is missing.

An MCP server returns the orders of a customer as JSON, a list or a page of it. Its host gives its model the head and
the tail of what is larger than 10,000 bytes, as Codex does. The model, a scripted one, answers from what it gets. With
``AGENT_OTEL_RESULT_CEILING_BYTES=auto`` the server withholds a result that this host would cut; the error names the
next action, and the model asks page by page. Prints a table: ``python examples/systems/001_weakest_layer.py``.
"""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

ORDERS = 400
DELAYED = 250
"""The number of the delayed order: behind the head that the host keeps, and before the tail."""
HOST = "codex-mcp-client"
HOST_BYTES = 10_000
VARIABLE = "AGENT_OTEL_RESULT_CEILING_BYTES"


class Run(NamedTuple):
    """The first call of a run, and the run's end: sizes are bytes."""

    produced: int
    delivered: int
    calls: int
    answer: str


def orders(customer: str) -> list[dict[str, Any]]:
    """Return all orders of a customer."""
    return [{"order": number, "customer": customer, "delayed": number == DELAYED} for number in range(ORDERS)]


def serve() -> None:
    """Serve the tool over stdio."""
    from mcp.server.fastmcp import FastMCP  # noqa: PLC0415 - only the child has it

    server = FastMCP("orders")

    @server.tool(structured_output=False)
    def search_orders(customer: str, cursor: int = 0, limit: int = ORDERS) -> str:
        """Find the orders of a customer; read on with `cursor`."""
        rows = orders(customer)[cursor : cursor + limit]
        following = cursor + limit if cursor + limit < ORDERS else None
        return json.dumps({"orders": rows, "next_cursor": following})

    server.run()


def shown(text: str) -> str:
    """Return what the host gives its model: all of a small text, else its head and its tail."""
    if len(text) <= HOST_BYTES:
        return text
    return f"{text[: HOST_BYTES // 2]}\n[... omitted ...]\n{text[-HOST_BYTES // 2 :]}"


def next_call(text: str, seen: list[bool]) -> dict[str, Any] | None:
    """Return the arguments of the model's next call, as a model makes it that reads errors; None when it answers."""
    try:
        found = json.loads(text)
    except ValueError:
        seen.append('"delayed": true' in text)
        return None
    if found.get("error") == "result_too_large":
        return {"customer": "Jane", "cursor": 0, "limit": 100}
    seen.extend(order["delayed"] for order in found["orders"])
    return None if found["next_cursor"] is None else {"customer": "Jane", "cursor": found["next_cursor"], "limit": 100}


async def run(**settings: str) -> Run:
    """Let the host and its scripted model find the delayed orders of a customer."""
    from mcp import ClientSession, StdioServerParameters, types  # noqa: PLC0415
    from mcp.client.stdio import stdio_client  # noqa: PLC0415

    environ = {**os.environ, "AGENT_OTEL": "1", **settings}
    server = StdioServerParameters(command=sys.executable, args=[__file__, "serve"], env=environ)
    host = types.Implementation(name=HOST, version="1")
    seen: list[bool] = []
    arguments: dict[str, Any] | None = {"customer": "Jane"}
    first, calls = "", 0
    async with stdio_client(server) as (read, write), ClientSession(read, write, client_info=host) as session:
        await session.initialize()
        while arguments is not None:
            result = await session.call_tool("search_orders", arguments)
            text = result.content[0].text
            first, calls = first or shown(text), calls + 1
            arguments = next_call(shown(text), seen)
    answer = "one order is delayed" if any(seen) else "no order is delayed"
    produced = len(json.dumps({"orders": orders("Jane"), "next_cursor": None}))
    return Run(produced, len(first.encode()), calls, answer)


def measured(**settings: str) -> Run:
    """Run the example in a process of its own."""
    code = [sys.executable, __file__, "run", json.dumps(settings)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_OTEL")}
    done = subprocess.run(code, env=environ, check=True, stdout=subprocess.PIPE, text=True)
    return Run(*json.loads(done.stdout))


def table() -> str:
    """Return the run with the variable and without it, as rows of Markdown."""
    rows = []
    for name, settings in (("as it is", {}), (f"`{VARIABLE}=auto`", {VARIABLE: "auto"})):
        found = measured(**settings)
        rows.append(f"| {name} | {found.produced:,} | {found.delivered:,} | {found.calls} | “{found.answer}” |\n")
    head = "| | bytes that the tool produced | bytes that the model got of the first result | calls | the answer |\n"
    return head + "| --- | --- | --- | --- | --- |\n" + "".join(rows)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    elif sys.argv[1:2] == ["run"]:
        print(json.dumps(asyncio.run(run(**json.loads(sys.argv[2])))))
    else:
        print(table())
