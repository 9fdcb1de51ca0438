"""A loop of the program's own over Bedrock's Converse API, through boto3, which is sync only."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3

import agent_otel
from tests.contract.agents import converse_stream

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
    """One run; streamed when the setting says so, and with InvokeModel."""
    with agent_otel.execution("run-1"):
        if setting.startswith("invoke"):
            return _invoke(base_url, tools, prompt, setting)
        return _loop(base_url, tools, prompt, setting)


def _client(base_url: str) -> Any:
    return boto3.client(
        "bedrock-runtime",
        endpoint_url=base_url,
        region_name="us-east-1",
        aws_access_key_id="scripted",
        aws_secret_access_key="scripted",  # noqa: S106 - the server does not look
    )


def _loop(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    client = _client(base_url)
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
    return converse_stream.blocks(client.converse_stream(**request)["stream"])


def _invoke(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    client, functions = _client(base_url), {tool.__name__: tool for tool in tools}
    messages: list[Any] = [{"role": "user", "content": prompt}]
    definitions = [{"name": name, "input_schema": {"type": "object"}} for name in functions]
    fixed = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "system": INSTRUCTIONS, "tools": definitions}
    while True:
        said = _invoked(client, json.dumps({**fixed, "messages": messages}), setting)
        asked = [block for block in said if block["type"] == "tool_use"]
        if not asked:
            return "".join(block["text"] for block in said)
        results = []
        for each in asked:
            with agent_otel.tool_call(each["name"], each["input"], call_id=each["id"]) as call:
                value = call.refused() or call.result(functions[each["name"]](**each["input"]))
            text = value[:100] if setting == "invoke cut" else value
            results.append({"type": "tool_result", "tool_use_id": each["id"], "content": text})
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": results}]


def _invoked(client: Any, body: str, setting: str) -> list[Any]:
    if setting != "invoke stream":
        return list(json.loads(client.invoke_model(modelId="scripted", body=body)["body"].read())["content"])
    said: list[Any] = []
    pieces: list[str] = []
    for part in client.invoke_model_with_response_stream(modelId="scripted", body=body)["body"]:
        event = json.loads(part["chunk"]["bytes"])
        if event["type"] == "content_block_start":
            said.append(event["content_block"])
            pieces.append("")
        elif event["type"] == "content_block_delta":
            pieces[-1] += event["delta"].get("text") or event["delta"].get("partial_json", "")
    for block, piece in zip(said, pieces, strict=True):
        block.update({"text": piece} if block["type"] == "text" else {"input": json.loads(piece)})
    return said
