"""A loop of the program's own around ``agent_otel.tool_call``, that asks it whether a call is to be run."""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import TYPE_CHECKING, Any

import agent_otel
from tests.contract.agents.handwritten import ask

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    Answer = Callable[[str, str, Any], Awaitable[Any]]


def as_text(result: Any) -> str:
    """A result as the model reads it."""
    return result if isinstance(result, str) else json.dumps(result)


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync: every call waits for the one before."""
    del setting
    functions = {tool.__name__: tool for tool in tools}
    messages: list[Any] = [{"role": "user", "content": prompt}]
    while True:
        messages.append(ask(base_url, messages))
        if not messages[-1].get("tool_calls"):
            return str(messages[-1]["content"])
        for asked in messages[-1]["tool_calls"]:
            name, arguments = asked["function"]["name"], json.loads(asked["function"]["arguments"])
            with agent_otel.tool_call(name, arguments, call_id=asked["id"]) as call:
                result = call.refused() or call.result(functions[name](**call.arguments))
            messages.append({"role": "tool", "tool_call_id": asked["id"], "content": as_text(result)})


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, the calls of a turn at once."""
    del setting
    functions = {tool.__name__: tool for tool in tools}

    async def answer(call_id: str, name: str, arguments: Any) -> Any:
        with agent_otel.tool_call(name, arguments, call_id=call_id) as call:
            refused = await call.arefused()
            if refused is not None:
                return refused
            result = functions[name](**call.arguments)
            return await call.aresult(await result if inspect.isawaitable(result) else result)

    return await loop(base_url, prompt, answer)


async def loop(base_url: str, prompt: str, answer: Answer) -> str:
    """Ask the model, answer its calls, and so on until it has no more."""
    messages: list[Any] = [{"role": "user", "content": prompt}]

    async def answered(asked: Any) -> Any:
        result = await answer(asked["id"], asked["function"]["name"], json.loads(asked["function"]["arguments"]))
        return {"role": "tool", "tool_call_id": asked["id"], "content": as_text(result)}

    while True:
        messages.append(await asyncio.to_thread(ask, base_url, messages))
        if not messages[-1].get("tool_calls"):
            return str(messages[-1]["content"])
        messages += await asyncio.gather(*map(answered, messages[-1]["tool_calls"]))
