"""Servers of FastMCP: all ways by which they run a tool, for a client of another process and for a model's code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

integrations = {
    "fastmcp": [
        "fastmcp.server.middleware.tool_injection:ToolInjectionMiddleware.on_call_tool",
        "fastmcp_tasks.extension:create_task",
    ],
    "mcp": ["mcp.client.session:BaseSession.send_request", "mcp.client.session:ClientSession.send_request"],
}

#: The requests are those of another process: they come over HTTP, and no client of MCP's SDK is here.
PROGRAM = """
import asyncio, importlib, json
import mcp.types as types
from fastmcp import Client, Context, FastMCP
from fastmcp.contrib.bulk_tool_caller import BulkToolCaller
from fastmcp.server.middleware.tool_injection import ToolInjectionMiddleware
from fastmcp.tools import Tool
from tests.contract.child import Telemetry
from tests.contract.fastmcp_http import post

ran = []

def lookup(key: str) -> str:
    ran.append("lookup")
    return "x" * 100

def injected(key: str) -> str:
    ran.append("injected")
    return "y" * 50

class Box:
    async def run(self, code, *, inputs=None, external_functions=None):
        return await external_functions["call_tool"]("lookup", {"key": "a"})

def serve(transform=None):
    server = FastMCP("records")
    server.tool(lookup)
    server.add_middleware(ToolInjectionMiddleware([Tool.from_function(injected)]))
    if transform is not None:
        server.add_transform(transform)
    return server

async def call_here(server, name, arguments):
    async with Client(server) as client:
        return str(await client.call_tool_mcp(name, arguments))

async def sample():
    turns = []

    async def answer(messages, params, context):
        turns.append(messages)
        if len(turns) == 1:
            call = types.ToolUseContent(type="tool_use", id="call_1", name="lookup", input={"key": "a"})
            return types.CreateMessageResultWithTools(role="assistant", model="m", stopReason="toolUse", content=[call])
        said = types.TextContent(type="text", text=str(messages[-1].content))
        return types.CreateMessageResultWithTools(role="assistant", model="m", stopReason="endTurn", content=said)

    server = FastMCP("records")

    @server.tool
    async def ask(ctx: Context) -> str:
        await ctx.sample("hi", tools=[lookup])
        return "asked"

    able = types.SamplingCapability(tools=types.SamplingToolsCapability())
    async with Client(server, sampling_handler=answer, sampling_capabilities=able) as client:
        await client.call_tool("ask", {})
    return str(turns[-1])

def cases():
    key = {"key": "a"}
    bulk = serve()
    BulkToolCaller().register_tools(bulk)
    yield "direct", lambda: post(serve(), "lookup", key)
    yield "injected", lambda: post(serve(), "injected", key)
    yield "in bulk", lambda: post(bulk, "call_tools_bulk", {"tool_calls": [{"tool": "lookup", "arguments": key}]})
    yield "of a client here", lambda: call_here(serve(), "lookup", key)
    yield "direct afterwards", lambda: post(serve(), "lookup", key)
    if hasattr(Context, "sample"):
        yield "sampled", sample
    else:
        search = importlib.import_module("fastmcp.server.transforms.search").RegexSearchTransform()
        code = importlib.import_module("fastmcp.experimental.transforms.code_mode").CodeMode(sandbox_provider=Box())
        yield "searched", lambda: post(serve(search), "call_tool", {"name": "lookup", "arguments": key})
        yield "in code", lambda: post(serve(code), "execute", {"code": "…"})

telemetry = Telemetry()
report = {}
for name, case in cases():
    ran.clear()
    telemetry.spans()
    said = asyncio.run(case())
    calls = []
    for span in telemetry.spans():
        known = span["attributes"]
        if known.get("tool.name") in ("lookup", "injected"):
            events = [event["name"] for event in span["events"] if event["name"] == "policy_denied"]
            calls.append([known["tool.name"], known.get("tool.result.bytes"), events])
    report[name] = [list(ran), calls, "tool_denied" in said]
from agent_otel._internal import errors
print(json.dumps([report, dict(errors.errors)]))
"""
ENVIRONMENTS = {"mcp-2": ("searched", "in code"), "fastmcp-3": ("sampled",)}
SHARED = ("direct", "injected", "in bulk", "of a client here", "direct afterwards")
BYTES = {"lookup": 100, "injected": 50}


def _run(environment: Environment, **env: str) -> Any:
    done = environment.run(PROGRAM, env={"AGENT_OTEL": "1", **env}, check=True)
    assert "is not instrumented" not in done.stderr
    report, failed = json.loads(done.stdout.splitlines()[-1])
    assert failed == {}
    return report


def _tool(case: str) -> str:
    return "injected" if case == "injected" else "lookup"


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_each_call_is_one_record(environment: Callable[[str], Environment], name: str) -> None:
    assert _run(environment(name)) == {
        case: [[_tool(case)], [[_tool(case), BYTES[_tool(case)], []]], False] for case in (*SHARED, *ENVIRONMENTS[name])
    }


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_tool_runs_that_the_policy_denies(
    environment: Callable[[str], Environment], tmp_path: Path, name: str
) -> None:
    """The policy allows the tools that call others."""
    policy = tmp_path / "policy.toml"
    policy.write_text('[[rules]]\ntools = ["ask", "call_tool", "call_tools_bulk", "execute"]\n')
    assert _run(environment(name), AGENT_OTEL_TOOL_POLICY=str(policy)) == {
        case: [[], [[_tool(case), None, ["policy_denied"]]], True] for case in (*SHARED, *ENVIRONMENTS[name])
    }


#: A tool that a worker of the process runs; the client is not measured, as one of another process is not.
TASK = """
import asyncio, json
from fastmcp import Client, FastMCP
from fastmcp_tasks import TasksExtension, call_tool_task
from tests.contract.child import Telemetry

ran = []
server = FastMCP("records")
server.add_extension(TasksExtension())

@server.tool(task=True)
async def lookup(key: str) -> str:
    ran.append("lookup")
    return "x" * 100

async def main():
    async with Client(server) as client:
        task = await call_tool_task(client, "lookup", {"key": "a"})
        await task.result()

telemetry = Telemetry()
try:
    asyncio.run(main())
except Exception as error:
    assert "did not run as a task" in str(error), error
events = [event["name"] for span in telemetry.spans() for event in span["events"]]
print(json.dumps([ran, events.count("policy_denied")]))
"""


@pytest.mark.parametrize(
    ("rules", "expected"),
    [('[[rules]]\ntools = "lookup"\n', [["lookup"], 0]), ("rules = []\n", [[], 1])],
    ids=["allowed", "denied"],
)
def test_the_policy_decides_before_a_tool_is_queued_for_a_worker(
    environment: Callable[[str], Environment], tmp_path: Path, rules: str, expected: list[Any]
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(rules)
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_TOOL_POLICY": str(policy), "FASTMCP_DOCKET_URL": "memory://"}
    done = environment("fastmcp-tasks").run(TASK, env={**env, "AGENT_OTEL_DISABLED_INTEGRATIONS": "mcp"}, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == expected
