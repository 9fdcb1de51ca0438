"""An agent of Haystack."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret

from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence


def make(base_url: str, tools: Sequence[Any]) -> Agent:
    """Return an agent with these tools."""
    model = OpenAIChatGenerator(Secret.from_token("scripted"), "scripted", api_base_url=base_url, max_retries=0)
    natives = [native(delegate(base_url) if tool == "delegate" else tool) for tool in tools]
    return Agent(chat_generator=model, tools=natives)


def native(tool: Any) -> Any:
    """Return the framework's tool for a function."""
    shortens = tool is shortened
    return create_tool_from_function(tool, outputs_to_string={"handler": _shorten} if shortens else None)


def run(base_url: str, tools: Sequence[Any], prompt: str, _: str) -> str:
    """Run the agent once, sync."""
    return str(make(base_url, tools).run([ChatMessage.from_user(prompt)])["last_message"].text)


async def arun(base_url: str, tools: Sequence[Any], prompt: str, _: str) -> str:
    """Run the agent once."""
    answer = await make(base_url, tools).run_async([ChatMessage.from_user(prompt)])
    return str(answer["last_message"].text)


async def astream(base_url: str, tools: Sequence[Any], prompt: str, _: str) -> str:
    """Run the agent once, streamed."""
    said: list[str] = []

    async def hear(chunk: Any) -> None:
        said.append(chunk.content)

    await make(base_url, tools).run_async([ChatMessage.from_user(prompt)], streaming_callback=hear)
    return "".join(said)


def delegate(base_url: str) -> Any:
    """Return a tool that is an agent with a tool of its own."""

    async def delegate(input: str) -> str:  # noqa: A002 - as the other frameworks name it
        """Ask the assistant."""
        answer = await make(base_url, [toolbox.lookup]).run_async([ChatMessage.from_user(input)])
        return str(answer["last_message"].text)

    return delegate


def nested(key: str) -> str:
    """Look a record up with another tool."""
    return str(create_tool_from_function(toolbox.lookup).invoke(key=key))


def shortened(key: str) -> str:
    """Look a record up, of which the model reads the beginning."""
    return toolbox.lookup(key)


def _shorten(result: str) -> str:
    return result[:100]


TOOLS: dict[str, Any] = {"delegate": "delegate", "nested": nested, "shortened": shortened}
