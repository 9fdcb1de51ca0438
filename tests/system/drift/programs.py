"""Agents and servers whose tools change: the keys of their results, and their definitions.

``python -m tests.system.drift.programs AGENT URL`` prints what was counted by tool, the events, and the messages.
"""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The frameworks are not installed where types are checked.

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import sys
from typing import Any

from tests.contract import script
from tests.contract.child import LOOP, Messages, Telemetry

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


def definitions(url: str) -> None:
    """Offer LangChain's model a tool whose schema changes twice, and call the tool."""
    from langchain_core.tools import StructuredTool
    from langchain_openai import ChatOpenAI
    from opentelemetry import trace
    from pydantic import BaseModel, Field

    class Period(BaseModel):
        begin: str
        end: str = ""

    class First(BaseModel):
        mail: str
        limit: int = 10
        period: Period | None = None

    class Second(BaseModel):  # its definition has the size of the first one's
        post: str
        limit: int = 10
        period: Period | None = None

    class Third(BaseModel):
        post: str
        limit: str = Field()
        periods: list[Period]

    def search(**_: Any) -> str:
        """Search."""
        return "found"

    model = ChatOpenAI(model="scripted", base_url=url, api_key="scripted", max_retries=0)
    arguments: dict[str, Any] = {"mail": "a", "post": "a", "limit": "1", "periods": []}
    for schema, requests in ((First, 2), (Second, 15), (Third, 1), (First, 1)):
        tool = StructuredTool.from_function(search, args_schema=schema)
        for _ in range(requests):
            if schema is Third:
                with trace.get_tracer("program").start_as_current_span("request"):
                    model.bind_tools([tool]).invoke("go")
            else:
                model.bind_tools([tool]).invoke("go")
        tool.invoke({**arguments})


def agents(url: str) -> None:
    """Offer tools of the same name by two agents, with prompts of their own that hold a clock."""
    import openai

    client = openai.OpenAI(base_url=url, api_key="scripted", max_retries=0)
    for number in range(18):
        for role, field in (("research", "query"), ("write", "title")):
            schema = {"type": "object", "properties": {field: {"type": "string"}}}
            tools: Any = [{"type": "function", "function": {"name": "search", "parameters": schema}}]
            messages: Any = [{"role": "system", "content": f"It is {number}:00. You {role}."}]
            messages += [{"role": "user", "content": "go"}]
            client.chat.completions.create(model="scripted", messages=messages, tools=tools)


def lookup(key: str) -> str:
    """Look a record up."""
    return key


def strict(key: str) -> str:
    """Read a record that does not validate: the arguments are valid, what the tool got is not."""
    import pydantic

    return str(pydantic.TypeAdapter(int).validate_python(key))


def refused(url: str, name: str) -> None:
    """Run an agent whose model makes an argument up, and whose tool fails with an exception of the same class."""
    agent = importlib.import_module(f"tests.contract.agents.{name}")
    for call in (
        ("call_1", "lookup", {"kay": "x"}),
        ("call_2", "lookup", {"key": "x"}),
        ("call_3", "strict", {"key": "x"}),
    ):
        given = (url, [lookup, strict], script.prompt(call), "")
        with contextlib.suppress(Exception):
            agent.run(*given) if hasattr(agent, "run") else LOOP.run_until_complete(agent.arun(*given))


def main(name: str, url: str) -> None:
    """Run an agent and print what was counted."""
    messages, telemetry = Messages(), Telemetry()
    program, _, agent = name.partition(" ")
    globals()[program](*(url, agent)[: 1 + bool(agent)])
    metrics = telemetry.metrics()
    counted = {
        f"{metric['name'].removeprefix('agent_otel.tool.')} {metric['attributes']['gen_ai.tool.name']}": metric["sum"]
        for metric in metrics
        if metric["name"] in COUNTERS and metric["sum"]
    }
    fingerprints = [
        metric["attributes"]["fingerprint"]
        for metric in metrics
        if metric["name"] == "agent_otel.tool.definition_info" and metric["attributes"]["gen_ai.tool.name"] == "search"
    ]
    events = [
        {"span": span["name"], "event": event["name"], **event["attributes"]}
        for span in telemetry.spans()
        for event in span["events"]
        if event["name"] != "exception"
    ]
    found = {"counted": counted, "events": events, "messages": messages.take()}
    print(json.dumps({**found, "definitions": fingerprints} if fingerprints else found))


if __name__ == "__main__":
    main(*sys.argv[1:])
