"""An agent of DSPy."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import dspy

from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence


def make(base_url: str, tools: Sequence[Any], kind: Any = dspy.ReAct) -> Any:
    """Return an agent with these tools, and its language model."""
    model = dspy.LM("openai/scripted", api_base=base_url, api_key="scripted", cache=False, num_retries=0)
    return kind("question -> answer", tools=list(tools)), model


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run the agent once, sync; with the setting "v2" the newer agent, async."""
    if setting == "v2":
        return asyncio.run(arun(base_url, tools, prompt, setting))
    agent, model = make(base_url, tools)
    with dspy.context(lm=model):
        return str(agent(question=prompt).answer)


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run the agent once."""
    agent, model = make(base_url, tools, dspy.ReActV2 if setting == "v2" else dspy.ReAct)
    with dspy.context(lm=model):
        return str((await agent.acall(question=prompt)).answer)


class Assistant(dspy.Module):
    """An agent with a tool of its own, as a module."""

    def forward(self, input: str) -> str:  # noqa: A002 - as the other frameworks name it
        """Run the agent."""
        return str(dspy.ReAct("question -> answer", tools=[toolbox.lookup])(question=input).answer)


async def nested(key: str) -> str:
    """Look a record up with another tool."""
    await asyncio.sleep(0)
    return str(dspy.Tool(toolbox.lookup)(key=key))


TOOLS: dict[str, Any] = {
    "delegate": dspy.Tool(Assistant(), "delegate", "Ask the assistant.", {"input": {"type": "string"}}, {"input": str}),
    "nested": nested,
}
