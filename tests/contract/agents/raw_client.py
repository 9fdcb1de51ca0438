"""A loop of the program's own over raw responses of OpenAI's and Anthropic's clients, in each way of reading them.

The setting is the SDK and the way: ``raw`` and ``reading`` are the SDKs' ``with_raw_response`` and
``with_streaming_response``; the body is then parsed, read as JSON, or read as a stream.
"""

# mypy: disable-error-code="import-not-found,unused-ignore"
# The SDKs are not installed where types are checked.

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

from tests.contract.agents import by_hand
from tests.contract.agents.by_hand import Asked

if TYPE_CHECKING:
    from collections.abc import Sequence

#: A call of the model: id, name, arguments.
Call = tuple[str, str, Any]


class OpenAI:
    """Chat completions."""

    def __init__(self, base_url: str, client: str, tools: Sequence[Any], prompt: str) -> None:
        import openai

        self.client = getattr(openai, client)(base_url=base_url, api_key="scripted", max_retries=0)
        self.api = self.client.chat.completions
        self.history: list[Any] = [{"role": "user", "content": prompt}]
        functions = [{"type": "function", "function": {"name": tool.__name__, "parameters": {}}} for tool in tools]
        self.request = {"model": "scripted", "messages": self.history, "tools": functions}

    def add(self, message: Any) -> tuple[str, list[Call]]:
        """Add the model's message to the history; return its text and its calls."""
        message = message["choices"][0]["message"]
        self.history.append(message)
        found = message.get("tool_calls") or ()
        return message.get("content"), [
            (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in found
        ]

    def answer(self, results: dict[str, str]) -> None:
        """Add results to the history."""
        self.history += [{"role": "tool", "tool_call_id": key, "content": text} for key, text in results.items()]

    @staticmethod
    def joined(chunks: list[Any]) -> Any:
        """Return the response that the chunks of a stream amount to."""
        text = ""
        calls: dict[int, Any] = {}
        for chunk in chunks:
            delta = chunk.choices[0].delta
            text += delta.content or ""
            for piece in delta.tool_calls or ():
                call = calls.setdefault(piece.index, piece)
                if call is not piece:
                    call.function.arguments += piece.function.arguments
        message = {"role": "assistant", "content": text}
        if calls:
            message |= {"tool_calls": [call.model_dump(exclude={"index"}) for call in calls.values()]}  # type: ignore[dict-item]
        return {"choices": [{"message": message}]}


class Anthropic:
    """Messages."""

    def __init__(self, base_url: str, client: str, tools: Sequence[Any], prompt: str) -> None:
        import anthropic

        self.client = getattr(anthropic, client.replace("OpenAI", "Anthropic"))(
            base_url=base_url, api_key="scripted", max_retries=0
        )
        self.api = self.client.messages
        self.history: list[Any] = [{"role": "user", "content": prompt}]
        self.request = {
            "model": "scripted",
            "max_tokens": 100,
            "messages": self.history,
            "tools": [{"name": tool.__name__, "input_schema": {"type": "object"}} for tool in tools],
        }

    def add(self, message: Any) -> tuple[str, list[Call]]:
        """Add the model's message to the history; return its text and its calls."""
        self.history.append({"role": "assistant", "content": message["content"]})
        calls = [block for block in message["content"] if block["type"] == "tool_use"]
        return message["content"][0].get("text"), [(call["id"], call["name"], call["input"]) for call in calls]

    def answer(self, results: dict[str, str]) -> None:
        """Add results to the history."""
        found = [{"type": "tool_result", "tool_use_id": key, "content": text} for key, text in results.items()]
        self.history.append({"role": "user", "content": found})

    @staticmethod
    def joined(events: list[Any]) -> Any:
        """Return the message that the events of a stream amount to."""
        blocks: list[Any] = []
        for event in events:
            if event.type == "content_block_start":
                blocks.append({**event.content_block.model_dump(include={"type", "id", "name", "text"}), "json": ""})
            elif event.type == "content_block_delta" and event.delta.type == "text_delta":
                blocks[-1]["text"] += event.delta.text
            elif event.type == "content_block_delta":
                blocks[-1]["json"] += event.delta.partial_json
        for block in blocks:
            written = block.pop("json")
            if block["type"] == "tool_use":
                block["input"] = json.loads(written or "{}")
        return {"content": blocks}


SDKS = {"openai": OpenAI, "anthropic": Anthropic}


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync."""
    sdk, way, body = setting.split()
    talk: Any = SDKS[sdk](base_url, "OpenAI", tools, prompt)
    more = {"stream": True} if body == "streamed" else {}
    with by_hand.running():
        while True:
            if way == "raw":
                message = _read(talk, talk.api.with_raw_response.create(**talk.request, **more), body)
            else:
                with talk.api.with_streaming_response.create(**talk.request, **more) as response:
                    message = _read(talk, response, body)
            text, calls = talk.add(message)
            if not calls:
                return str(text)
            talk.answer(_results(tools, calls))


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    sdk, way, body = setting.split()
    talk: Any = SDKS[sdk](base_url, "AsyncOpenAI", tools, prompt)
    more = {"stream": True} if body == "streamed" else {}
    with by_hand.running():
        while True:
            if way == "raw":
                message = await _aread(talk, await talk.api.with_raw_response.create(**talk.request, **more), body)
            else:
                async with talk.api.with_streaming_response.create(**talk.request, **more) as response:
                    message = await _aread(talk, response, body)
            text, calls = talk.add(message)
            if not calls:
                return str(text)
            talk.answer(_results(tools, calls))


def _results(tools: Sequence[Any], calls: list[Call]) -> dict[str, str]:
    functions = {tool.__name__: tool for tool in tools}
    return {call_id: by_hand.call(functions, Asked(name, given, call_id), "") for call_id, name, given in calls}


def _read(talk: Any, response: Any, body: str) -> Any:
    if body == "streamed":
        return talk.joined(list(response.parse()))
    return response.parse().model_dump(exclude_none=True) if body == "parsed" else response.json()


async def _aread(talk: Any, response: Any, body: str) -> Any:
    if body == "json":
        return await _value(response.json())
    parsed = await _value(response.parse())
    return talk.joined([each async for each in parsed]) if body == "streamed" else parsed.model_dump(exclude_none=True)


async def _value(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
