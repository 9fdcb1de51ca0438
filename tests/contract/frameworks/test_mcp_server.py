"""Servers of the Model Context Protocol: each call is one, on the server's own span where it has one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment
    from tests.forks import Forks

Json = dict[str, Any]

#: What the clients begin with; each is a fork of its own.
BEGIN = """
import asyncio, json, os, subprocess, sys
from mcp import ClientSession, StdioServerParameters, types
from mcp.client import streamable_http
from mcp.client.stdio import stdio_client
from tests.contract.agents import mcp_served
"""

#: Starts a server as a host does, and calls its tools; nothing is measured here.
CLIENT = """
async def main():
    environ = {{**os.environ, "AGENT_OTEL": "1", "PYTHONPATH": {root!r}}}
    arguments = ["-m", "tests.contract.agents.mcp_served", {kind!r}, "stdio", {file!r}]
    parameters = StdioServerParameters(command=sys.executable, args=arguments, env=environ)
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await mcp_served.call_all(session)

asyncio.run(main())
"""


#: Starts a server over HTTP, and calls its tools as a host of that name; both processes are measured.
HTTP_CLIENT = """
connect = getattr(streamable_http, "streamable_http_client", None) or streamable_http.streamablehttp_client

async def call(port):
    host = types.Implementation(name={host!r}, version="1.0")
    async with connect(f"http://127.0.0.1:{{port}}/mcp") as (read, write, *_):
        async with ClientSession(read, write, client_info=host) as session:
            await session.initialize()
            await mcp_served.call_all(session)
            await session.call_tool("lookup", {{"kay": "x"}})

arguments = [sys.executable, "-m", "tests.contract.agents.mcp_served", {kind!r}, "http", {file!r}]
environ = {{**os.environ, "PYTHONPATH": {root!r}}}
with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ) as server:
    asyncio.run(call(int(server.stdout.readline())))
    server.stdin.close()
"""


NOT_LIMITED = (
    "The limits of tool calls and tokens do not hold for a call that belongs to no execution, such as one that an MCP "
    "server answers. Set them for the agent, or name the execution with agent_otel.execution."
)
#: Starts a server with the settings as a host does, lists its tools, and prints the results that it gets.
RESULTS_CLIENT = """
async def main():
    environ = {{**os.environ, "AGENT_OTEL": "1", "PYTHONPATH": {root!r}, **{settings!r}}}
    arguments = ["-m", "tests.contract.agents.mcp_served", {kind!r}, "stdio", {file!r}]
    parameters = StdioServerParameters(command=sys.executable, args=arguments, env=environ)
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await session.list_tools()
        results = [await session.call_tool("lookup", {{"key": "x"}}), await session.call_tool("big", {{"n": 20_000}})]
    print(json.dumps([one.model_dump(by_alias=True, mode="json", exclude_none=True) for one in results]))

