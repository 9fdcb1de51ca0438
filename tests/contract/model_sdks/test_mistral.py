"""Mistral's client, in both forms of its package."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

import pytest

from tests.contract.composition import Client
from tests.servers.mistral import MistralServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment


STYLES = """
import asyncio, json, sys
sys.path.insert(0, {root!r})
from tests.contract.child import Telemetry
telemetry = Telemetry()
try:
    from mistralai.client import Mistral
except ImportError:
    from mistralai import Mistral
import agent_otel, pydantic

class Answer(pydantic.BaseModel):
    text: str

run = asyncio.new_event_loop().run_until_complete
client = Mistral(api_key="scripted", server_url={base_url!r})
call = {{"id": "call_1", "function": {{"name": "search", "arguments": "{{}}"}}}}
given = dict(messages=[
    {{"role": "system", "content": "Be kind."}},
    {{"role": "user", "content": [{{"type": "text", "text": "go"}}]}},
    {{"role": "assistant", "tool_calls": [call]}},
    {{"role": "tool", "tool_call_id": "call_1", "content": [{{"type": "text", "text": "x" * 3000}}]}},
])

async def streamed():
    async for _ in await client.chat.stream_async(model="m", **given):
        pass

styles = [
    lambda: client.chat.complete(model="m", **given),
    lambda: run(client.chat.complete_async(model="m", **given)),
    lambda: list(client.chat.stream(model="m", **given)),
    lambda: run(streamed()),
    lambda: client.chat.parse(Answer, model="m", **given),
    lambda: client.agents.complete(agent_id="a", messages=given["messages"][1:]),
    lambda: client.beta.conversations.start(model="m", inputs="go", instructions="Be kind."),
    lambda: client.beta.conversations.append(conversation_id="conv_1", inputs=[
        {{"type": "function.result", "tool_call_id": "call_1", "result": "x" * 3000}}]),
]
found = []
for number, style in enumerate(styles):
    telemetry.metrics()
    with agent_otel.execution(f"run {{number}}"):
        with agent_otel.tool_call("search", {{}}, call_id="call_1") as measured:
            measured.result("x" * 3000)
        style()
    found.append(telemetry.metrics())
from agent_otel._internal import errors
assert not errors.errors, errors.errors
print(json.dumps(found))
"""


@pytest.mark.parametrize("major", ["mistralai-1", "mistralai"])
def test_each_style_is_one_request(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest, major: str
) -> None:
    with MistralServer(lambda _: json.dumps({"text": "done"})) as server:
        code = STYLES.format(root=str(request.config.rootpath), base_url=server.base_url)
        done = environment(major).run(code, env={"AGENT_OTEL": "1"}, check=True)
        assert len(server.requests) == 8
    whole = (8, 2, 2, 3000)
    names = ("system", "user", "tool_arguments", "tool_results")
    expected = [whole, whole, whole, whole, whole, (0, 2, 2, 3000), (8, 2, 0, 0), (0, 0, 0, 3000)]
    for metrics, sizes in zip(json.loads(done.stdout), expected, strict=True):
        found = {
            metric["attributes"]["part"]: (metric["count"], metric["sum"])
            for metric in metrics
            if metric["name"] == "agent_otel.model.request.size"
        }
        assert [found[name] for name in names] == [(1, size) for size in sizes]
        delivered = [metric["sum"] for metric in metrics if metric["name"] == "agent_otel.tool.result.delivered"]
        assert sum(delivered) == sizes[-1]


class TestMistral(Client):
    """mistralai 3, a namespace package."""

    agent = "mistral_client"
    environment = "mistralai"
    server = MistralServer
    integrations: ClassVar = {
        "mistralai": [
            "mistralai.client.basesdk:BaseSDK._build_request",
            "mistralai.client.chat:Chat.complete",
            "mistralai.client.utils.retries:_get_sleep_interval",
        ],
    }


class TestMistral1(TestMistral):
    """mistralai 1."""

    environment = "mistralai-1"
    integrations: ClassVar = {
        "mistralai": [
            "mistralai.basesdk:BaseSDK._build_request",
            "mistralai.chat:Chat.complete",
            "mistralai.utils.retries:_get_sleep_interval",
        ],
    }


del Client
