"""Requests that providers refuse, through their SDKs: the reason, the tool and the call, on the request's span."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.anthropic import AnthropicServer, BedrockServer
from agent_otel.testing.servers.openai import CohereServer, OpenAIServer
from agent_otel.testing.servers.providers import GeminiServerWithIds
from agent_otel.testing.servers.scripted import RefusedError
from tests.contract.model_sdks.spans import IN_MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.replies import Json, Reply
    from agent_otel.testing.servers.scripted import ScriptedServer
    from tests.environments import Environment

_BEGIN = (
    IN_MEMORY
    + """

RESULT = "row " * 500
"""
)
_END = """
tracer = trace.get_tracer("program")
for kind in sys.argv[2:]:
    with tracer.start_as_current_span("program " + kind):
        try:
            ask(kind)
        except Exception as error:
            pass
        else:
            assert "stream" in kind
shown = {}
for span in spans.get_finished_spans():
    found = {key.removeprefix("agent_otel."): value for key, value in span.attributes.items()}
    if "rejected.reason" in found:
        names = ("rejected.reason", "rejected.tool", "rejected.call_id", "context.largest_tool_bytes")
        shown[span.name.removeprefix("program ")] = [found.get(name) for name in names]
counts = {}
for family in prometheus_client.REGISTRY.collect():
    for sample in family.samples:
        if sample.name == "agent_otel_model_requests_rejected_total":
            counts[sample.labels["reason"]] = counts.get(sample.labels["reason"], 0) + sample.value
assert errors.errors == {}, errors.errors
print(json.dumps([shown, counts]))
"""
_OPENAI_MESSAGES = """
def history(kind):
    calls = [{"id": "call-1", "type": "function", "function": {"name": "search", "arguments": "{}"}}]
    asked, told = {"role": "assistant", "content": None, "tool_calls": calls}, {
        "role": "tool", "tool_call_id": "call-1", "content": RESULT}
    user = {"role": "user", "content": kind}
    return [user, *({"orphan": [told], "call": [asked]}.get(kind, [asked, told]))]
"""
_OPENAI = f"""
import openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="scripted", max_retries=0)
{_OPENAI_MESSAGES}
def ask(kind):
    if kind.endswith("stream"):
        list(client.chat.completions.create(model="m", messages=history(kind), stream=True))
    else:
        client.chat.completions.create(model="m", messages=history(kind))
"""
_RESPONSES = """
import openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="scripted", max_retries=0)
def ask(kind):
    asked = {"type": "function_call", "call_id": "call-1", "name": "search", "arguments": "{}"}
    told = {"type": "function_call_output", "call_id": "call-1", "output": RESULT}
    user = {"role": "user", "content": kind}
    items = [user, *({"orphan": [told], "call": [asked]}.get(kind, [asked, told]))]
    if kind.endswith("stream"):
        list(client.responses.create(model="m", input=items, stream=True))
    else:
        client.responses.create(model="m", input=items)
"""
_ANTHROPIC = """
import anthropic
client = anthropic.Anthropic(base_url=sys.argv[1], api_key="scripted", max_retries=0)
def ask(kind):
    asked = {"role": "assistant", "content": [{"type": "tool_use", "id": "call-1", "name": "search", "input": {}}]}
    told = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call-1", "content": RESULT}]}
    user = {"role": "user", "content": kind}
    messages = [user, *({"orphan": [told], "call": [asked]}.get(kind, [asked, told]))]
    if kind.endswith("stream"):
        list(client.messages.create(model="m", max_tokens=9, messages=messages, stream=True))
    else:
        client.messages.create(model="m", max_tokens=9, messages=messages)
