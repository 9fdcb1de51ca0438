"""A session of LiveKit Agents in text."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import functools
import inspect
import logging
from typing import TYPE_CHECKING, Any

from livekit.agents import Agent, AgentSession, StopResponse, ToolError, function_tool, llm
from livekit.agents.llm import ChatContext, ToolContext, ToolResult
from livekit.agents.llm.utils import execute_function_call
from livekit.plugins import openai

from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# It logs the errors of tools, which several cases are about.
logging.getLogger("livekit").setLevel(logging.CRITICAL)


class Clerk(Agent):
    """An agent; the name of its class is its own."""


def native(function: Callable[..., Any]) -> Any:
    """Return a tool: the framework takes coroutine functions only."""
    if inspect.iscoroutinefunction(function):
        return function_tool(function)

    @functools.wraps(function)
    async def later(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return function_tool(later)


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run a session once; what the agent says last."""
    model = openai.LLM(model="scripted", base_url=base_url, api_key="scripted", max_retries=0)
    if setting.startswith("loop"):
        execute = execute_function_call if setting == "loop of utils" else llm.execute_function_call
        return await _loop(model, ToolContext([native(tool) for tool in tools]), prompt, execute)
    async with AgentSession(llm=model) as session:
        await session.start(Clerk(instructions="You help.", tools=[native(tool) for tool in tools]))
        events = (await session.run(user_input=prompt)).events
    said = [event.item.text_content for event in events if event.type == "message"]
    return str(said[-1]) if said else "nothing"


async def _loop(model: Any, tools: ToolContext, prompt: str, execute: Callable[..., Any]) -> str:
    """Run a loop of the program's own, as the framework's documentation writes it."""
    context = ChatContext.empty()
    context.add_message(role="user", content=prompt)
    while True:
        response = await model.chat(chat_ctx=context, tools=tools.flatten()).collect()
        if not response.tool_calls:
            return str(response.text)
        for call in response.tool_calls:
            result = await execute(call, tools)
            context.insert([result.fnc_call, result.fnc_call_out])


def refused(key: str) -> str:
    """Look a record up, and tell the model of the failure."""
    raise ToolError(f"no record {key}")


def silent(key: str) -> str:
    """Want no answer of the model."""
    del key
    raise StopResponse


def wrapped(key: str) -> ToolResult:
    """Look a record up, in the framework's envelope."""
    return ToolResult(toolbox.lookup(key))


TOOLS: dict[str, Any] = {"refused": refused, "silent": silent, "wrapped": wrapped}
