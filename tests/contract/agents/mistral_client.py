"""A loop of the program's own over Mistral's client, either form of its package."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

try:
    from mistralai.client import Mistral
except ImportError:
    from mistralai import Mistral

from tests.contract.agents import by_hand
from tests.contract.agents.by_hand import INSTRUCTIONS, Asked

if TYPE_CHECKING:
    from collections.abc import Sequence


def _begin(tools: Sequence[Any], prompt: str) -> tuple[dict[str, Any], dict[str, Any]]:
    functions = {tool.__name__: tool for tool in tools}
    messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": prompt}]
    return {"model": "scripted", "messages": messages, "tools": by_hand.definitions(functions)}, functions


def _asked(call: Any) -> Asked:
    arguments = call.function.arguments
    return Asked(call.function.name, json.loads(arguments) if isinstance(arguments, str) else arguments, call.id)


def _answer(call: Any, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call.id, "name": call.function.name, "content": text}


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync."""
    request, functions = _begin(tools, prompt)
    with Mistral(api_key="scripted", server_url=base_url) as client, by_hand.running():
        while True:
            message = client.chat.complete(**request).choices[0].message
            if not message.tool_calls:
                return str(message.content)
            request["messages"].append(message)
            for call in message.tool_calls:
                request["messages"].append(_answer(call, by_hand.call(functions, _asked(call), setting)))


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    request, functions = _begin(tools, prompt)
    async with Mistral(api_key="scripted", server_url=base_url) as client:
        with by_hand.running():
            while True:
                message = (await client.chat.complete_async(**request)).choices[0].message
                if not message.tool_calls:
                    return str(message.content)
                request["messages"].append(message)
                for call in message.tool_calls:
                    text = await by_hand.call_later(functions, _asked(call), setting)
                    request["messages"].append(_answer(call, text))


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, the answers streamed."""
    request, functions = _begin(tools, prompt)
    async with Mistral(api_key="scripted", server_url=base_url) as client:
        with by_hand.running():
            while True:
                text = ""
                calls: Any = []
                async for event in await client.chat.stream_async(**request):
                    text += event.data.choices[0].delta.content or ""
                    calls += event.data.choices[0].delta.tool_calls or []
                if not calls:
                    return text
                request["messages"].append({"role": "assistant", "tool_calls": calls})
                for call in calls:
                    result = await by_hand.call_later(functions, _asked(call), setting)
                    request["messages"].append(_answer(call, result))


def converse(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run over a conversation that the provider keeps."""
    request, functions = _begin(tools, prompt)
    with Mistral(api_key="scripted", server_url=base_url) as client, by_hand.running():
        answer = client.beta.conversations.start(model="scripted", inputs=prompt, tools=request["tools"])
        while True:
            calls = [entry for entry in answer.outputs if entry.type == "function.call"]
            if not calls:
                return str(answer.outputs[0].content)
            results = []
            for call in calls:
                arguments = json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments
                text = by_hand.call(functions, Asked(call.name, arguments, call.tool_call_id), setting)
                results.append({"type": "function.result", "tool_call_id": call.tool_call_id, "result": text})
            answer = client.beta.conversations.append(conversation_id=answer.conversation_id, inputs=results)
