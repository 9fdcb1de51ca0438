"""An agent of Agno."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import agno.team  # noqa: F401 - up to 2.4 an agent does not import it
from agno.agent import Agent
from agno.exceptions import StopAgentRun
from agno.models.openai import OpenAIChat
from agno.tools import tool
from agno.tools.function import ToolResult

from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence


def make(base_url: str, tools: Sequence[Any], setting: str, name: str = "clerk") -> Agent:
    """An agent with these tools."""
    model = OpenAIChat(id="scripted", base_url=base_url, api_key="scripted", max_retries=0)
    given = [delegate(base_url) if each == "delegate" else each for each in tools]
    hooks: Any = {"shorten": [shorten], "shorten later": [shorten_later]}.get(setting)
    return Agent(model=model, tools=given, name=name, tool_hooks=hooks, telemetry=False)


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync."""
    return str(make(base_url, tools, setting).run(prompt, session_id="thread-1").content)


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    return str((await make(base_url, tools, setting).arun(prompt, session_id="thread-1")).content)


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, streamed."""
    said = ""
    async for event in make(base_url, tools, setting).arun(prompt, session_id="thread-1", stream=True):
        said += str(getattr(event, "content", None) or "") if event.event == "RunContent" else ""
    return said


def delegate(base_url: str) -> Any:
    """A tool that is an agent with a tool of its own."""

    async def delegate(input: str) -> str:  # noqa: A002 - as the other frameworks name it
        """Ask the assistant."""
        agent = make(base_url, [toolbox.lookup], "", name="assistant")
        return str((await agent.arun(input, session_id="thread-1")).content)

    return delegate


def shorten(function_call: Any, arguments: Any) -> str:
    """A hook that keeps the first hundred letters."""
    return str(function_call(**arguments))[:100]


async def shorten_later(function_call: Any, arguments: Any) -> str:
    """A hook that keeps the first hundred letters, and waits for them."""
    result = function_call(**arguments)
    return str(await result if inspect.isawaitable(result) else result)[:100]


def in_pieces(key: str) -> Any:
    """Look a record up, in two pieces."""
    text = toolbox.lookup(key)
    yield text[:10]
    yield text[10:]


async def in_pieces_later(key: str) -> Any:
    """Look a record up, in two pieces, and wait for them."""
    for piece in in_pieces(key):
        yield piece


def broken_in_pieces(key: str) -> Any:
    """Look a record up that is not there, after a while."""
    yield key
    raise toolbox.BROKEN


def result(key: str) -> ToolResult:
    """Look a record up, as the framework has it."""
    return ToolResult(content=toolbox.lookup(key))


def stop(key: str) -> str:
    """Stop the run."""
    raise StopAgentRun(key)


def _fails(*_: Any) -> None:
    raise ValueError("not the tool")


@tool(pre_hook=_fails, post_hook=_fails)
def hooked(key: str) -> str:
    """Look a record up, between hooks that fail."""
    return toolbox.lookup(key)


TOOLS: dict[str, Any] = {
    "broken_in_pieces": broken_in_pieces,
    "delegate": "delegate",
    "hooked": hooked,
    "in_pieces": in_pieces,
    "in_pieces_later": in_pieces_later,
    "result": result,
    "stop": stop,
}
