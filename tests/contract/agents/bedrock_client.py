"""A loop of the program's own over Bedrock's Converse API, through boto3, which is sync only."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3

import agent_otel

if TYPE_CHECKING:
    from collections.abc import Sequence

INSTRUCTIONS = "Be größe."


def _begin(tools: Sequence[Any], prompt: str, setting: str) -> dict[str, Any]:
    picture = [{"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}] if setting == "picture" else []
    specs = [{"toolSpec": {"name": tool.__name__, "inputSchema": {"json": {"type": "object"}}}} for tool in tools]
    return {
        "modelId": "scripted",
        "system": [{"text": INSTRUCTIONS}],
        "messages": [{"role": "user", "content": [{"text": prompt}, *picture]}],
        "toolConfig": {"tools": specs},
    }


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run; streamed when the setting says so."""
    with agent_otel.execution("run-1"):
        return _loop(base_url, tools, prompt, setting)


def _loop(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=base_url,
        region_name="us-east-1",
        aws_access_key_id="scripted",
        aws_secret_access_key="scripted",  # noqa: S106 - the server does not look
    )
    request, functions = _begin(tools, prompt, setting), {tool.__name__: tool for tool in tools}
    while True:
        said = _ask(client, request, setting)
        asked = [block["toolUse"] for block in said if "toolUse" in block]
        if not asked:
            return "".join(block["text"] for block in said)
        results = []
        for each in asked:
            with agent_otel.tool_call(each["name"], each["input"], call_id=each["toolUseId"]) as call:
                value = call.refused() or call.result(functions[each["name"]](**each["input"]))
            results.append({"toolResult": {"toolUseId": each["toolUseId"], "content": _content(value, setting)}})
        request["messages"] += [{"role": "assistant", "content": said}, {"role": "user", "content": results}]


def _content(value: Any, setting: str) -> list[Any]:
    """What the program makes of a result before it sends it."""
    if isinstance(value, dict):
        return [{"json": value}]
    return [{"text": value[:100] if setting == "cut" else value}]


def _ask(client: Any, request: dict[str, Any], setting: str) -> list[Any]:
    if setting != "stream":
        return list(client.converse(**request)["output"]["message"]["content"])
    said: list[Any] = []
    for event in client.converse_stream(**request)["stream"]:
        if "contentBlockStart" in event:
            said.append({"toolUse": {**event["contentBlockStart"]["start"]["toolUse"], "input": ""}})
        elif "contentBlockDelta" in event:
            delta = event["contentBlockDelta"]["delta"]
            if "toolUse" in delta:
                said[-1]["toolUse"]["input"] += delta["toolUse"]["input"]
            else:
                said.append({"text": delta["text"]})
    for block in said:
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"])
    return said
