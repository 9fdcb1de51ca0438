"""A loop of the program's own that posts chat completions with httpx, or with httpx2 where that is not installed."""

# mypy: disable-error-code="import-not-found,no-redef,unused-ignore"
# The successor is not installed where types are checked.

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.contract.agents import by_hand, chat_loop
from tests.contract.agents.by_hand import Asked

try:
    import httpx
except ImportError:
    import httpx2 as httpx

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync."""
    request, functions = chat_loop.begin(tools, prompt)
    with httpx.Client(base_url=base_url) as client, by_hand.running():
        while True:
            message = client.post("/chat/completions", json=request).json()["choices"][0]["message"]
            if not message.get("tool_calls"):
                return str(message["content"])
            request["messages"].append(message)
            for call in message["tool_calls"]:
                request["messages"].append(_answer(call, by_hand.call(functions, _asked(call), setting)))


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    request, functions = chat_loop.begin(tools, prompt)
    async with httpx.AsyncClient(base_url=base_url) as client:
        with by_hand.running():
            while True:
                message = (await client.post("/chat/completions", json=request)).json()["choices"][0]["message"]
                if not message.get("tool_calls"):
                    return str(message["content"])
                request["messages"].append(message)
                for call in message["tool_calls"]:
                    text = await by_hand.call_later(functions, _asked(call), setting)
                    request["messages"].append(_answer(call, text))


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, the answers streamed."""
    request, functions = chat_loop.begin(tools, prompt)
    async with httpx.AsyncClient(base_url=base_url) as client:
        with by_hand.running():
            while True:
                asked: Any = client.stream("POST", "/chat/completions", json={**request, "stream": True})
                async with asked as response:
                    text, calls = _joined([line async for line in response.aiter_lines()])
                if not calls:
                    return text
                request["messages"].append({"role": "assistant", "tool_calls": calls})
                for call in calls:
                    result = await by_hand.call_later(functions, _asked(call), setting)
                    request["messages"].append(_answer(call, result))


def _asked(call: Any) -> Asked:
    return Asked(call["function"]["name"], json.loads(call["function"]["arguments"]), call["id"])


def _answer(call: Any, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def _joined(lines: list[str]) -> tuple[str, list[Any]]:
    """Return the text of a stream and its calls."""
    text = ""
    calls: dict[int, Any] = {}
    for line in lines:
        data = line.removeprefix("data: ")
        if not data.startswith("{"):
            continue
        delta = json.loads(data)["choices"][0]["delta"]
        text += delta.get("content") or ""
        for piece in delta.get("tool_calls") or ():
            call = calls.setdefault(piece["index"], piece)
            if call is not piece:
                call["function"]["arguments"] += piece["function"]["arguments"]
    return text, list(calls.values())
