"""An agent of Strands."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
from strands import Agent, ToolContext, tool
from strands.hooks import AfterToolCallEvent, BeforeToolCallEvent
from strands.models.bedrock import BedrockModel
from strands.models.openai import OpenAIModel
from strands.multiagent import GraphBuilder, Swarm

from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence


def make(base_url: str, tools: Sequence[Any], setting: str, name: str = "clerk") -> Agent:
    """An agent with these tools."""
    model: Any
    if setting == "bedrock":
        session = boto3.Session("scripted", "scripted", region_name="us-east-1")
        model = BedrockModel(boto_session=session, endpoint_url=base_url, model_id="scripted")
    else:
        client = {"base_url": base_url, "api_key": "scripted", "max_retries": 0}
        model = OpenAIModel(client_args=client, model_id="scripted")
    natives = [delegate(base_url) if each == "delegate" else native(each) for each in tools]
    agent = Agent(model=model, tools=natives, name=name, callback_handler=None)
    if setting in HOOKS:
        event, callback = HOOKS[setting]
        agent.hooks.add_callback(event, callback)
    return agent


def native(function: Any) -> Any:
    """The framework's tool for a plain function."""
    return function if hasattr(function, "tool_spec") else tool(function)


def _said(result: Any) -> str:
    if result.stop_reason == "interrupt":
        return "interrupted"
    return "".join(block.get("text", "") for block in result.message["content"])


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync."""
    return _said(make(base_url, tools, setting)(prompt))


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    if setting in {"graph", "swarm"}:
        return await team(base_url, tools, prompt, setting)
    return _said(await make(base_url, tools, setting).invoke_async(prompt))


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, streamed."""
    last: Any = None
    async for event in make(base_url, tools, setting).stream_async(prompt):
        last = event.get("result", last)
    return _said(last)


async def team(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run of two agents: the second is behind the first in a graph, and never asked in a swarm."""
    agents = [make(base_url, tools, "", name) for name in ("clerk", "assistant")]
    if setting == "swarm":
        result = await Swarm(agents).invoke_async(prompt)
    else:
        builder = GraphBuilder()
        first, second = (builder.add_node(agent) for agent in agents)
        builder.add_edge(first, second)
        result = await builder.build().invoke_async(prompt)
    return _said(list(result.results.values())[-1].result)


def delegate(base_url: str) -> Any:
    """A tool that is an agent with a tool of its own."""

    @tool
    async def delegate(input: str) -> str:  # noqa: A002 - as the other frameworks name it
        """Ask the assistant."""
        return _said(await make(base_url, [toolbox.lookup], "", name="assistant").invoke_async(input))

    return delegate


@tool
async def in_pieces(key: str) -> Any:
    """Look a record up and say how far it is; the last is the result."""
    yield "looking"
    yield toolbox.lookup(key)


@tool
def flagged(key: str) -> dict[str, Any]:
    """Say that there is no such record."""
    return {"status": "error", "content": [{"text": f"no record {key}"}]}


@tool
def ready_made(key: str) -> dict[str, Any]:
    """Look a record up, as the framework has it."""
    return {"status": "success", "content": [{"text": toolbox.lookup(key)}]}


@tool(context=True)
def asks(tool_context: ToolContext, key: str) -> str:
    """Look a record up once a human agrees."""
    return toolbox.lookup(key) if tool_context.interrupt("may I?") else ""


@tool
async def nested(key: str) -> str:
    """Look a record up with another tool."""
    agent = Agent(tools=[native(toolbox.lookup)], callback_handler=None)
    result = agent.tool.lookup(key=key)
    return str(result["content"][0]["text"])


class _Flaky:
    failures = 0


@tool
def flaky(key: str) -> str:
    """Look a record up; the first time it is not there."""
    _Flaky.failures += 1
    if _Flaky.failures % 2:
        raise toolbox.BROKEN
    return toolbox.lookup(key)


def _shorten(event: AfterToolCallEvent) -> None:
    text = event.result["content"][0]["text"]
    event.result = {**event.result, "content": [{"text": text[:100]}]}


def _retry(event: AfterToolCallEvent) -> None:
    event.retry = event.exception is not None


def _refuse(event: BeforeToolCallEvent) -> None:
    event.cancel_tool = "not now"


def _ask(event: BeforeToolCallEvent) -> None:
    event.interrupt("may I?")


HOOKS: dict[str, Any] = {
    "shorten": (AfterToolCallEvent, _shorten),
    "retry": (AfterToolCallEvent, _retry),
    "refuse": (BeforeToolCallEvent, _refuse),
    "ask": (BeforeToolCallEvent, _ask),
}
TOOLS: dict[str, Any] = {
    "asks": asks,
    "ready_made": ready_made,
    "delegate": "delegate",
    "flagged": flagged,
    "flaky": flaky,
    "in_pieces": in_pieces,
    "nested": nested,
}
