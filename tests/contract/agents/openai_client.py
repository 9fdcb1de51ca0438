"""A loop of the program's own over OpenAI's client, either major."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import openai

import agent_otel

if TYPE_CHECKING:
    from collections.abc import Sequence

INSTRUCTIONS = "Be größe."


def _tools(tools: Sequence[Any]) -> list[Any]:
    return [{"type": "function", "function": {"name": tool.__name__, "parameters": {}}} for tool in tools]


def _begin(tools: Sequence[Any], prompt: str) -> tuple[dict[str, Any], dict[str, Any]]:
    messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": prompt}]
    request = {"model": "scripted", "messages": messages, "tools": _tools(tools)}
    return request, {tool.__name__: tool for tool in tools}


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync."""
    del setting
    client = openai.OpenAI(base_url=base_url, api_key="scripted", max_retries=0)
    request, functions = _begin(tools, prompt)
    while True:
        message = client.chat.completions.create(**request).choices[0].message
        if not message.tool_calls:
            return str(message.content)
        request["messages"].append(message.model_dump(exclude_none=True))
        for asked in message.tool_calls:
            arguments = json.loads(asked.function.arguments)
            with agent_otel.tool_call(asked.function.name, arguments, call_id=asked.id) as call:
                text = call.result(functions[asked.function.name](**arguments))
            request["messages"].append({"role": "tool", "tool_call_id": asked.id, "content": text})


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run; over the Responses API when the setting says so."""
    request, functions = _begin(tools, prompt)
    async with openai.AsyncOpenAI(base_url=base_url, api_key="scripted", max_retries=0) as client:
        if setting == "responses":
            return await _respond(client, request, functions)
        while True:
            message = (await client.chat.completions.create(**request)).choices[0].message
            if not message.tool_calls:
                return str(message.content)
            request["messages"].append(message.model_dump(exclude_none=True))
            for asked in message.tool_calls:
                text = await _call(functions, asked.function.name, asked.function.arguments, asked.id)
                request["messages"].append({"role": "tool", "tool_call_id": asked.id, "content": text})


async def _respond(client: Any, request: dict[str, Any], functions: dict[str, Any]) -> str:
    items = [request["messages"][1]]
    while True:
        answer = await client.responses.create(model="scripted", instructions=INSTRUCTIONS, input=items)
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return str(answer.output_text)
        for asked in calls:
            items.append(asked.model_dump(exclude_none=True))
            text = await _call(functions, asked.name, asked.arguments, asked.call_id)
            items.append({"type": "function_call_output", "call_id": asked.call_id, "output": text})


async def _call(functions: dict[str, Any], name: str, arguments: str, call_id: str) -> str:
    with agent_otel.tool_call(name, arguments, call_id=call_id) as call:
        result = functions[name](**json.loads(arguments))
        return str(call.result(await result if inspect.isawaitable(result) else result))
