"""Requests in the shapes of Anthropic, Google and Bedrock that are strange, or look like cuts and are none."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.anthropic import AnthropicServer, BedrockServer
from agent_otel.testing.servers.providers import GeminiServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.scripted import ScriptedServer
    from tests.forks import Forks

Json = dict[str, Any]

BEGIN = """
def tool(call_id, result, name="search"):
    with agent_otel.tool_call(name, {}, call_id=call_id) as call:
        return call.result(result)

TEXT = "".join(f"line {n}" + chr(10) for n in range(3000))  # one character in nine is escaped in JSON
TABLE = {"rows": [{"id": n} for n in range(3000)]}  # more than is walked through
refused = 0
"""
PROGRAM = """
client = connect({base_url!r})
with agent_otel.execution("run"):
{body}
report = refused
"""

#: What the programs of a provider begin with as well; the first client loads what the others need.
ANTHROPIC = """
import anthropic
def connect(base_url):
    return anthropic.Anthropic(base_url=base_url, api_key="scripted", max_retries=0)
client = connect("http://localhost")
client.messages, client.beta.messages
def say(*messages, **more):
    global refused
    try:
        client.messages.create(model="scripted", max_tokens=9, messages=list(messages), **more)
    except Exception:
        refused += 1
def send(*blocks):
    say({"role": "user", "content": list(blocks)})
def answer(call_id, content):
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}
"""

GOOGLE = """
from google import genai
from google.genai import types
def connect(base_url):
    return genai.Client(api_key="scripted", http_options={"base_url": base_url})
client = connect("http://localhost")
def send(*parts, **more):
    global refused
    try:
        contents = [types.Content(role="user", parts=list(parts))]
        client.models.generate_content(model="gemini-scripted", contents=contents, config=more or None)
    except Exception:
        refused += 1
def answer(call_id, response, name="search", parts=None):
    response = types.FunctionResponse(id=call_id, name=name, response=response, parts=parts)
    return types.Part(function_response=response)
types.Content(parts=[answer(None, {})]), types.GenerateContentResponse()
"""

BEDROCK = """
import boto3
def connect(base_url):
    keys = {"aws_access_key_id": "scripted", "aws_secret_access_key": "scripted"}
    return boto3.client("bedrock-runtime", endpoint_url=base_url, region_name="us-east-1", **keys)
client = connect("http://localhost")
def send(*blocks, **more):
    global refused
    try:
        client.converse(modelId="scripted", messages=[{"role": "user", "content": list(blocks)}], **more)
    except Exception:
        refused += 1
def answer(call_id, *content, **more):
    return {"toolResult": {"toolUseId": call_id, "content": list(content), **more}}
