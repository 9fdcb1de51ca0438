"""An agent of CAMEL."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from camel.agents import ChatAgent
from camel.messages import BaseMessage
from camel.models import OpenAICompatibleModel
from camel.toolkits import FunctionTool
from camel.utils import BaseTokenCounter

from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence

logging.getLogger("camel").setLevel(logging.CRITICAL)  # it logs the exceptions of tools


class Counter(BaseTokenCounter):
    """Counts four characters as a token, without the files that the framework's own would fetch."""

    def count_tokens_from_messages(self, messages: list[Any]) -> int:
        """Count the tokens of messages."""
        return sum(len(str(message.get("content"))) for message in messages) // 4

    def encode(self, text: str) -> list[int]:
        """Return a number for each token."""
        return [0] * (len(text) // 4)

    def decode(self, token_ids: list[int]) -> str:
        """Return so many tokens."""
        return "xxxx" * len(token_ids)


def make(base_url: str, tools: Sequence[Any], setting: str = "", name: str = "clerk") -> ChatAgent:
    """Return an agent with these tools."""
    options = {"stream": True} if setting == "stream" else {}
    model = OpenAICompatibleModel("scripted", options, "scripted", base_url, Counter(), max_retries=0)
    natives = [FunctionTool(_assistant(base_url) if each == "delegate" else each) for each in tools]
    message = BaseMessage.make_assistant_message(name, "You help.")
    limit = 1000 if setting == "limit" else 10_000_000
    return ChatAgent(
        *(message, model),
        tools=natives,
        token_limit=limit,
        mask_tool_output=setting == "mask",
        summarize_threshold=None,
    )


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run the agent once, sync."""
    return str(make(base_url, tools, setting).step(prompt).msgs[0].content)


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run the agent once."""
    return str((await make(base_url, tools, setting).astep(prompt)).msgs[0].content)


async def astream(base_url: str, tools: Sequence[Any], prompt: str, _: str) -> str:
    """Run the agent once, streamed."""
    said = await make(base_url, tools, "stream").astep(prompt)
    return "".join([response.msgs[0].content async for response in said if response.msgs])


def _assistant(base_url: str) -> Any:
    """Return a tool that is an agent with a tool of its own."""

    async def delegate(input: str) -> str:  # noqa: A002 - as the other frameworks name it
        """Ask the assistant."""
        return str((await make(base_url, [toolbox.lookup], name="assistant").astep(input)).msgs[0].content)

    return delegate


TOOLS: dict[str, Any] = {"delegate": "delegate"}
