"""A loop of the program's own over Bedrock's Converse API, through aiobotocore."""

# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiobotocore.session import get_session

import agent_otel
from tests.contract.agents import converse_stream

if TYPE_CHECKING:
    from collections.abc import Sequence


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    return await _arun(base_url, tools, prompt, setting, is_streamed=False)


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, the answers streamed."""
    return await _arun(base_url, tools, prompt, setting, is_streamed=True)


async def _arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str, *, is_streamed: bool) -> str:
    del setting
    functions = {tool.__name__: tool for tool in tools}
    specs = [{"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}}} for name in functions]
    messages: list[Any] = [{"role": "user", "content": [{"text": prompt}]}]
    request = {"modelId": "scripted", "messages": messages, "toolConfig": {"tools": specs}}
    keys = {"aws_access_key_id": "scripted", "aws_secret_access_key": "scripted", "region_name": "us-east-1"}
    async with get_session().create_client("bedrock-runtime", endpoint_url=base_url, **keys) as client:
        while True:
            if is_streamed:
                stream = (await client.converse_stream(**request))["stream"]
                said = converse_stream.blocks([event async for event in stream])
            else:
                said = (await client.converse(**request))["output"]["message"]["content"]
            asked = [block["toolUse"] for block in said if "toolUse" in block]
            if not asked:
                return "".join(block["text"] for block in said)
            results = []
            for each in asked:
                with agent_otel.tool_call(each["name"], each["input"], call_id=each["toolUseId"]) as call:
                    value = call.refused() or call.result(functions[each["name"]](**each["input"]))
                results.append({"toolResult": {"toolUseId": each["toolUseId"], "content": [{"text": value}]}})
            messages += [{"role": "assistant", "content": said}, {"role": "user", "content": results}]
