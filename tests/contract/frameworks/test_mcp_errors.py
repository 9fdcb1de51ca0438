"""Answers of MCP servers about an error, which frameworks hand on as results like any other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent_otel.testing.servers.openai import OllamaServer, OpenAIServer, ToolCall, tool_results

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_otel.testing.servers.openai import Json, Reply
    from tests.environments import Environment

_SERVER = """
from mcp.server import MCPServer
from tests.contract.toolbox import broken, lookup
server = MCPServer("records")
server.tool()(lookup)
server.tool()(broken)
server.run()
"""
_BEGIN = """
import asyncio, json, os, shlex, sys
from tests.contract.child import Telemetry
telemetry = Telemetry()
env = {**os.environ, "AGENT_OTEL": "0"}
"""
_END = """
asyncio.run(main())
spans = [span["attributes"] for span in telemetry.spans() if "tool.args_hash" in span["attributes"]]
print(json.dumps([[span["gen_ai.tool.name"], span.get("error.type")] for span in spans]))
"""
_LLAMA_INDEX = """
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.ollama import Ollama
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

async def main():
    model = Ollama("scripted", base_url=sys.argv[1], context_window=8000)
    tools = await McpToolSpec(client=BasicMCPClient(sys.executable, args=[sys.argv[2]], env=env)).to_tool_list_async()
    await FunctionAgent(name="clerk", tools=tools, llm=model).run(user_msg="go")
"""
_AGNO = """
from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.tools.mcp import MCPTools

async def main():
    model = OpenAIChat("gpt-4o", base_url=sys.argv[1], api_key="scripted", max_retries=0)
    async with MCPTools(command=shlex.join([sys.executable, sys.argv[2]]), env=env, timeout_seconds=60) as tools:
        await Agent(model=model, tools=[tools], name="clerk", telemetry=False).arun("go")
"""


def _both(request: Json) -> Reply:
    """Ask for the call that succeeds and the one that fails."""
    calls = [ToolCall(f"call_{name}", name, '{"key":"a"}') for name in ("lookup", "broken")]
    return "done" if tool_results(request) or request["messages"][-1]["role"] == "tool" else calls


def _told(environment: Environment, server: OpenAIServer | OllamaServer, program: str, folder: Path) -> list[list[str]]:
    served = folder / "served.py"
    served.write_text(_SERVER)
    done = environment.run(
        f"{_BEGIN}{program}{_END}", server.base_url, str(served), env={"AGENT_OTEL": "1"}, check=True
    )
    report: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    return sorted(report)


def test_llama_index_hands_on_the_whole_answer(environment: Callable[[str], Environment], tmp_path: Path) -> None:
    with OllamaServer(_both) as server:
        report = _told(environment("llama-index-ollama"), server, _LLAMA_INDEX, tmp_path)
    assert report == [["broken", "tool_error"], ["lookup", None]]


def test_agno_makes_a_text_of_the_answer(environment: Callable[[str], Environment], tmp_path: Path) -> None:
    with OpenAIServer(_both) as server:
        report = _told(environment("agno-mcp"), server, _AGNO, tmp_path)
    assert tool_results(server.requests[-1])["call_broken"].startswith("Error from MCP tool 'broken': ")
    assert report == [["broken", "tool_error"], ["lookup", None]]