asyncio.run(main())
"""


class Newest:
    """What is wrapped in mcp 2 and FastMCP 4, and around the transports of both ends."""

    integrations: ClassVar = {
        "mcp": [
            "mcp.client.session:ClientSession.__init__",
            "mcp.client.sse:sse_client",
            "mcp.client.stdio:_create_platform_compatible_process",
            "mcp.client.streamable_http:StreamableHTTPTransport.__init__",
            "mcp.server.lowlevel.server:Server.get_request_handler",
            "mcp.server.runner:ServerRunner._on_request",
            "mcp.server.stdio:stdio_server",
        ],
        "fastmcp": ["fastmcp.tools.base:Tool._run"],
    }


class Older:
    """What is wrapped in mcp 1 and FastMCP 3."""

    integrations: ClassVar = {
        "mcp": ["mcp.server.lowlevel.server:Server._handle_request"],
        "fastmcp": ["fastmcp.tools.tool:Tool._run"],
    }


#: Row -> environment, kind of server, name and scope of the span, bytes of the text about the error, structured copies.
ROWS = {
    "mcp 1": ("mcp-1", "high", "execute_tool {tool}", "agent_otel", True),
    "mcp 1, low level": ("mcp-1", "low", "execute_tool {tool}", "agent_otel", False),
    "mcp 2": ("mcp-2", "high", "tools/call {tool}", "mcp-python-sdk", True),
    "mcp 2, low level": ("mcp-2", "low", "tools/call {tool}", "mcp-python-sdk", False),
    "fastmcp 4": ("mcp-2", "fastmcp", "tools/call {tool}", "fastmcp", True),
    "fastmcp 3": ("fastmcp-3", "fastmcp", "tools/call {tool}", "fastmcp", True),
}


def wait_for(file: Path, *messages: str) -> Json:
    """Return what the server wrote; it has ended with its client, and has logged these messages alone."""
    report: Json = json.loads(file.read_text())
    assert {} == report["errors"]
    assert [*messages] == report["messages"]
    return report


def sizes(report: Json) -> dict[str, tuple[int, int]]:
    """Count and sum of the sizes of results, by tool."""
    return {
        metric["attributes"]["gen_ai.tool.name"]: (metric["count"], metric["sum"])
        for metric in report["metrics"]
        if metric["name"] == "agent_otel.tool.result.size" and metric["count"]
    }


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.shows("001.mcp_servers")
def test_each_call_over_standard_input_and_output(
    forks: Forks, request: pytest.FixtureRequest, tmp_path: Path, row: str
) -> None:
    name, kind, span_name, scope, is_structured = ROWS[row]
    file = tmp_path / "report.json"
    code = CLIENT.format(root=str(request.config.rootpath), kind=kind, file=str(file))
    forks.run(name, BEGIN, code, {"AGENT_OTEL": "0"})
    report = wait_for(file)

    found = sizes(report)
    found.pop("broken", None)  # a text about the error, where the server makes one
    assert {"lookup": (1, 2009), "big": (1, 20_000), "cut": (1, 10_000)} == found
    ours = [span for span in report["spans"] if "tool.args_hash" in span["attributes"]]
    tools = ("lookup", "big", "cut", "broken")
    assert [(span_name.format(tool=tool), scope) for tool in tools] == [(one["name"], one["scope"]) for one in ours]
    attributes = {span["attributes"]["tool.name"]: span["attributes"] for span in ours}
    assert 2009 == attributes["lookup"]["tool.result.bytes"]
    assert is_structured == ("tool.result.structured_bytes" in attributes["lookup"])
    assert "cut_json" == attributes["cut"]["tool.result.truncation.reason"]
    assert attributes["broken"]["error.type"]
    assert {("tools/call", "pipe")} == {connection(span)[:2] for span in ours}  # FastMCP has ids without HTTP
    large = {
        metric["attributes"]["gen_ai.tool.name"]: metric["sum"]
        for metric in report["metrics"]
        if metric["name"] == "agent_otel.tool.results.large" and metric["sum"]
    }
    assert {"big": 1} == large


@pytest.mark.parametrize("row", [row for row in ROWS if "fastmcp 3" not in row])
@pytest.mark.shows("001.mcp_servers")
def test_a_client_and_a_server_in_one_process_count_a_call_once(forks: Forks, tmp_path: Path, row: str) -> None:
    name, kind, *_ = ROWS[row]
    file = tmp_path / "report.json"
    forks.run(name, BEGIN, f"mcp_served.main({kind!r}, 'memory', {str(file)!r})", {"AGENT_OTEL": "1"})
    report = wait_for(file)

    assert {"lookup": 1, "big": 1, "cut": 1, "broken": 1} == {tool: count for tool, (count, _) in sizes(report).items()}
    assert 4 == sum("tool.args_hash" in span["attributes"] for span in report["spans"])


@pytest.mark.parametrize("row", [row for row in ROWS if "low" not in row])
@pytest.mark.shows("001.mcp_servers", "001.host_cuts")
def test_a_client_and_a_server_over_http_count_a_call_once_each(
    forks: Forks, request: pytest.FixtureRequest, tmp_path: Path, row: str
) -> None:
    name, kind, span_name, scope, _ = ROWS[row]
    file = tmp_path / "report.json"
    code = HTTP_CLIENT.format(root=str(request.config.rootpath), kind=kind, file=str(file), host="codex-mcp-client")
    called = forks.measure(name, BEGIN, code)
    served = wait_for(file)
    assert ([], {}) == (called["messages"], called["errors"])

    tools = ["lookup", "big", "cut", "broken", "lookup"]
    connections = set()
    for report, span, of in ((served, span_name, scope), (called, "execute_tool {tool}", "agent_otel")):
        ours = [one for one in report["spans"] if "tool.args_hash" in one["attributes"]]
        assert [(span.format(tool=tool), of) for tool in tools] == [(one["name"], one["scope"]) for one in ours]
        connections |= {connection(one) for one in ours}
        assert {"big": (1, 20_000), "cut": (1, 10_000)} == {tool: sizes(report)[tool] for tool in ("big", "cut")}
        assert {"lookup": 1} == counts(report, "agent_otel.tool.invalid_arguments")
    ((method, transport, session_id),) = connections
    assert (method, transport) == ("tools/call", "tcp")
    assert session_id
    # The host passes 10,000 bytes on to its model. Its own process knows no limit.
    budgets = [
        {
            (attributes["tool.result.budget_bytes"], attributes["tool.result.budget_layer"])
            for attributes in (one["attributes"] for one in report["spans"])
            if "tool.result.budget_bytes" in attributes
        }
        for report in (served, called)
    ]
    assert [{(10_000, "host")}, {(16_000, "default")}] == budgets
    assert {"big": 1} == counts(served, "agent_otel.tool.results.over_budget", layer="host")


def connection(span: Json) -> tuple[str | None, ...]:
    """Return what the span of a call tells of its connection."""
    names = ("mcp.method.name", "network.transport", "mcp.session.id")
    return tuple(span["attributes"].get(name) for name in names)


def counts(report: Json, name: str, **labels: str) -> dict[str, int]:
    """Return what a counter has counted, by tool."""
    return {
        metric["attributes"]["gen_ai.tool.name"]: metric["sum"]
        for metric in report["metrics"]
        if metric["name"] == name and metric["sum"] and metric["attributes"].items() >= labels.items()
    }


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.shows("001.mcp_servers")
def test_the_ceiling_withholds_a_result_of_a_server(
    forks: Forks, request: pytest.FixtureRequest, tmp_path: Path, row: str
) -> None:
    name, kind, *_, is_structured = ROWS[row]
    file = tmp_path / "report.json"
    settings = {"AGENT_OTEL_RESULT_CEILING_BYTES": "16KB", "AGENT_OTEL_MAX_TOOL_CALLS": "1"}
    code = RESULTS_CLIENT.format(root=str(request.config.rootpath), kind=kind, file=str(file), settings=settings)
    done = forks.run(name, BEGIN, code, {"AGENT_OTEL": "0"})
    small, large = json.loads(done.stdout.splitlines()[-1])
    # Each request of FastMCP is a trace of its own, which is taken for an execution.
    report = wait_for(file, *([NOT_LIMITED] if kind != "fastmcp" else []))

    assert "x: " + "ß" * 1000 == small["content"][0]["text"]
    assert not small.get("isError")
    # Servers on the decorators know the tool's parameters; the low-level one has declared none.
    hint = "Ask for less with a smaller `n`." if kind != "low" else "Ask for something smaller, or use another tool."
    error = {
        "error": "result_too_large",
        "tool": "big",
        "size_bytes": 20_000,
        "limit_bytes": 16_000,
        "hint": f"Nothing was cut: the whole result was withheld. {hint}",
    }
    (block,) = large["content"]
    assert error == json.loads(block["text"])
    # FastMCP 3 has no flag for an error in a tool's result; the text keeps the form that the tool declares.
    assert ("fastmcp 3" not in row) == large.get("isError", False)
    if is_structured:
        assert (error if large.get("isError") else {"result": block["text"]}) == large["structuredContent"]
    ours = {
        span["attributes"]["tool.name"]: span["attributes"]
        for span in report["spans"]
        if "tool.args_hash" in span["attributes"]
    }
    assert ("ceiling", 20_000) == (ours["big"]["tool.result.truncation.reason"], ours["big"]["tool.result.bytes"])
    assert "tool.result.truncation.reason" not in ours["lookup"]


#: A server's calls that come over HTTP, before and after a client of the same process has called the tool.
SHARED = """
import asyncio, json
from fastmcp import Client, FastMCP
from tests.contract.child import Telemetry
from tests.contract.fastmcp_http import post

