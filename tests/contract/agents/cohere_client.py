"""A loop of the program's own over Cohere's client, version 2 of its API."""

# mypy: disable-error-code="import-not-found,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cohere

from tests.contract.agents import by_hand
from tests.contract.agents.chat_loop import answer, asked, begin

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync; each result is a document, and the answers go back as the SDK's objects."""
    client = cohere.ClientV2("scripted", base_url=base_url)
    request, functions = begin(tools, prompt)
    with by_hand.running():
        while True:
            message = client.chat(**request).message
            if not message.tool_calls:
                return str(message.content[0].text)
            request["messages"].append(message)
            for call in message.tool_calls:
                document = {"data": by_hand.call(functions, asked(call), setting)}
                content = [{"type": "document", "document": document}]
                request["messages"].append({"role": "tool", "tool_call_id": call.id, "content": content})


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    request, functions = begin(tools, prompt)
    async with cohere.AsyncClientV2("scripted", base_url=base_url) as client:
        with by_hand.running():
            while True:
                message = (await client.chat(**request)).message
                if not message.tool_calls:
                    return str(message.content[0].text)
                request["messages"].append(message.model_dump(exclude_none=True))
                for call in message.tool_calls:
                    request["messages"].append(answer(call, await by_hand.call_later(functions, asked(call), setting)))


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, the answers streamed."""
    request, functions = begin(tools, prompt)
    async with cohere.AsyncClientV2("scripted", base_url=base_url) as client:
        with by_hand.running():
            while True:
                text = ""
                calls: Any = []
                async for event in client.chat_stream(**request):
                    if event.type == "content-delta":
                        text += event.delta.message.content.text
                    elif event.type == "tool-call-start":
                        calls.append(event.delta.message.tool_calls)
                    elif event.type == "tool-call-delta":
                        calls[-1].function.arguments += event.delta.message.tool_calls.function.arguments
                if not calls:
                    return text
                request["messages"].append({"role": "assistant", "tool_calls": calls})
                for call in calls:
                    request["messages"].append(answer(call, await by_hand.call_later(functions, asked(call), setting)))