"""
_GEMINI = """
from google import genai
client = genai.Client(api_key="scripted", http_options={"base_url": sys.argv[1]})
def ask(kind):
    asked = {"role": "model", "parts": [{"function_call": {"id": "call-1", "name": "search", "args": {}}}]}
    answer = {"id": "call-1", "name": "search", "response": {"result": RESULT}}
    told = {"role": "user", "parts": [{"function_response": answer}]}
    user = {"role": "user", "parts": [{"text": kind}]}
    contents = [user, *({"orphan": [told], "call": [asked]}.get(kind, [asked, told]))]
    client.models.generate_content(model="m", contents=contents)
"""
_BEDROCK = """
import boto3, botocore.config
once = botocore.config.Config(retries={"total_max_attempts": 1})
client = boto3.client("bedrock-runtime", endpoint_url=sys.argv[1], region_name="us-east-1", config=once,
    aws_access_key_id="scripted", aws_secret_access_key="scripted")
def ask(kind):
    asked = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "call-1", "name": "search", "input": {}}}]}
    told = {"role": "user", "content": [{"toolResult": {"toolUseId": "call-1", "content": [{"text": RESULT}]}}]}
    user = {"role": "user", "content": [{"text": kind}]}
    client.converse(modelId="m", messages=[user, *({"orphan": [told], "call": [asked]}.get(kind, [asked, told]))])
"""
_MISTRAL = f"""
try:
    from mistralai.client import Mistral
except ImportError:
    from mistralai import Mistral
client = Mistral(api_key="scripted", server_url=sys.argv[1].removesuffix("/v1"))
{_OPENAI_MESSAGES}
def ask(kind):
    client.chat.complete(model="m", messages=history(kind))
"""
_COHERE = f"""
import cohere
client = cohere.ClientV2("scripted", base_url=sys.argv[1])
{_OPENAI_MESSAGES}
def ask(kind):
    client.chat(model="m", messages=[{{k: v for k, v in one.items() if v is not None}} for one in history(kind)])
"""
_AZURE = f"""
from azure.ai.inference import ChatCompletionsClient
from azure.core.credentials import AzureKeyCredential
client = ChatCompletionsClient(sys.argv[1], AzureKeyCredential("scripted"), retry_total=0)
{_OPENAI_MESSAGES}
def ask(kind):
    client.complete(model="m", messages=history(kind))
"""
_LITELLM = f"""
import litellm
{_OPENAI_MESSAGES}
def ask(kind):
    litellm.completion("openai/m", messages=history(kind), api_base=sys.argv[1], api_key="scripted", num_retries=0,
        max_retries=0)
