"""An agent of AG2."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ag2 import Agent
from ag2.config import OpenAIConfig
from ag2.events import TextInput
from ag2.middleware import BaseMiddleware
from ag2.tools import ToolResult

from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence


def make(base_url: str, tools: Sequence[Any], setting: str, name: str = "clerk") -> Agent:
    """Return an agent with these tools."""
    streams = setting == "stream"
    model = OpenAIConfig("scripted", base_url=base_url, api_key="scripted", max_retries=0, streaming=streams)
    natives = [_assistant(base_url) if each == "delegate" else each for each in tools]
    return Agent(name, config=model, tools=natives, middleware=[MIDDLEWARE[setting]] if setting in MIDDLEWARE else ())


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run the agent once."""
    return str((await make(base_url, tools, setting).ask(prompt)).body)


async def astream(base_url: str, tools: Sequence[Any], prompt: str, _: str) -> str:
    """Run the agent once, in a task beside its stream."""
    async with make(base_url, tools, "stream").run(prompt) as running:
        running.start()
        return str((await running.result()).body)


def _assistant(base_url: str) -> Any:
    """Return a tool that is an agent with a tool of its own."""
    return make(base_url, [toolbox.lookup], "", name="assistant").as_tool(description="Ask.", name="delegate")


def result(key: str) -> ToolResult:
    """Look a record up, as the framework has it."""
    return ToolResult(toolbox.lookup(key), metadata={"rows": 2})


class Shorten(BaseMiddleware):
    """Keeps the first hundred letters."""

    async def on_tool_execution(self, call_next: Any, event: Any, context: Any) -> Any:
        """Cut what the tool returned."""
        done = await call_next(event, context)
        done.result.parts = [TextInput(done.result.parts[0].content[:100])]
        return done


MIDDLEWARE: dict[str, Any] = {"shorten": Shorten}
TOOLS: dict[str, Any] = {"delegate": "delegate", "result": result}
