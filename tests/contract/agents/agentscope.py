"""An agent of AgentScope."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agentscope.agent import Agent
from agentscope.credential import OpenAICredential
from agentscope.message import TextBlock, UserMsg
from agentscope.middleware import MiddlewareBase
from agentscope.model import OpenAIChatModel
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.tool import FunctionTool, Toolkit

from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence

ALLOWED = PermissionDecision(behavior=PermissionBehavior.ALLOW, message="allowed")


def make(base_url: str, tools: Sequence[Any], setting: str = "", name: str = "clerk") -> Agent:
    """Return an agent with these tools."""
    credential = OpenAICredential(api_key="scripted", base_url=base_url)
    model = OpenAIChatModel(credential, "scripted", stream=setting == "stream", max_retries=0)
    natives = [_assistant(base_url) if each == "delegate" else _native(each, setting) for each in tools]
    middlewares = [MIDDLEWARE[setting]()] if setting in MIDDLEWARE else None
    return Agent(name, "You help.", model, Toolkit(natives), middlewares)


def _native(function: Any, setting: str = "") -> Any:
    """Return the framework's tool for a function."""
    return FunctionTool(function, permission=None if setting == "ask" else ALLOWED)


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run the agent once."""
    agent = make(base_url, tools, setting)
    return str((await agent.reply(UserMsg("user", prompt))).get_text_content())


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run the agent once, sync."""
    return asyncio.run(arun(base_url, tools, prompt, setting))


async def astream(base_url: str, tools: Sequence[Any], prompt: str, _: str) -> str:
    """Run the agent once, streamed."""
    agent = make(base_url, tools, "stream")
    events = [event async for event in agent.reply_stream(UserMsg("user", prompt))]
    return "".join(event.delta for event in events if type(event).__name__ == "TextBlockDeltaEvent")


def _assistant(base_url: str) -> Any:
    """Return a tool that is an agent with a tool of its own."""

    async def delegate(input: str) -> str:  # noqa: A002 - as the other frameworks name it
        """Ask the assistant."""
        return await arun_named(base_url, input)

    return _native(delegate)


async def arun_named(base_url: str, prompt: str) -> str:
    """Run the agent behind the tool."""
    reply = await make(base_url, [toolbox.lookup], name="assistant").reply(UserMsg("user", prompt))
    return str(reply.get_text_content())


class Shorten(MiddlewareBase):
    """Keeps the first hundred letters."""

    async def on_acting(self, agent: Any, input_kwargs: Any, next_handler: Any) -> Any:
        """Cut what the tool returned."""
        del agent
        async for item in next_handler(**input_kwargs):
            if type(item).__name__ == "ToolResponse":
                item.content = [TextBlock(text=item.content[0].text[:100])]
            yield item


async def pieces(key: str) -> Any:
    """Look a record up, in two pieces of a generator."""
    text = toolbox.lookup(key)
    yield text[:10]
    yield text[10:]


MIDDLEWARE: dict[str, Any] = {"shorten": Shorten}
TOOLS: dict[str, Any] = {"delegate": "delegate", "pieces": pieces}
