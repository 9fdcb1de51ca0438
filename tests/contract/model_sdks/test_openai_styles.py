"""Each style in which OpenAI's client is called is one request, sync and async, OpenAI's and Azure's, either major."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import OpenAIServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.scripted import Endpoint
    from tests.environments import Environment

PROGRAM = """
import asyncio, inspect, json, sys
sys.path.insert(0, {root!r})
from tests.contract.child import Messages, Telemetry
messages, telemetry = Messages(), Telemetry()
import agent_otel, openai, pydantic

class Answer(pydantic.BaseModel):
    text: str

given = dict(base_url={base_url!r}, api_key="scripted", max_retries=0)
azure = dict(azure_endpoint={azure_url!r}, api_version="2026-01-01", api_key="scripted", max_retries=0)
RESULT = "x" * 3000
chat = dict(model="scripted", messages=[
    {{"role": "system", "content": "Be kind."}}, {{"role": "user", "content": "go"}},
    {{"role": "assistant", "tool_calls": [
        {{"id": "call_1", "type": "function", "function": {{"name": "search", "arguments": "{{}}"}}}}]}},
    {{"role": "tool", "tool_call_id": "call_1", "content": RESULT}},
])
items = dict(model="scripted", instructions="Be kind.", input=[
    {{"role": "user", "content": "go"}},
    {{"type": "function_call", "call_id": "call_1", "name": "search", "arguments": "{{}}"}},
    {{"type": "function_call_output", "call_id": "call_1", "output": RESULT}},
])

async def used(value):
    value = await value if inspect.isawaitable(value) else value
    if hasattr(value, "__aenter__") and not hasattr(value, "__enter__"):
        async with value as opened:
            return await drained(opened)
    if hasattr(value, "__enter__"):
        with value as opened:
            return await drained(opened)
    return await drained(value)

async def drained(value):
    if hasattr(value, "__anext__") or hasattr(value, "__aiter__"):
        async for _ in value:
            pass
    elif isinstance(value, openai.Stream) or hasattr(value, "get_final_completion"):
        for _ in value:
            pass
    elif hasattr(value, "read"):
        read = value.read()
        await read if inspect.isawaitable(read) else None

STYLES = {{
    "create": lambda c: c.chat.completions.create(**chat),
    "create, streamed": lambda c: c.chat.completions.create(**chat, stream=True),
    "raw": lambda c: c.chat.completions.with_raw_response.create(**chat),
    "raw, streamed": lambda c: c.chat.completions.with_raw_response.create(**chat, stream=True),
    "streaming response": lambda c: c.chat.completions.with_streaming_response.create(**chat),
    "parse": lambda c: c.chat.completions.parse(**chat, response_format=Answer),
    "beta parse": lambda c: c.beta.chat.completions.parse(**chat, response_format=Answer),
    "stream": lambda c: c.chat.completions.stream(**chat),
    "responses": lambda c: c.responses.create(**items),
    "responses, streamed": lambda c: c.responses.create(**items, stream=True),
    "responses, raw": lambda c: c.responses.with_raw_response.create(**items),
    "responses parse": lambda c: c.responses.parse(**items, text_format=Answer),
    "responses stream": lambda c: c.responses.stream(**items),
    "abandoned": lambda c: abandoned(c.chat.completions.create(**chat, stream=True)),
}}

async def abandoned(stream):
    stream = await stream if inspect.isawaitable(stream) else stream
    if isinstance(stream, openai.AsyncStream):
        async for _ in stream:
            break
        await stream.close()
    else:
        next(iter(stream))
        stream.close()

async def main():
    found = {{}}
    clients = {{"sync": openai.OpenAI(**given), "async": openai.AsyncOpenAI(**given)}}
    clients |= {{"azure": openai.AzureOpenAI(**azure), "async azure": openai.AsyncAzureOpenAI(**azure)}}
    for kind, client in clients.items():
        for name, style in STYLES.items():
            telemetry.metrics()
            with agent_otel.execution(f"{{kind}} {{name}}"):
                with agent_otel.tool_call("search", {{}}, call_id="call_1") as call:
                    call.result(RESULT)
                await used(style(client))
            found[f"{{kind}} {{name}}"] = telemetry.metrics()
    return found

found = asyncio.run(main())
from agent_otel._internal import errors
print(json.dumps({{"found": found, "errors": dict(errors.errors), "messages": messages.take()}}))
"""


class AzureServer(OpenAIServer):
    """Serves the same under Azure's paths as well."""

    def endpoints(self) -> dict[str, Endpoint]:
        """Return the APIs under both paths."""
        own = super().endpoints()
        return {
            **own,
            "/openai/deployments/scripted/chat/completions": own["/v1/chat/completions"],
            "/openai/responses": own["/v1/responses"],
        }


#: Bytes of one request, whatever the style.
PARTS = {"system": 8, "user": 2, "tools": 0, "assistant": 0, "tool_arguments": 2, "tool_results": 3000}


@pytest.mark.parametrize("major", ["openai-2", "openai-agents"])
def test_each_style_is_one_request(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest, major: str
) -> None:
    with AzureServer(lambda _: json.dumps({"text": "done"})) as server:
        code = PROGRAM.format(root=str(request.config.rootpath), base_url=server.base_url, azure_url=server.url)
        done = environment(major).run(code, env={"AGENT_OTEL": "1"}, check=True)
        sent = len(server.requests)
    report: dict[str, Any] = json.loads(done.stdout)
    assert (report["errors"], report["messages"]) == ({}, [])
    assert sent == len(report["found"]) == 4 * 14
    for style, metrics in report["found"].items():
        sizes = {
            metric["attributes"]["part"]: (metric["count"], metric["sum"])
            for metric in metrics
            if metric["name"] == "agent_otel.model.request.size"
        }
        assert sizes == {part: (1, part_bytes) for part, part_bytes in PARTS.items()}, style
        delivered = [metric["sum"] for metric in metrics if metric["name"] == "agent_otel.tool.result.delivered"]
        assert delivered == [3000], style
