"""Bedrock through aiobotocore: each way to ask a model is one request, whose results and tokens are counted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent_otel.testing.servers.anthropic import CACHED_TOKENS, BedrockServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

ENVIRONMENT = "aiobotocore"
integrations = {
    "aiobotocore": [
        "aiobotocore.client:AioBaseClient._make_api_call",
        "aiobotocore.endpoint:AioEndpoint._needs_retry",
    ]
}

PROGRAM = """
import asyncio, json
import agent_otel
from aiobotocore.session import get_session
from tests.contract.child import Messages, Telemetry

RESULT = "x" * 3000
CONVERSE = {"modelId": "scripted", "system": [{"text": "Be kind."}], "messages": [
    {"role": "user", "content": [{"text": "go"}]},
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "call_1", "name": "search", "input": {}}}]},
    {"role": "user", "content": [{"toolResult": {"toolUseId": "call_1", "content": [{"text": RESULT}]}}]},
]}
BODY = json.dumps({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "system": "Be kind.", "messages": [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "search", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": RESULT}]},
]})
INVOKE = {"modelId": "scripted", "body": BODY}

async def read(stream):
    return [event async for event in stream]

async def abandoned(stream):
    async for _ in stream:
        break
    stream.close()

STYLES = {
    "converse": lambda client: client.converse(**CONVERSE),
    "converse, streamed": lambda client: then(client.converse_stream(**CONVERSE), "stream", read),
    "converse, abandoned": lambda client: then(client.converse_stream(**CONVERSE), "stream", abandoned),
    "invoke": lambda client: then(client.invoke_model(**INVOKE), "body", lambda body: body.read()),
    "invoke, streamed": lambda client: then(client.invoke_model_with_response_stream(**INVOKE), "body", read),
}

async def then(response, key, use):
    return await use((await response)[key])

async def main():
    found = {}
    async with get_session().create_client("bedrock-runtime") as client:
        for name, style in STYLES.items():
            telemetry.metrics()
            with agent_otel.execution(name):
                with agent_otel.tool_call("search", {}, call_id="call_1") as call:
                    call.result(RESULT)
                await style(client)
            found[name] = telemetry.metrics()
    return found

messages, telemetry = Messages(), Telemetry()
found = asyncio.run(main())
from agent_otel._internal import errors
print(json.dumps([found, dict(errors.errors), messages.take()]))
"""

PARTS = {"system": 8, "user": 2, "tools": 0, "assistant": 0, "tool_arguments": 2, "tool_results": 3000}


def test_each_style_is_one_request(environment: Callable[[str], Environment]) -> None:
    with BedrockServer(lambda _: "done") as server:
        env = {"AGENT_OTEL": "1", **server.environment}
        done = environment(ENVIRONMENT).run(PROGRAM, env=env, check=True)
        assert len(server.requests) == 5
    found, errors, messages = json.loads(done.stdout.splitlines()[-1])
    assert (errors, messages) == ({}, [])
    for style, metrics in found.items():
        sizes = {
            metric["attributes"]["part"]: (metric["count"], metric["sum"])
            for metric in metrics
            if metric["name"] == "agent_otel.model.request.size"
        }
        assert sizes == {part: (1, size) for part, size in PARTS.items()}, style
        assert [m["sum"] for m in metrics if m["name"] == "agent_otel.tool.result.delivered"] == [3000], style
        cached = [m["sum"] for m in metrics if m["name"] == "agent_otel.model.cached_tokens" and m["sum"]]
        assert cached == ([CACHED_TOKENS] if style in {"converse", "converse, streamed"} else []), style
