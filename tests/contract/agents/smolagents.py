"""Agents of smolagents: one that calls tools, and one that writes code."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

from rich.console import Console
from smolagents import CodeAgent, LogLevel, OpenAIModel, Tool, ToolCallingAgent

from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence

TYPES = {"str": "string", "int": "integer"}


class Native(Tool):
    """The framework's tool for a plain function."""

    skip_forward_signature_validation = True

    def __init__(self, function: Any) -> None:
        """Read what the function tells of itself."""
        self.name = function.__name__
        self.description = function.__doc__
        self.inputs = {
            name: {"type": TYPES[parameter.annotation], "description": name}
            for name, parameter in inspect.signature(function).parameters.items()
        }
        self.output_type = "string" if inspect.signature(function).return_annotation == "str" else "object"
        self.function = function
        super().__init__()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        result = self.function(*args, **kwargs)
        return asyncio.run(result) if inspect.iscoroutine(result) else result


def make(base_url: str, tools: Sequence[Any], setting: str, name: str = "clerk") -> Any:
    """An agent with these tools."""
    kind = CodeAgent if setting == "code" else ToolCallingAgent
    model = OpenAIModel("scripted", api_base=base_url, api_key="scripted", client_kwargs={"max_retries": 0})
    more: Any = {"verbosity_level": LogLevel.OFF, "stream_outputs": setting == "stream"}
    if "delegate" in tools:
        more["managed_agents"] = [make(base_url, [toolbox.lookup], setting, "assistant")]
    natives = [Native(each) for each in tools if each != "delegate"]
    agent = kind(natives, model, name=name, description="It helps.", **more)
    agent.logger.console = Console(quiet=True)
    return agent


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    return str(make(base_url, tools, setting).run(prompt))


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, in a thread: the framework is not asynchronous."""
    return await asyncio.to_thread(run, base_url, tools, prompt, setting)


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, streamed."""
    last: Any = None
    for step in make(base_url, tools, setting or "stream").run(prompt, stream=True):
        last = step
    return str(last.output)


def nested(key: str) -> str:
    """Look a record up with another tool."""
    return str(Native(toolbox.lookup)(key=key))


TOOLS: dict[str, Any] = {"assistant": "delegate", "nested": nested}
