"""An agent of Pydantic AI that Temporal carries: workflow, tools and an MCP server in one file, as users write it.

``main`` prints as JSON what the workflow said, the payloads that the server has in the workflow's history, what was
recorded, and what the program saw: the events of the stream, the tools' tokens, log lines. With the variable STREAMED
the agent streams; ``main`` is given a text that may be in no event of the history.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
# Neither is installed where types are checked.

from __future__ import annotations

import asyncio
import json
import os
import sys
import uuid
from typing import Any

from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from fastmcp import FastMCP
    from pydantic_ai import Agent, ModelRetry, RunContext, Tool
    from pydantic_ai.durable_exec.temporal import PydanticAIPlugin, PydanticAIWorkflow, TemporalDurability
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.toolsets import DynamicToolset, FunctionToolset

provider = OpenAIProvider(base_url=os.environ["MODEL_URL"], api_key="scripted")
files = FastMCP("files")
attempts: list[int] = []
seen: dict[str, list[str]] = {"events": [], "tokens": [], "leaked": []}


async def watch(_: Any, events: Any) -> None:
    """Take note of the events of a stream."""
    async for event in events:
        seen["events"].append(type(event).__name__)


async def inline(n: int) -> str:
    """Find them in workflow code."""
    return "w" * n if workflow.in_workflow() else ""


def build(_: RunContext[Any]) -> FunctionToolset[Any]:
    """Return the toolset that a run needs."""
    return FunctionToolset([dig])


def dig(n: int, token: str = "") -> str:
    """Dig for so many letters."""
    seen["tokens"].append(token)
    return "d" * n


STREAMED = "STREAMED" in os.environ
agent = Agent(
    OpenAIChatModel("scripted", provider=provider),
    name="clerk",
    capabilities=[TemporalDurability(event_stream_handler=watch if STREAMED else None)],
    tools=[Tool(inline, metadata={"temporal": False})],
    toolsets=[MCPToolset(files, id="files"), *([DynamicToolset(build, id="built")] if STREAMED else ())],
)
#: The fields of the history's events that are payloads of an activity.
_PAYLOADS = {
    "activity_task_scheduled_event_attributes": "input",
    "activity_task_completed_event_attributes": "result",
}


@agent.tool_plain
async def search(n: int, token: str = "") -> str:
    """Find so many letters."""
    seen["tokens"].append(token)
    return "x" * n


@agent.tool_plain
def flaky(n: int) -> str:
    """Find them at the second attempt."""
    attempts.append(n)
    if len(attempts) == 1:
        raise RuntimeError("not yet")
    return "y" * n


@agent.tool_plain
async def ask_again(n: int) -> str:
    """Ask the model for another call, with so many letters."""
    raise ModelRetry("r" * n)


@files.tool
def fetch(n: int, token: str = "") -> str:
    """Fetch so many letters."""
    seen["tokens"].append(token)
    return "z" * n


@workflow.defn
class Talk(PydanticAIWorkflow):
    """Ask the agent."""

    __pydantic_ai_agents__ = (agent,)

    @workflow.run
    async def run(self, question: str) -> str:
        """Run it."""
        return str((await agent.run(question)).output)


async def _talk(address: str) -> tuple[str, dict[str, int]]:
    client = await Client.connect(address, plugins=[PydanticAIPlugin()])
    queue = str(uuid.uuid4())
    sizes = dict.fromkeys(_PAYLOADS.values(), 0)
    # Without a cache each workflow task replays the workflow from its begin.
    async with Worker(client, task_queue=queue, workflows=[Talk], max_cached_workflows=0):
        handle = await client.start_workflow(Talk.run, "go", id=queue, task_queue=queue)
        said = await handle.result()
        async for event in handle.fetch_history_events():
            seen["leaked"] += [text for text in sys.argv[2:] if text.encode() in event.SerializeToString()]
            kind = event.WhichOneof("attributes")
            if kind in _PAYLOADS:
                sizes[_PAYLOADS[kind]] += getattr(getattr(event, kind), _PAYLOADS[kind]).ByteSize()
    return said, sizes


def main() -> None:
    """Run it."""
    from agent_otel._internal import errors
    from agent_otel.telemetry.setup import integrations
    from tests.contract.child import Messages, Telemetry
    from tests.contract.runtimes.child import settle
    from tests.contract.runtimes.programs.temporal import leave

    telemetry, messages = Telemetry(), Messages()
    case: dict[str, Any] = {}
    said, sizes = asyncio.run(_talk(sys.argv[1]))
    settle(telemetry, case)
    print(json.dumps([said, sizes, case, integrations(), dict(errors.errors), {**seen, "messages": messages.take()}]))
    leave()
