"""An agent of Pydantic AI, from 2.0 on."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from openai import AsyncOpenAI
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, ModelRetry, RunContext, Tool, ToolReturn
from pydantic_ai.capabilities import Hooks
from pydantic_ai.exceptions import SkipToolExecution
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence


def make(base_url: str, tools: Sequence[Any], setting: str, name: str = "clerk") -> Agent[Any, Any]:
    """An agent with these tools."""
    kind = OpenAIResponsesModel if setting == "responses" else OpenAIChatModel
    client = AsyncOpenAI(base_url=base_url, api_key="scripted", max_retries=0)
    given = [delegate(base_url) if tool == "delegate" else tool for tool in tools]
    more: Any = {"output_type": [str, DeferredToolRequests]} if setting == "approval" else {}
    if setting in HOOKS:
        more["capabilities"] = [HOOKS[setting]]
    return Agent(kind("scripted", provider=OpenAIProvider(openai_client=client)), name=name, tools=given, **more)


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync."""
    return str(make(base_url, tools, setting).run_sync(prompt, conversation_id="thread-1").output)


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    said = (await make(base_url, tools, setting).run(prompt, conversation_id="thread-1")).output
    return f"{len(said.approvals)} to approve" if isinstance(said, DeferredToolRequests) else str(said)


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, streamed."""
    async with make(base_url, tools, setting).run_stream(prompt, conversation_id="thread-1") as result:
        return str(await result.get_output())


def delegate(base_url: str) -> Any:
    """A tool that is an agent with a tool of its own."""

    async def delegate(input: str) -> str:  # noqa: A002 - as the other frameworks name it
        """Ask the assistant."""
        agent = make(base_url, [toolbox.lookup], "", name="assistant")
        return str((await agent.run(input, conversation_id="thread-1")).output)

    return delegate


def retried(key: str) -> str:
    """Ask the model for another key."""
    raise ModelRetry(f"no record {key}")


def approved(context: RunContext[Any], key: str) -> str:
    """Look a record up once a human agrees."""
    if not context.tool_call_approved:
        raise ApprovalRequired
    return toolbox.lookup(key)


def with_metadata(key: str) -> ToolReturn:
    """Look a record up; the table stays with the program."""
    return ToolReturn(toolbox.lookup(key), metadata=toolbox.table(2))


def nothing(key: str) -> None:
    """Return nothing."""
    del key


async def _shorten(_: Any, *, result: Any, **__: Any) -> Any:
    return result[:100]


async def _answer(*_: Any, **__: Any) -> Any:
    await asyncio.sleep(0)
    raise SkipToolExecution(toolbox.LOOKUP)


HOOKS: dict[str, Any] = {
    "shorten": Hooks(after_tool_execute=_shorten),
    "answer": Hooks(before_tool_execute=_answer),
}
TOOLS: dict[str, Any] = {
    "approved": approved,
    "delegate": "delegate",
    "nothing": nothing,
    "retried": Tool(retried, max_retries=3),
    "with_metadata": with_metadata,
}
