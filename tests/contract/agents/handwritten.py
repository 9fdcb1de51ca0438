"""A loop of the program's own over plain HTTP, measured with ``agent_otel.tool_call`` and ``agent_otel.tool``."""

from __future__ import annotations

import asyncio
import inspect
import json
import urllib.request
from typing import TYPE_CHECKING, Any

import agent_otel
from tests.contract import toolbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence


def ask(base_url: str, messages: list[Any]) -> Any:
    """Send one chat request; the model's message."""
    body = json.dumps({"model": "scripted", "messages": messages}).encode()
    with urllib.request.urlopen(f"{base_url}/chat/completions", body) as answer:  # noqa: S310 - the loopback server
        return json.load(answer)["choices"][0]["message"]


def _asked_for(message: Any) -> list[tuple[str, str, Any]]:
    calls = message.get("tool_calls") or ()
    return [(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


def _answer(call_id: str, text: str) -> Any:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync; ``decorated`` leaves the measuring to the tools."""
    functions = {tool.__name__: tool for tool in tools}
    messages: list[Any] = [{"role": "user", "content": prompt}]
    with agent_otel.execution("run-1", workflow="contract", agent="clerk"):
        while True:
            messages.append(ask(base_url, messages))
            calls = _asked_for(messages[-1])
            if not calls:
                return str(messages[-1]["content"])
            for call_id, name, arguments in calls:
                if setting == "decorated":
                    result = "".join(functions[name](**arguments))
                else:
                    with agent_otel.tool_call(name, arguments, call_id=call_id) as call:
                        result = call.result(functions[name](**arguments))
                messages.append(_answer(call_id, result))


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run; the calls of a turn at once."""
    functions = {tool.__name__: tool for tool in tools}
    messages: list[Any] = [{"role": "user", "content": prompt}]

    async def answer(call_id: str, name: str, arguments: Any) -> Any:
        if setting == "decorated":
            return _answer(call_id, await _text(functions[name](**arguments)))
        with agent_otel.tool_call(name, arguments, call_id=call_id) as call:
            return _answer(call_id, call.result(await _text(functions[name](**arguments))))

    with agent_otel.execution("run-1", workflow="contract", agent="clerk"):
        while True:
            messages.append(await asyncio.to_thread(ask, base_url, messages))
            calls = _asked_for(messages[-1])
            if not calls:
                return str(messages[-1]["content"])
            messages += await asyncio.gather(*(answer(*call) for call in calls))


async def _text(result: Any) -> str:
    if hasattr(result, "__aiter__"):
        return "".join([item async for item in result])
    return str(await result if inspect.isawaitable(result) else result)


@agent_otel.tool
def decorated(key: str) -> str:
    """Look a record up with another tool."""
    return decorated_too(key)


@agent_otel.tool
def decorated_too(key: str) -> str:
    """Look a record up."""
    return toolbox.lookup(key)


@agent_otel.tool(name="renamed")
async def decorated_later(key: str) -> str:
    """Look a record up and wait for it."""
    return await toolbox.lookup_later(key)


@agent_otel.tool
def letters(key: str) -> Iterator[str]:
    """Look a record up in two pieces."""
    yield f"{key}: "
    yield "ß" * 1000


@agent_otel.tool
async def letters_later(key: str) -> AsyncIterator[str]:
    """Look a record up in two pieces and wait for them."""
    for piece in letters.__wrapped__(key):  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        yield piece


async def remote(key: str) -> str:
    """Look a record up on an MCP server."""
    from tests.contract.agents import mcp_client

    async with mcp_client.connect("") as client:
        result = await client.call_tool("lookup", {"key": key})
        return str(result.content[0].text)


TOOLS: dict[str, Any] = {
    "decorated": decorated,
    "decorated_later": decorated_later,
    "letters": letters,
    "letters_later": letters_later,
    "remote": remote,
}
