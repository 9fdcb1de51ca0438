"""A loop of the program's own over OpenAI's client, either major."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import openai

from tests.contract.agents import by_hand
from tests.contract.agents.by_hand import INSTRUCTIONS, Asked

if TYPE_CHECKING:
    from collections.abc import Sequence


def _begin(tools: Sequence[Any], prompt: str) -> tuple[dict[str, Any], dict[str, Any]]:
    functions = {tool.__name__: tool for tool in tools}
    messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": prompt}]
    return {"model": "scripted", "messages": messages, "tools": by_hand.definitions(functions)}, functions


def _asked(call: Any) -> Asked:
    return Asked(call.function.name, json.loads(call.function.arguments), call.id)


def _answer(call: Any, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync; the answers go back as the SDK's objects."""
    client = openai.OpenAI(base_url=base_url, api_key="scripted", max_retries=0)
    request, functions = _begin(tools, prompt)
    with by_hand.running():
        while True:
            message = client.chat.completions.create(**request).choices[0].message
            if not message.tool_calls:
                return str(message.content)
            request["messages"].append(message)
            for call in message.tool_calls:
                request["messages"].append(_answer(call, by_hand.call(functions, _asked(call), setting)))


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run; over the Responses API when the setting says so."""
    request, functions = _begin(tools, prompt)
    async with openai.AsyncOpenAI(base_url=base_url, api_key="scripted", max_retries=0) as client:
        with by_hand.running():
            if setting.startswith("responses"):
                return await _respond(client, request, functions, setting)
            while True:
                message = (await client.chat.completions.create(**request)).choices[0].message
                if not message.tool_calls:
                    return str(message.content)
                request["messages"].append(message.model_dump(exclude_none=True))
                for call in message.tool_calls:
                    text = await by_hand.call_later(functions, _asked(call), setting)
                    request["messages"].append(_answer(call, text))


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, the answers streamed."""
    request, functions = _begin(tools, prompt)
    async with openai.AsyncOpenAI(base_url=base_url, api_key="scripted", max_retries=0) as client:
        with by_hand.running():
            while True:
                text = ""
                calls: Any = {}
                async for chunk in await client.chat.completions.create(**request, stream=True):
                    text += chunk.choices[0].delta.content or ""
                    for piece in chunk.choices[0].delta.tool_calls or ():
                        call = calls.setdefault(piece.index, piece)
                        if call is not piece:
                            call.function.arguments += piece.function.arguments
                if not calls:
                    return text
                asked = [{"id": c.id, "type": "function", "function": c.function.model_dump()} for c in calls.values()]
                request["messages"].append({"role": "assistant", "tool_calls": asked})
                for call in calls.values():
                    result = await by_hand.call_later(functions, _asked(call), setting)
                    request["messages"].append(_answer(call, result))


async def _respond(client: Any, request: dict[str, Any], functions: dict[str, Any], setting: str) -> str:
    items = [request["messages"][1]]
    while True:
        answer = await client.responses.create(model="scripted", instructions=INSTRUCTIONS, input=items)
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return str(answer.output_text)
        for call in calls:
            items.append(call)
            asked = Asked(call.name, json.loads(call.arguments), call.call_id)
            text = await by_hand.call_later(functions, asked, setting.removeprefix("responses").strip())
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": text})
