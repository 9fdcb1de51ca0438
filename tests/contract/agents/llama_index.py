"""An agent of LlamaIndex."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from llama_index.core.agent.workflow import AgentStream, AgentWorkflow, FunctionAgent
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.tools import AsyncBaseTool, FunctionTool, QueryEngineTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index.llms.openai import OpenAI

from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence


def llm(base_url: str) -> OpenAI:
    """Return the scripted model."""
    return OpenAI("gpt-4o", api_base=base_url, api_key="scripted", max_retries=0)


def make(base_url: str, tools: Sequence[Any], setting: str, name: str = "clerk") -> Any:
    """Return an agent with these tools."""
    model = llm(base_url)
    natives = [native(delegate(base_url) if tool == "delegate" else tool) for tool in tools]
    agent = FunctionAgent(name=name, description="It helps.", tools=natives, llm=model)
    return AgentWorkflow([agent], root_agent=name) if setting == "several" else agent


def native(tool: Any) -> Any:
    """Return the framework's tool for a function; its signature is none that the framework understands."""
    return tool if isinstance(tool, AsyncBaseTool) else FunctionTool.from_defaults(tool)


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run the agent once in a loop of its own: the framework is asynchronous."""
    return asyncio.run(arun(base_url, tools, prompt, setting))


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run the agent once."""
    if setting == "no agent":
        return str(await llm(base_url).apredict_and_call(list(map(native, tools)), user_msg=prompt))
    return str(await make(base_url, tools, setting).run(user_msg=prompt))


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run the agent once, streamed."""
    said = ""
    running = make(base_url, tools, setting).run(user_msg=prompt)
    async for event in running.stream_events():
        said += event.delta if isinstance(event, AgentStream) else ""
    await running
    return said


def delegate(base_url: str) -> Any:
    """Return a tool that is an agent with a tool of its own."""

    async def delegate(input: str) -> str:  # noqa: A002 - as the other frameworks name it
        """Ask the assistant."""
        return str(await make(base_url, [toolbox.lookup], "", name="assistant").run(user_msg=input))

    return delegate


def _shorten(result: str) -> str:
    return result[:100]


async def _answers(key: str) -> str:
    """Look a record up in a workflow of the program's own, which is an agent for nobody."""

    class Desk(Workflow):
        @step
        async def look(self, event: StartEvent) -> StopEvent:
            return StopEvent(str(await FunctionTool.from_defaults(toolbox.lookup).acall(key=event.key)))

    return str(await Desk().run(key=key))


class _Desk(CustomQueryEngine):
    def custom_query(self, query_str: str) -> str:
        return toolbox.lookup(query_str)


TOOLS: dict[str, Any] = {
    "ask": QueryEngineTool.from_defaults(_Desk(), name="ask", description="Look a record up."),
    "delegate": "delegate",
    "nested": FunctionTool.from_defaults(_answers, name="nested"),
    "shortened": FunctionTool.from_defaults(toolbox.lookup, name="shortened", callback=_shorten),
}
