"""An agent of AutoGen."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_agentchat.tools import AgentTool
from autogen_core import CancellationToken
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient

from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence

MODEL = {
    "family": "unknown",
    "function_calling": True,
    "json_output": False,
    "structured_output": False,
    "vision": False,
}


def make(base_url: str, tools: Sequence[Any], name: str = "clerk") -> AssistantAgent:
    """Return an agent with these tools."""
    client = OpenAIChatCompletionClient(
        model="scripted", base_url=base_url, api_key="scripted", max_retries=0, model_info=MODEL
    )
    natives = [_assistant(base_url) if each == "delegate" else _native(each) for each in tools]
    return AssistantAgent(name, client, tools=natives, max_tool_iterations=9)


def _native(function: Any) -> FunctionTool:
    """Return the framework's tool for a function."""
    return FunctionTool(function, description=function.__doc__)


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run the agent once."""
    agent = make(base_url, tools)
    if setting == "team":
        team = RoundRobinGroupChat([agent], name="office", termination_condition=MaxMessageTermination(2))
        return str((await team.run(task=prompt)).messages[-1].content)
    token = CancellationToken()
    try:
        return str((await agent.run(task=prompt, cancellation_token=token)).messages[-1].content)
    except asyncio.CancelledError:
        token.cancel()  # without it tools run on
        raise


async def astream(base_url: str, tools: Sequence[Any], prompt: str, _: str) -> str:
    """Run the agent once, streamed."""
    last: Any = None
    async for event in make(base_url, tools).run_stream(task=prompt):
        last = event
    return str(last.messages[-1].content)


def _assistant(base_url: str) -> Any:
    """Return a tool that is an agent with a tool of its own."""
    return AgentTool(make(base_url, [toolbox.lookup], name="assistant"))


TOOLS: dict[str, Any] = {"assistant": "delegate"}
