"""A loop of the program's own over clients with OpenAI's chat completions, of several SDKs."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.contract.agents import by_hand
from tests.contract.agents.by_hand import INSTRUCTIONS, Asked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class ChatLoop(NamedTuple):
    """The loop; both functions return a client for a base URL."""

    client: Callable[[str], Any]
    async_client: Callable[[str], Any]

    def run(self, base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
        """One run, sync; the answers go back as the SDK's objects."""
        client = self.client(base_url)
        request, functions = begin(tools, prompt)
        with by_hand.running():
            while True:
                message = client.chat.completions.create(**request).choices[0].message
                if not message.tool_calls:
                    return str(message.content)
                request["messages"].append(message)
                for call in message.tool_calls:
                    request["messages"].append(answer(call, by_hand.call(functions, asked(call), setting)))

    async def arun(self, base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
        """One run."""
        request, functions = begin(tools, prompt)
        async with self.async_client(base_url) as client:
            with by_hand.running():
                while True:
                    message = (await client.chat.completions.create(**request)).choices[0].message
                    if not message.tool_calls:
                        return str(message.content)
                    request["messages"].append(plain(message))
                    for call in message.tool_calls:
                        text = await by_hand.call_later(functions, asked(call), setting)
                        request["messages"].append(answer(call, text))

    async def astream(self, base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
        """One run, the answers streamed."""
        request, functions = begin(tools, prompt)
        async with self.async_client(base_url) as client:
            with by_hand.running():
                while True:
                    text, calls = await _joined(await client.chat.completions.create(**request, stream=True))
                    if not calls:
                        return text
                    request["messages"].append({"role": "assistant", "tool_calls": list(map(_call, calls))})
                    for call in calls:
                        result = await by_hand.call_later(functions, asked(call), setting)
                        request["messages"].append(answer(call, result))


def begin(tools: Sequence[Any], prompt: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the first request, and the tools by name."""
    functions = {tool.__name__: tool for tool in tools}
    messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": prompt}]
    return {"model": "scripted", "messages": messages, "tools": by_hand.definitions(functions)}, functions


def asked(call: Any) -> Asked:
    """Return a call in a response."""
    return Asked(call.function.name, json.loads(call.function.arguments), call.id)


def answer(call: Any, text: str) -> dict[str, Any]:
    """Return the message with the result of a call."""
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def plain(message: Any) -> dict[str, Any]:
    """Return a message of the model without the SDK's class."""
    if isinstance(message, dict):
        return dict(message)
    dump = message.as_dict if hasattr(message, "as_dict") else functools.partial(message.model_dump, exclude_none=True)
    made: dict[str, Any] = dump()
    return made


async def _joined(stream: Any) -> tuple[str, list[Any]]:
    """Return the text of a stream and its calls."""
    text = ""
    calls: Any = {}
    async for chunk in stream:
        text += chunk.choices[0].delta.content or ""
        for piece in chunk.choices[0].delta.tool_calls or ():
            # Azure's pieces have no index: the first one of a call has its id.
            place = getattr(piece, "index", len(calls) - (not piece.id))
            call = calls.setdefault(place, piece)
            if call is not piece:
                call.function.arguments += piece.function.arguments
    return text, list(calls.values())


def _call(call: Any) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": "function", "function": function}
