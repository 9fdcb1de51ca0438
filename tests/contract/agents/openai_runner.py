"""A run of the tool runner of OpenAI's SDK."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import openai
from openai.lib.responses_tool_runner import (
    AsyncRegisteredFunction,
    AsyncResponsesToolRunner,
    RegisteredFunction,
    ResponsesToolRunner,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def _tool(function: Callable[..., Any]) -> Any:
    """Return the definition of a function."""
    types = {name: "integer" if name in {"n", "rows"} else "string" for name in inspect.signature(function).parameters}
    parameters = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in types.items()},
        "required": list(types),
        "additionalProperties": False,
    }
    described = {"name": function.__name__, "description": function.__doc__, "parameters": parameters}
    return {"type": "function", **described, "strict": True}


def _sync(function: Any) -> RegisteredFunction:
    return RegisteredFunction(_tool(function), lambda arguments: function(**arguments), independent=True)


def _async(function: Any) -> AsyncRegisteredFunction:
    async def execute(arguments: dict[str, object]) -> Any:
        value = function(**arguments)
        return await value if inspect.isawaitable(value) else value

    return AsyncRegisteredFunction(_tool(function), execute, independent=True)


def _params(prompt: str) -> Any:
    return {"model": "scripted", "input": [{"role": "user", "content": prompt}], "store": False}


def run(base_url: str, tools: Sequence[Any], prompt: str, _: str) -> str:
    """Run it once, sync."""
    client = openai.OpenAI(base_url=base_url, api_key="scripted", max_retries=0)
    runner = ResponsesToolRunner(functions=[_sync(tool) for tool in tools])
    return str(runner.run(client, _params(prompt), max_steps=9).output_text)


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """Run it once."""
    client = openai.AsyncOpenAI(base_url=base_url, api_key="scripted", max_retries=0)
    runner = AsyncResponsesToolRunner(functions=[_async(tool) for tool in tools])
    response = await runner.run(client, _params(prompt), max_steps=9, stream=setting == "stream")
    return str(response.output_text)


async def astream(base_url: str, tools: Sequence[Any], prompt: str, _: str) -> str:
    """Run it once, streamed."""
    return await arun(base_url, tools, prompt, "stream")


def contents(key: str) -> list[dict[str, str]]:
    """Look a record up, in two pieces."""
    return [{"type": "input_text", "text": f"{key}: "}, {"type": "input_text", "text": "ß" * 1000}]


TOOLS: dict[str, Any] = {"contents": contents}