ran = []
server = FastMCP("records")

@server.tool
def lookup(key: str) -> str:
    ran.append("lookup")
    return "x" * 100

async def call():
    async with Client(server) as client:
        return str(await client.call_tool_mcp("lookup", {"key": "a"}))

async def call_over_http():
    return await post(server, "lookup", {"key": "a"})

telemetry = Telemetry()
report = []
for ask in (call_over_http, call, call_over_http):
    said = asyncio.run(ask())
    calls = [span["attributes"].get("tool.name") for span in telemetry.spans()]
    report.append([list(ran), [name for name in calls if name], "tool_denied" in said])
    ran.clear()
print(json.dumps(report))
"""


@pytest.mark.parametrize("name", ["mcp-2", "fastmcp-3"])
@pytest.mark.parametrize("rules", ['[[rules]]\ntools = "lookup"\n', "rules = []\n"], ids=["allowed", "denied"])
def test_a_call_is_left_to_a_client_of_the_process_only_while_that_waits(
    environment: Callable[[str], Environment], tmp_path: Path, name: str, rules: str
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(rules)
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_TOOL_POLICY": str(policy)}
    done = environment(name).run(SHARED, env=env, check=True)
    is_denied = "lookup" not in rules
    once = [[] if is_denied else ["lookup"], ["lookup"], is_denied]
    assert json.loads(done.stdout.splitlines()[-1]) == [once, once, once]
