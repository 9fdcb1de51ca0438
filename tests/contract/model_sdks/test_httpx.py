"""Programs that post their model requests themselves, with httpx or httpx2."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

import pytest

from agent_otel.testing.servers.openai import OpenAIServer
from agent_otel.testing.servers.scripted import RefusedError
from tests.contract.composition import Client

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Json, Reply
    from tests.environments import Environment


class TestHttpx(Client):
    """httpx 0.28."""

    agent = "httpx_client"
    environment = "httpx"
    integrations: ClassVar = {"httpx": ["httpx._client:Client.send"]}
    variables: ClassVar = {"AGENT_OTEL_HTTPX": "1"}


class TestHttpx2(TestHttpx):
    """httpx2 2.16."""

    environment = "openai-agents"
    integrations: ClassVar = {"httpx2": ["httpx2._client:Client.send"]}


#: Status and body of an error -> the reason of the refusal, which an SDK's error would have as well.
REFUSALS = {
    "code": (400, {"error": {"message": "too long", "code": "context_length_exceeded"}}, "context"),
    "text": (413, {"error": {"message": "prompt is too long: 213462 tokens > 200000 maximum"}}, "context"),
    "rate": (429, {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, None),
    "schema": (400, {"error": {"message": "Invalid schema for function"}}, "other"),
    "server": (500, {"error": {"message": "maximum context length"}}, None),
}
_PROGRAM = """
import asyncio, json, sys
try:
    import httpx
except ImportError:
    import httpx2 as httpx
import prometheus_client
from agent_otel._internal import errors

url = sys.argv[1] + "/chat/completions"
read = []

def asked(name, way):
    return {"model": way, "messages": [{"role": "user", "content": name}]}

def whole(name, client):
    read.append(client.post(url, json=asked(name, "whole")).json())

def streamed(name, client):
    with client.stream("POST", url, json=asked(name, "streamed")) as response:
        read.append(json.loads(response.read()))

def iterated(name, client):
    with client.stream("POST", url, json=asked(name, "iterated")) as response:
        read.append(json.loads("".join(response.iter_text())))

def raised(name, client):
    try:
        client.post(url, json=asked(name, "raised")).raise_for_status()
    except httpx.HTTPStatusError as error:
        read.append(error.response.json())

async def later(name):
    async with httpx.AsyncClient() as client:
        read.append((await client.post(url, json=asked(name, "later"))).json())
        async with client.stream("POST", url, json=asked(name, "later")) as response:
            read.append(json.loads(await response.aread()))

with httpx.Client() as client:
    for name in sys.argv[2:]:
        for way in (whole, streamed, iterated, raised):
            way(name, client)
        asyncio.run(later(name))
counts = {}
for family in prometheus_client.REGISTRY.collect():
    for sample in family.samples:
        if sample.name == "agent_otel_model_requests_rejected_total":
            counts[f"{sample.labels['gen_ai_request_model']} {sample.labels['reason']}"] = sample.value
print(json.dumps([read, counts, dict(errors.errors)]))
"""


@pytest.mark.parametrize("name", ["httpx", "openai-agents"])
def test_a_refusal_is_counted_by_its_reason(environment: Callable[[str], Environment], name: str) -> None:
    """The client raises nothing for it; the program gets the response as it came, whole or in pieces."""

    def reply(request: Json) -> Reply:
        status, body, _ = REFUSALS[request["messages"][0]["content"]]
        raise RefusedError(status, body=body)

    with OpenAIServer(reply) as model:
        done = environment(name).run(
            _PROGRAM,
            model.base_url,
            *REFUSALS,
            env={"AGENT_OTEL": "1", "AGENT_OTEL_HTTPX": "1", "AGENT_OTEL_METRICS": "prometheus"},
            check=True,
        )
    read, counts, errors = json.loads(done.stdout.splitlines()[-1])
    assert errors == {}
    assert read == [body for _, body, _ in REFUSALS.values() for _ in range(6)]
    reasons = [reason for _, _, reason in REFUSALS.values() if reason]
    ways = {"whole": 1, "streamed": 1, "iterated": 1, "raised": 1, "later": 2}
    assert counts == {
        f"{way} {reason}": times * reasons.count(reason) for way, times in ways.items() for reason in reasons
    }


_PIECES = """
import json, sys
import httpx
import prometheus_client
from agent_otel._internal import errors

PIECE, PIECES = 1024, 40
USAGE = {"prompt_tokens": 7, "completion_tokens": 2}

def answered(request):
    asked = json.loads(request.content)
    answer = {"choices": [{"message": {"role": "assistant", "content": "x" * (PIECE * PIECES)}}], "usage": USAGE}
    body, kind = json.dumps(answer).encode(), "application/json"
    if asked["model"] == "events":
        body, kind = b"data: " + body + b"\\n\\ndata: [DONE]\\n\\n", "text/event-stream"
    pieces = (body[at : at + PIECE] for at in range(0, len(body), PIECE))
    return httpx.Response(200, headers={"content-type": kind}, content=pieces)

with httpx.Client(transport=httpx.MockTransport(answered)) as client:
    for model in ("text", "events"):
        asked = {"model": model, "messages": [{"role": "user", "content": "go"}]}
        with client.stream("POST", "http://model/chat/completions", json=asked) as response:
            for _ in response.iter_bytes():
                pass
counts = {
    sample.labels["gen_ai_request_model"]: sample.value
    for family in prometheus_client.REGISTRY.collect()
    for sample in family.samples
    if sample.name == "agent_otel_tool_context_tokens_total"
}
print(json.dumps([counts, dict(errors.errors)]))
"""


def test_a_text_and_an_event_in_many_pieces_are_read(environment: Callable[[str], Environment]) -> None:
    done = environment("httpx").run(
        _PIECES, env={"AGENT_OTEL": "1", "AGENT_OTEL_HTTPX": "1", "AGENT_OTEL_METRICS": "prometheus"}, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [{"text": 7, "events": 7}, {}]


del Client
