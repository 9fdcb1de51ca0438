"""An agent of Microsoft Agent Framework."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agent_framework import Agent, Content, WorkflowBuilder, function_middleware, tool
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from openai import AsyncOpenAI

from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence


def make(base_url: str, tools: Sequence[Any], setting: str, name: str = "clerk") -> Agent:
    """Return an agent with these tools."""
    kind = OpenAIChatClient if setting == "responses" else OpenAIChatCompletionClient
    client = kind("scripted", async_client=AsyncOpenAI(base_url=base_url, api_key="scripted", max_retries=0))
    natives = [_assistant(base_url) if each == "delegate" else each for each in tools]
    middleware = [MIDDLEWARE[setting]] if setting in MIDDLEWARE else None
    return Agent(client, name=name, tools=natives, middleware=middleware, default_options={"store": False})


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run the agent once, sync."""
    return asyncio.run(arun(base_url, tools, prompt, setting))


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run the agent once."""
    agent = make(base_url, tools, setting)
    if setting == "workflow":
        result = await WorkflowBuilder(start_executor=agent, output_from=[agent]).build().run(prompt)
        return str(result.get_outputs()[0].text)
    response = await agent.run(prompt, session=agent.create_session(session_id="thread-1"))
    return f"{len(response.user_input_requests)} to approve" if response.user_input_requests else str(response.text)


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run the agent once, streamed."""
    agent = make(base_url, tools, setting)
    stream = agent.run(prompt, session=agent.create_session(session_id="thread-1"), stream=True)
    return "".join([update.text async for update in stream])


def _assistant(base_url: str) -> Any:
    """Return a tool that is an agent with a tool of its own."""
    return make(base_url, [toolbox.lookup], "", name="assistant").as_tool(name="delegate", arg_name="input")


def contents(key: str) -> list[Content]:
    """Look a record up, in two pieces of the framework's."""
    text = toolbox.lookup(key)
    return [Content.from_text(text[:10]), Content.from_text(text[10:])]


@tool(approval_mode="always_require")
def approved(key: str) -> str:
    """Look a record up once a human agrees."""
    return toolbox.lookup(key)


def nothing(key: str) -> None:
    """Return nothing."""
    del key


@function_middleware
async def shorten(context: Any, call_next: Any) -> None:
    """Keep the first hundred letters."""
    await call_next()
    context.result = [Content.from_text(context.result[0].text[:100])]


@function_middleware
async def answer(context: Any, _: Any) -> None:
    """Answer in the tool's place."""
    context.result = toolbox.LOOKUP


MIDDLEWARE: dict[str, Any] = {"shorten": shorten, "answer": answer}
TOOLS: dict[str, Any] = {"approved": approved, "contents": contents, "delegate": "delegate", "nothing": nothing}
