"""A loop of the program's own over LiteLLM: to OpenAI through the SDK, or to a provider that it speaks to itself."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING, Any

import litellm

from tests.contract.agents import by_hand
from tests.contract.agents.by_hand import INSTRUCTIONS, Asked

if TYPE_CHECKING:
    from collections.abc import Sequence

litellm.suppress_debug_info = True
# LiteLLM leaves its streams to the collector, and httpcore closes one under a lock of its own. Where the collector runs
# while httpcore holds that lock, the program stands still, with the switch off as well: it was seen once in sixty runs.
gc.disable()


def _begin(base_url: str, tools: Sequence[Any], prompt: str) -> tuple[dict[str, Any], dict[str, Any]]:
    functions = {tool.__name__: tool for tool in tools}
    # The scripted servers' paths tell them apart.
    model = "openai/scripted" if base_url.endswith("/v1") else "anthropic/scripted"
    messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": prompt}]
    request = {"model": model, "messages": messages, "tools": by_hand.definitions(functions)}
    return {**request, "api_base": base_url, "api_key": "scripted", "max_retries": 0}, functions


def _asked(call: Any) -> Asked:
    return Asked(call.function.name, json.loads(call.function.arguments), call.id)


def _answer(call: Any, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call.id, "name": call.function.name, "content": text}


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync, streamed when the setting says so; the answers go back as LiteLLM's objects."""
    request, functions = _begin(base_url, tools, prompt)
    with by_hand.running():
        while True:
            answer = litellm.completion(**request, stream=setting == "stream")
            whole = litellm.stream_chunk_builder(list(answer)) if setting == "stream" else answer
            message = whole.choices[0].message
            if not message.tool_calls:
                return str(message.content)
            request["messages"].append(message)
            for call in message.tool_calls:
                request["messages"].append(_answer(call, by_hand.call(functions, _asked(call), setting)))


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run; over the Responses API when the setting says so."""
    request, functions = _begin(base_url, tools, prompt)
    with by_hand.running():
        if setting == "responses":
            return await _respond(request, functions)
        while True:
            message = (await litellm.acompletion(**request)).choices[0].message
            if not message.tool_calls:
                return str(message.content)
            request["messages"].append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                request["messages"].append(_answer(call, await by_hand.call_later(functions, _asked(call), setting)))


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, the answers streamed."""
    request, functions = _begin(base_url, tools, prompt)
    with by_hand.running():
        while True:
            chunks = [chunk async for chunk in await litellm.acompletion(**request, stream=True)]
            message = litellm.stream_chunk_builder(chunks).choices[0].message
            if not message.tool_calls:
                return str(message.content)
            request["messages"].append(message)
            for call in message.tool_calls:
                request["messages"].append(_answer(call, await by_hand.call_later(functions, _asked(call), setting)))


async def _respond(request: dict[str, Any], functions: dict[str, Any]) -> str:
    more = {key: request[key] for key in ("model", "api_base", "api_key")}
    items: list[Any] = [request["messages"][1]]
    while True:
        answer = await litellm.aresponses(**more, instructions=INSTRUCTIONS, input=items)
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return str(answer.output[0].content[0].text)
        for call in calls:
            items.append(call.model_dump(exclude_none=True))
            text = await by_hand.call_later(functions, Asked(call.name, json.loads(call.arguments), call.call_id), "")
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": text})