"""

PROVIDERS: dict[str, tuple[str, str, type[ScriptedServer]]] = {
    "anthropic": ("anthropic", ANTHROPIC, AnthropicServer),
    "anthropic-0.125": ("anthropic-0.125", ANTHROPIC, AnthropicServer),
    "google": ("google-genai", GOOGLE, GeminiServer),
    "bedrock": ("bedrock", BEDROCK, BedrockServer),
}


@pytest.fixture
def told(forks: Forks) -> Callable[..., Json]:
    """Return a function from a provider, a program and what it logs, to what it emitted."""

    def run(provider: str, body: str, *messages: str) -> Json:
        name, setup, kind = PROVIDERS[provider]
        body = textwrap.indent(textwrap.dedent(body), "    ")
        with kind(lambda _: "done") as server:
            program = PROGRAM.format(base_url=server.base_url, body=body)
            report: Json = forks.measure(name, BEGIN + setup, program)
        assert report["errors"] == {}
        assert report["messages"] == list(messages)
        return report

    return run


#: Strange requests that the server refuses, with 400.
REFUSED = {
    "say({'role': 'oracle', 'content': 'x'}, {'content': 'no role'}, {'role': 'user'})": (
        "The provider of scripted refused a request: other. Further ones are only counted."
    ),
    "send(types.Part(text='a', thought=True), answer('nobody', None), answer(None, {}, name=None))": (
        "The provider of gemini-scripted refused a request: result_without_call (search, nobody). "
        "Further ones are only counted."
    ),
}


def counted(report: Json, name: str) -> float:
    """What a metric counted in all."""
    return float(sum(metric["sum"] for metric in report["metrics"] if metric["name"] == f"agent_otel.{name}"))


@pytest.mark.parametrize(
    ("provider", "sent"),
    [
        ("anthropic", "answer('call_1', [{'type': 'text', 'text': tool('call_1', TEXT)}])"),
        ("anthropic", "answer('call_1', ({'type': 'text', 'text': t} for t in [tool('call_1', TEXT)]))"),
        ("google", "answer('call_1', tool('call_1', {'result': TEXT}))"),
        ("google", "answer(None, tool(None, {'result': TEXT}))"),
        ("google", "answer('call_1', {'output': tool('call_1', TEXT)})"),
        ("google", "answer('call_1', tool('call_1', TABLE))"),
        ("google", "answer('call_1', json.loads(tool('call_1', json.dumps(TABLE))))"),
        ("google", "answer('call_1', {'answer': tool('call_1', TEXT), 'status': 'ok'})"),
        ("bedrock", "answer('call_1', {'text': tool('call_1', TEXT)})"),
        ("bedrock", "answer('call_1', {'json': tool('call_1', TABLE)})"),
        ("bedrock", "answer('call_1', {'json': json.loads(tool('call_1', json.dumps(TABLE)))})"),
        ("bedrock", "answer('call_1', {'text': tool('call_1', TEXT)[:9000]}, {'text': TEXT[9000:]}, status='error')"),
    ],
)
def test_a_result_in_another_form_is_no_cut(told: Callable[..., Json], provider: str, sent: str) -> None:
    report = told(provider, f"part = {sent}\nfor turn in range(2):\n    send(part)")
    assert report["report"] == 0
    assert counted(report, "tool.results.truncated") == 0


@pytest.mark.parametrize(
    ("provider", "sent"),
    [
        ("anthropic", "answer('call_1', tool('call_1', TEXT)[:900])"),
        ("google", "answer('call_1', {'result': tool('call_1', {'result': TEXT})['result'][:900]})"),
        ("google", "answer(None, {'result': tool(None, TEXT)[:900]})"),
        ("bedrock", "answer('call_1', {'text': tool('call_1', TEXT)[:900]})"),
    ],
)
def test_a_cut_in_these_forms_is_found_once(told: Callable[..., Json], provider: str, sent: str) -> None:
    report = told(provider, f"part = {sent}\nfor turn in range(2):\n    send(part)")
    assert counted(report, "tool.results.truncated") == 1
    assert counted(report, "tool.result.delivered") == 900


@pytest.mark.parametrize(
    ("provider", "body", "requests"),
    [
        ("anthropic", "send({'type': 'hologram', 'beam': [1, 2]}, {'no': 'type'})", 1),
        (
            "anthropic",
            "send({'type': 'tool_result', 'content': 'no id'}, {'type': 'tool_result', 'tool_use_id': 5})",
            1,
        ),
        ("anthropic", "say({'role': 'oracle', 'content': 'x'}, {'content': 'no role'}, {'role': 'user'})", 1),
        ("anthropic", "say({'role': 'user', 'content': 'x'}, system=[{'type': 'text', 'text': 'y'}], tools=[])", 1),
        (
            "anthropic",
            """
            send({'type': 'image', 'source': {'type': 'base64', 'media_type': 'image/png', 'data': 'A' * 9000}})
            say({'role': 'assistant', 'content': [
                {'type': 'server_tool_use', 'id': 's', 'name': 'web_search', 'input': {}},
                {'type': 'web_search_tool_result', 'tool_use_id': 's', 'content': [{'type': 'web_search_result'}]},
                {'type': 'thinking', 'thinking': 'hm', 'signature': 'x'},
            ]}, {'role': 'user', 'content': [answer('nobody', 'without a call')]})
            """,
            2,
        ),
        ("anthropic", "client.messages.count_tokens(model='m', messages=[])", None),
        ("google", "send(types.Part.from_bytes(data=bytes(9000), mime_type='image/png'))", 1),
        ("google", "send(types.Part(text='a', thought=True), answer('nobody', None), answer(None, {}, name=None))", 1),
        ("google", "send(answer(None, {'error': 'x'}), answer(None, {'result': None}), cached_content='caches/1')", 1),
        ("bedrock", "send({'image': {'format': 'png', 'source': {'bytes': bytes(9000)}}}, {'text': 'x'})", 1),
        ("bedrock", "send({'hologram': {}}, 'no block', answer(5, 'x'), {'toolUse': None})", 1),
        ("bedrock", "send(answer('nobody', {'text': 'x'}), answer('', {'image': {}}), system='no list')", 1),
    ],
)
def test_strange_requests_are_no_failure_and_no_cut(
    told: Callable[..., Json], provider: str, body: str, requests: int | None
) -> None:
    said = (REFUSED[body],) if body in REFUSED else ()
    if requests is None:
        body = f"try:\n    {body}\nexcept Exception:\n    refused += 1"
    report = told(provider, f"for turn in range(2):\n{textwrap.indent(textwrap.dedent(body), '    ')}", *said)
    assert counted(report, "tool.results.truncated") == 0
    sizes = [metric for metric in report["metrics"] if metric["name"] == "agent_otel.model.request.size"]
    assert sum(metric["count"] for metric in sizes) == 2 * 6 * (requests or 0)


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        (
            "anthropic",
            """
            last = client.beta.messages.create(model="scripted", max_tokens=9, messages=[user("one")],
                                               thread={"type": "create"})
            for text in ("two", "three"):
                last = client.beta.messages.create(model="scripted", max_tokens=9, messages=[user(text)],
                                                   thread={"type": "continue", "previous_message_id": last.id})
            """,
        ),
        (
            "google",
            """
            for text in ("one", "two"):
                send(types.Part(text=text), cached_content="caches/1")
            """,
        ),
    ],
)
def test_state_that_the_provider_keeps_is_no_loss(told: Callable[..., Json], provider: str, body: str) -> None:
    body = "def user(text): return {'role': 'user', 'content': text}\n" + textwrap.dedent(body)
    assert counted(told(provider, body), "model.history.lost") == 0


@pytest.mark.parametrize("major", ["anthropic", "anthropic-0.125"])
def test_a_stream_that_is_abandoned_was_a_request(told: Callable[..., Json], major: str) -> None:
    report = told(
        major,
        """
        message = {"role": "user", "content": [answer("call_1", tool("call_1", TEXT))]}
        with client.messages.stream(model="scripted", max_tokens=9, messages=[message]) as stream:
            next(iter(stream))
        """,
    )
    assert counted(report, "tool.result.delivered") == len("".join(f"line {n}\n" for n in range(3000)))
    assert counted(report, "tool.results.truncated") == 0
