"""A loop of the program's own over Ollama's client."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ollama

from tests.contract.agents import by_hand
from tests.contract.agents.by_hand import INSTRUCTIONS, Asked

if TYPE_CHECKING:
    from collections.abc import Sequence


def _begin(tools: Sequence[Any], prompt: str) -> tuple[dict[str, Any], dict[str, Any]]:
    functions = {tool.__name__: tool for tool in tools}
    messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": prompt}]
    return {"model": "scripted", "messages": messages, "tools": by_hand.definitions(functions)}, functions


def _asked(call: Any) -> Asked:
    return Asked(call.function.name, dict(call.function.arguments))


def _answer(call: Any, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_name": call.function.name, "content": text}


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync; the results do not say what they answer."""
    client = ollama.Client(base_url)
    request, functions = _begin(tools, prompt)
    with by_hand.running():
        while True:
            message = client.chat(**request).message
            if not message.tool_calls:
                return str(message.content)
            request["messages"].append(message)
            for call in message.tool_calls:
                text = by_hand.call(functions, _asked(call), setting)
                request["messages"].append({"role": "tool", "content": text})


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    client = ollama.AsyncClient(base_url)
    request, functions = _begin(tools, prompt)
    with by_hand.running():
        while True:
            message = (await client.chat(**request)).message
            if not message.tool_calls:
                return str(message.content)
            request["messages"].append(message)
            for call in message.tool_calls:
                request["messages"].append(_answer(call, await by_hand.call_later(functions, _asked(call), setting)))


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, the answers streamed."""
    client = ollama.AsyncClient(base_url)
    request, functions = _begin(tools, prompt)
    with by_hand.running():
        while True:
            text = ""
            calls: Any = []
            async for part in await client.chat(**request, stream=True):
                text += part.message.content or ""
                calls += part.message.tool_calls or []
            if not calls:
                return text
            request["messages"].append({"role": "assistant", "tool_calls": calls})
            for call in calls:
                request["messages"].append(_answer(call, await by_hand.call_later(functions, _asked(call), setting)))