"""

HTML = "<html><head><title>413 Request Entity Too Large</title></head></html>"
_ORPHAN = "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
_CALL = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The "
    "following tool_call_ids did not have response messages: call-1"
)
_TOO_LONG = "This model's maximum context length is 128000 tokens."


def _openai(message: str, code: str | None = None) -> Json:
    return {"error": {"message": message, "type": "invalid_request_error", "param": "messages", "code": code}}


def _anthropic(message: str) -> Json:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


def _gemini(message: str) -> Json:
    return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}


def _streamed(*events: Json) -> str:
    return "".join(f"event: {event.get('type', 'error')}\ndata: {json.dumps(event)}\n\n" for event in events)


_FAILED = {"type": "response.failed", "response": {"error": {"code": "context_length_exceeded", "message": "too long"}}}
#: Environment, program, server, and the bodies of the refusals by kind; ``html`` is a proxy's page with 413.
ROWS: dict[str, tuple[str, str, type[ScriptedServer], dict[str, Any]]] = {
    "openai": (
        *("openai-agents", _OPENAI, OpenAIServer),
        {
            "orphan": _openai(_ORPHAN),
            "call": _openai(_CALL),
            "window": _openai("too long", "context_length_exceeded"),
            "window stream": f"data: {json.dumps(_openai('too long', 'context_length_exceeded'))}\n\n",
        },
    ),
    "responses": (
        *("openai-agents", _RESPONSES, OpenAIServer),
        {
            "orphan": _openai("No tool call found for function call output with call_id call-1."),
            "call": _openai("No tool output found for function call call-1."),
            "window": _openai("too long", "context_length_exceeded"),
            "window stream": _streamed(_FAILED),
        },
    ),
    "anthropic": (
        *("anthropic", _ANTHROPIC, AnthropicServer),
        {
            "orphan": _anthropic("unexpected `tool_use_id` found in `tool_result` blocks: call-1."),
            "call": _anthropic("messages.1: `tool_use` ids were found without `tool_result` blocks: call-1."),
            "window": _anthropic("prompt is too long: 213462 tokens > 200000 maximum"),
            "window stream": _streamed(_anthropic("prompt is too long: 213462 tokens > 200000 maximum")),
        },
    ),
    "gemini": (
        *("google-genai", _GEMINI, GeminiServerWithIds),
        {
            "orphan": _gemini(
                "Please ensure that function response turn comes immediately after a function call turn."
            ),
            "call": _gemini("The number of function response parts is not equal to the number of calls."),
            "window": _gemini("The input token count exceeds the maximum number of tokens allowed (1048576)."),
        },
    ),
    "bedrock": (
        *("bedrock", _BEDROCK, BedrockServer),
        {
            "orphan": {"message": "The number of toolResult blocks exceeds the number of toolUse blocks."},
            "call": {"message": "Expected toolResult blocks at messages.2.content for the following Ids: call-1"},
            "window": {"message": "Input is too long for requested model."},
        },
    ),
    "mistral": (
        *("mistralai", _MISTRAL, OpenAIServer),
        {
            "orphan": {"object": "error", "message": "Unexpected role 'tool' after role 'user'", "code": "3230"},
            "call": {
                "object": "error",
                "message": "Not the same number of function calls and responses",
                "code": "3230",
            },
            "window": {"object": "error", "message": "too large for model with 32768 maximum context length"},
        },
    ),
    "cohere": (
        *("cohere", _COHERE, CohereServer),
        {
            "orphan": {"message": "invalid request: tool call id call-1 not found in previous tool calls"},
            "call": {"message": "invalid request: tool call without a matching tool result"},
            "window": {"message": "too many tokens: size limit exceeded by 11326 tokens."},
        },
    ),
    "azure": (
        *("azure-inference", _AZURE, OpenAIServer),
        {"orphan": _openai(_ORPHAN), "call": _openai(_CALL), "window": _openai(_TOO_LONG)},  # vLLM's words
    ),
    "litellm": (
        *("litellm", _LITELLM, OpenAIServer),
        {"orphan": _openai(_ORPHAN), "call": _openai(_CALL), "window": _openai(_TOO_LONG)},
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_refusal_names_its_reason_its_tool_and_its_call(environment: Callable[[str], Environment], name: str) -> None:
    env, program, server, bodies = ROWS[name]

    def reply(request: Json) -> Reply:
        kind = request["messages"][0]["content"] if "messages" in request else request["input"][0]["content"]
        if kind == "html":
            raise RefusedError(413, body=HTML)
        raise RefusedError(
            200 if kind.endswith("stream") else 400, {"x-amzn-errortype": "ValidationException"}, bodies[kind]
        )

    with server(reply) as model:
        done = environment(env).run(
            _BEGIN + program + _END,
            model.base_url,
            *bodies,
            "html",
            env={"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus"},
            check=True,
        )
    shown, counts = json.loads(done.stdout.splitlines()[-1])
    windows = [kind for kind in bodies if kind.startswith("window")]
    assert {
        "orphan": ["result_without_call", "search" if name == "gemini" else None, "call-1", shown["orphan"][3]],
        "call": ["call_without_result", "search", "call-1", None],
        "html": ["too_large", "search", "call-1", shown["html"][3]],
        **{kind: ["context", "search", "call-1", shown[kind][3]] for kind in windows},
    } == shown
    assert all(shown[kind][3] >= 2000 for kind in ("html", *windows))
    assert {"result_without_call": 1, "call_without_result": 1, "too_large": 1, "context": len(windows)} == counts
