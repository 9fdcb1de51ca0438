"""A loop of the program's own over the messages of Fireworks' client, which are those of Anthropic."""

# mypy: disable-error-code="import-not-found,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import fireworks

from tests.contract.agents import by_hand
from tests.contract.agents.by_hand import INSTRUCTIONS, Asked

if TYPE_CHECKING:
    from collections.abc import Sequence


def _begin(tools: Sequence[Any], prompt: str) -> tuple[dict[str, Any], dict[str, Any]]:
    described = [{"name": tool.__name__, "input_schema": {"type": "object"}} for tool in tools]
    request = {
        "model": "scripted",
        "max_tokens": 100,
        "system": INSTRUCTIONS,
        "messages": [{"role": "user", "content": prompt}],
        "tools": described,
    }
    return request, {tool.__name__: tool for tool in tools}


def _client(kind: Any, base_url: str) -> Any:
    return kind(base_url=base_url.removesuffix("/v1"), api_key="scripted", max_retries=0)


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync."""
    client = _client(fireworks.Fireworks, base_url)
    request, functions = _begin(tools, prompt)
    with by_hand.running():
        while True:
            content = [block.model_dump(exclude_none=True) for block in client.messages.create(**request).content]
            calls = _calls(content)
            if not calls:
                return str(content[0]["text"])
            _answer(request, content, [(each, by_hand.call(functions, each, setting)) for each in calls])


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    return await _run(base_url, tools, prompt, setting, stream=False)


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, the answers streamed."""
    return await _run(base_url, tools, prompt, setting, stream=True)


async def _run(base_url: str, tools: Sequence[Any], prompt: str, setting: str, *, stream: bool) -> str:
    request, functions = _begin(tools, prompt)
    async with _client(fireworks.AsyncFireworks, base_url) as client:
        with by_hand.running():
            while True:
                if stream:
                    content = _collected(await client.messages.create(**request, stream=True))
                else:
                    message = await client.messages.create(**request)
                    content = [block.model_dump(exclude_none=True) for block in message.content]
                calls = _calls(content)
                if not calls:
                    return str(content[0]["text"])
                answers = [(each, await by_hand.call_later(functions, each, setting)) for each in calls]
                _answer(request, content, answers)


def _calls(content: list[Any]) -> list[Asked]:
    return [Asked(each["name"], each["input"], each["id"]) for each in content if each["type"] == "tool_use"]


def _answer(request: dict[str, Any], content: list[Any], answers: list[tuple[Asked, str]]) -> None:
    results = [{"type": "tool_result", "tool_use_id": each.id, "content": text} for each, text in answers]
    request["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": results}]


def _collected(stream: str) -> list[Any]:
    """Return the content of a message out of the text of a stream, which is all that the SDK returns of one."""
    content: list[Any] = []
    arguments = ""
    for event in (json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: ")):
        if event["type"] == "content_block_start":
            content.append(event["content_block"])
            arguments = ""
        elif event["type"] == "content_block_delta" and "text" in event["delta"]:
            content[-1]["text"] += event["delta"]["text"]
        elif event["type"] == "content_block_delta":
            arguments += event["delta"]["partial_json"]
            content[-1]["input"] = json.loads(arguments) if arguments.endswith("}") else {}
    return content
