"""A loop of the program's own over Anthropic's client, either major, in each style of calling it."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import anthropic

import agent_otel

if TYPE_CHECKING:
    from collections.abc import Sequence

INSTRUCTIONS = "Be größe."


def _begin(tools: Sequence[Any], prompt: str, setting: str) -> tuple[dict[str, Any], dict[str, Any]]:
    text: Any = prompt
    if setting == "blocks":
        text = [{"type": "text", "text": prompt, "cache_control": {"type": "ephemeral"}}]
    request = {
        "model": "scripted",
        "max_tokens": 100,
        "system": [{"type": "text", "text": INSTRUCTIONS}] if setting == "blocks" else INSTRUCTIONS,
        "messages": [{"role": "user", "content": text}],
        "tools": [{"name": tool.__name__, "input_schema": {"type": "object"}} for tool in tools],
    }
    return request, {tool.__name__: tool for tool in tools}


def _shortened(text: Any, setting: str) -> Any:
    """What the program makes of a result before it sends it."""
    if setting == "cut":
        return text[:100]
    return [{"type": "text", "text": text}] if setting == "blocks" else text


def _answer(message: Any, results: list[Any], request: dict[str, Any], setting: str) -> None:
    """Put a turn into the request, as the SDK's own objects or as plain data."""
    said = message.content
    if setting == "plain":
        said = [block.model_dump(exclude_none=True) for block in said]
    request["messages"] += [{"role": "assistant", "content": said}, {"role": "user", "content": results}]


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync."""
    with agent_otel.execution("run-1"):
        return _loop(base_url, tools, prompt, setting)


def _loop(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    client = anthropic.Anthropic(base_url=base_url, api_key="scripted", max_retries=0)
    request, functions = _begin(tools, prompt, setting)
    while True:
        message = _ask(client, request, setting)
        asked = [block for block in message.content if block.type == "tool_use"]
        if not asked:
            return str(message.content[0].text)
        results = []
        for block in asked:
            with agent_otel.tool_call(block.name, block.input, call_id=block.id) as call:
                text = call.refused() or call.result(functions[block.name](**block.input))
            results.append({"type": "tool_result", "tool_use_id": block.id, "content": _shortened(text, setting)})
        _answer(message, results, request, setting)


def _ask(client: Any, request: dict[str, Any], setting: str) -> Any:
    messages = client.beta.messages if setting.startswith("beta") else client.messages
    if setting.endswith("raw"):
        return messages.with_raw_response.create(**request).parse()
    if setting.endswith("parse"):
        return messages.parse(**request)
    if setting.endswith("stream"):
        with messages.stream(**request) as stream:
            return stream.get_final_message()
    return messages.create(**request)


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    with agent_otel.execution("run-1"):
        return await _aloop(base_url, tools, prompt, setting)


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, streamed."""
    with agent_otel.execution("run-1"):
        return await _aloop(base_url, tools, prompt, setting or "stream")


async def _aloop(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    request, functions = _begin(tools, prompt, setting)
    async with anthropic.AsyncAnthropic(base_url=base_url, api_key="scripted", max_retries=0) as client:
        while True:
            message = await _aask(client, request, setting)
            asked = [block for block in message.content if block.type == "tool_use"]
            if not asked:
                return str(message.content[0].text)
            results = []
            for block in asked:
                with agent_otel.tool_call(block.name, block.input, call_id=block.id) as call:
                    text = await call.arefused()
                    if text is None:
                        result = functions[block.name](**block.input)
                        text = call.result(await result if inspect.isawaitable(result) else result)
                results.append({"type": "tool_result", "tool_use_id": block.id, "content": _shortened(text, setting)})
            _answer(message, results, request, setting)


async def _aask(client: Any, request: dict[str, Any], setting: str) -> Any:
    messages = client.beta.messages if setting.startswith("beta") else client.messages
    if setting.endswith("events"):
        return await _collected(await messages.create(**request, stream=True))
    if setting.endswith("stream"):
        async with messages.stream(**request) as stream:
            return await stream.get_final_message()
    return await messages.create(**request)


async def _collected(events: Any) -> Any:
    """Put a message together out of the events of a stream that the program reads itself."""
    message: Any = None
    arguments = ""
    async for event in events:
        if event.type == "message_start":
            message = event.message
        elif event.type == "content_block_start":
            message.content.append(event.content_block)
            arguments = ""
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            message.content[-1].text += event.delta.text
        elif event.type == "content_block_delta":
            arguments += event.delta.partial_json
            message.content[-1].input = json.loads(arguments) if arguments.endswith("}") else {}
    return message
