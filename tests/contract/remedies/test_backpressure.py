"""Backpressure through frameworks and SDKs, against servers that refuse requests for their rate."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from agent_otel.remedies.history.request_rewriter import NOTE
from agent_otel.testing.servers.anthropic import AnthropicServer, BedrockServer
from agent_otel.testing.servers.openai import CohereServer, OpenAIServer, ToolCall
from agent_otel.testing.servers.providers import GeminiServer
from agent_otel.testing.servers.replies import usage
from agent_otel.testing.servers.scripted import RefusedError
from tests.contract.suite import QUIET
from tests.servers.mistral import MistralServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Json, Reply
    from agent_otel.testing.servers.scripted import ScriptedServer
    from tests.environments import Environment

PER_MINUTE = 60_000
ON = {**QUIET, "AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus", "AGENT_OTEL_TOKENS_PER_MINUTE": str(PER_MINUTE)}
_BEGIN = """
import asyncio, json, sys, time
import prometheus_client
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
report = {}
"""
_END = """
from agent_otel._internal import errors

assert errors.errors == {}, errors.errors
waits = {}
for family in prometheus_client.REGISTRY.collect():
    for sample in family.samples:
        if sample.name in ("agent_otel_backpressure_wait_seconds_count", "agent_otel_backpressure_wait_seconds_sum"):
            waits.setdefault(sample.labels["reason"], {})[sample.name.rpartition("_")[2]] = sample.value
events = [
    [span.name, event.name, dict(event.attributes)]
    for span in exporter.get_finished_spans() for event in span.events
]
print(json.dumps({**report, "waits": waits, "events": events, "warnings": errors.warnings()}))
"""
_AGENT = """
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware
from langchain_openai import ChatOpenAI

ran = []

def fetch(key: str) -> str:
    'Fetch a record.'
    ran.append(time.monotonic())
    return "found"

model = ChatOpenAI(model="scripted", base_url=sys.argv[1], api_key="scripted", max_retries=0)
retry = ModelRetryMiddleware(max_retries=1, initial_delay=0, backoff_factor=0, jitter=False)
agent = create_agent(model, [fetch], middleware=[retry])

async def main():
    return [await agent.ainvoke(messages) for messages in prompts]

prompts = [{"messages": [{"role": "user", "content": prompt}]} for prompt in sys.argv[3:]]
began = time.monotonic()
done = asyncio.run(main()) if sys.argv[2] == "async" else [agent.invoke(messages) for messages in prompts]
report["said"] = [state["messages"][-1].content for state in done]
report["ran"] = [at - began for at in ran]
"""


def run(environment: Environment, program: str, *arguments: str, **env: str) -> Json:
    """Run a program with backpressure on; return what it reports."""
    done = environment.run(_BEGIN + program + _END, *arguments, env={**ON, **env}, check=True)
    report: Json = json.loads(done.stdout.splitlines()[-1])
    return report


@pytest.mark.shows("000.backpressure")
def test_a_tool_call_waits_for_the_tokens_of_the_next_request(environment: Callable[[str], Environment]) -> None:
    def decide(_: Json) -> Reply:
        return "done" if server.tool_results() else [ToolCall("call_1", "fetch", '{"key": "k"}')]

    with OpenAIServer(decide) as server:
        # Each request takes more than half of a minute's tokens: the budget has too few for a second one.
        report = run(environment("langchain"), _AGENT, server.base_url, "async", "four" * 30_150)
        first, _ = server.requests
        read, wrote = usage(first, [ToolCall("call_1", "fetch", '{"key": "k"}')])
    assert report["said"] == ["done"]
    missing = 2 * read + wrote - PER_MINUTE
    assert missing > 0
    assert report["ran"][0] >= missing / (PER_MINUTE / 60)
    [[span, _, attributes]] = [event for event in report["events"] if event[0].startswith("execute_tool")]
    assert (span, attributes["reason"]) == ("execute_tool fetch", "tokens")
    assert 0 < attributes["wait.seconds"] <= report["waits"]["tokens"]["sum"]
    assert [text for text in report["warnings"] if "AGENT_OTEL_TOKENS_PER_MINUTE=60000" in text] != []


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.shows("000.backpressure")
def test_the_whole_process_waits_as_long_as_a_refusal_demands(
    environment: Callable[[str], Environment], mode: str
) -> None:
    arrived: list[float] = []

    def decide(request: Json) -> Reply:
        arrived.append(time.monotonic())
        if len(arrived) in (2, 4):  # the second request of the first run, and the first one of the second
            raise RefusedError(headers={"retry-after": "1"})
        return "done" if request["messages"][-1]["role"] == "tool" else [ToolCall("call_1", "fetch", '{"key": "k"}')]

    with OpenAIServer(decide) as server:
        report = run(environment("langchain"), _AGENT, server.base_url, mode, "first", "second")
    assert report["said"] == ["done", "done"]
    assert len(arrived) == 6
    assert arrived[2] - arrived[1] >= 1
    assert arrived[4] - arrived[3] >= 1
    # A retry that a busy machine makes a second late has nothing left to wait for, so that there are two waits at most.
    assert report["waits"].get("rate_limit", {"count": 0})["count"] <= 2
    assert "tokens" not in report["waits"]
    assert [text for text in report["warnings"] if "scripted for its rate" in text and "1 s" in text] != []


def test_an_execution_without_tokens_left_ends_with_an_answer(environment: Callable[[str], Environment]) -> None:
    limit = 1_000

    def decide(request: Json) -> Reply:
        number = len(server.requests)
        if request.get("tool_choice") == "none" or number > 20:
            return "done"
        return [ToolCall(f"call_{number}", "fetch", json.dumps({"key": f"k{number}"}))]

    with OpenAIServer(decide) as server:
        env = {"AGENT_OTEL_EXECUTION_TOKENS": str(limit)}
        report = run(environment("langchain"), _AGENT, server.base_url, "sync", "go " * 400, **env)
        used, begun = 0, 0
        for number, request in enumerate(server.requests, 1):
            read, wrote = usage(request, [ToolCall(f"call_{number}", "fetch", json.dumps({"key": f"k{number}"}))])
            used += read + wrote
            begun += used < limit
    assert report["said"] == ["done"]
    assert 0 < begun == len(report["ran"])
    assert [NOTE in json.dumps(request) for request in server.requests] == [False] * (begun + 1) + [True]
    [answer] = [json.loads(text) for text in server.tool_results().values() if "limit_reached" in text]
    assert (answer["limit"], answer["maximum"]) == ("execution_tokens", limit)
    skipped = [attributes for _, name, attributes in report["events"] if name == "tool_call"]
    assert skipped == [{"phase": "skipped", "limit": "execution_tokens"}]


class Sdk(NamedTuple):
    """An SDK: its environment, its provider's server, a program that sends requests, and how it is refused.

    ``send`` of the program sends a request that the SDK sends once more when it is refused, or does not.
    """

    environment: str
    server: type[OpenAIServer | ScriptedServer]
    client: str
    refusal: RefusedError
    seconds: float


_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.3s"}
_GEMINI = {"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": [_INFO]}}
SDKS = {
    "openai": Sdk(
        "openai-agents",
        OpenAIServer,
        """
import openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="scripted")
send = lambda retries: client.with_options(max_retries=retries).responses.create(model="scripted", input="go")
""",
        RefusedError(headers={"retry-after-ms": "300", "retry-after": "1"}),
        0.3,
    ),
    "anthropic": Sdk(
        "anthropic",
        AnthropicServer,
        """
import anthropic
client = anthropic.Anthropic(base_url=sys.argv[1], api_key="scripted")
go = [{"role": "user", "content": "go"}]
send = lambda retries: client.with_options(max_retries=retries).messages.create(
    model="scripted", max_tokens=100, messages=go
)
""",
        RefusedError(529, headers={"retry-after": "0.3"}),
        0.3,
    ),
    "google-genai": Sdk(
        "google-genai",
        GeminiServer,
        """
from google import genai

once, twice = ({"attempts": attempts, "initial_delay": 0.01, "jitter": 0} for attempts in (1, 2))
clients = [
    genai.Client(api_key="scripted", http_options={"base_url": sys.argv[1], "retry_options": options})
    for options in (once, twice)
]
send = lambda retries: clients[retries].models.generate_content(model="gemini-scripted", contents="go")
""",
        RefusedError(body=_GEMINI),
        0.3,
    ),
    "bedrock": Sdk(
        "bedrock",
        BedrockServer,
        """
import boto3
from botocore.config import Config
clients = [boto3.client(
    "bedrock-runtime", endpoint_url=sys.argv[1], region_name="us-east-1", aws_access_key_id="scripted",
    aws_secret_access_key="scripted", config=Config(retries={"total_max_attempts": attempts}),
) for attempts in (1, 2)]
go = [{"role": "user", "content": [{"text": "go"}]}]
send = lambda retries: clients[retries].converse(modelId="scripted", messages=go)
""",
        RefusedError(headers={"x-amzn-ErrorType": "ThrottlingException"}, body={"message": "slow"}),
        1.0,
    ),
    "mistral": Sdk(
        "mistralai",
        MistralServer,
        """
from mistralai.client import Mistral
from mistralai.client.utils import BackoffStrategy, RetryConfig
client = Mistral(api_key="scripted", server_url=sys.argv[1])
retry = RetryConfig("backoff", BackoffStrategy(1, 1, 1, 10_000), False)
send = lambda retries: client.chat.complete(
    model="scripted", messages=[{"role": "user", "content": "go"}], retries=retry if retries else None
)
""",
        RefusedError(headers={"retry-after": "0.3"}),
        0.3,
    ),
    "cohere": Sdk(
        "cohere",
        CohereServer,
        """
import cohere
client = cohere.ClientV2("scripted", base_url=sys.argv[1])
send = lambda retries: client.chat(
    model="scripted", messages=[{"role": "user", "content": "go"}], request_options={"max_retries": retries}
)
""",
        RefusedError(headers={"retry-after": "1"}),
        1.0,
    ),
    "azure-ai-inference": Sdk(
        "azure-inference",
        OpenAIServer,
        """
from azure.ai.inference import ChatCompletionsClient
from azure.core.credentials import AzureKeyCredential
client = ChatCompletionsClient(
    endpoint=sys.argv[1], credential=AzureKeyCredential("scripted"), raw_response_hook=lambda _: report.update(own=True)
)
go = [{"role": "user", "content": "go"}]
from azure.core.pipeline.policies import HeadersPolicy
plain = ChatCompletionsClient(
    endpoint="http://127.0.0.1:1", credential=AzureKeyCredential("scripted"), policies=[HeadersPolicy()]
)
try:  # a pipeline without a hook, to which none may be given
    plain.complete(model="scripted", messages=go)
except Exception as error:
    report["plain"] = type(error).__name__
send = lambda retries: client.complete(model="scripted", messages=go, retry_total=retries)
""",
        RefusedError(headers={"retry-after": "1"}),
        1.0,
    ),
}
_TWICE = """
import threading
from agent_otel._internal import errors

def refused():
    try:
        send(0)
    except Exception as error:
        report["refused"] = type(error).__name__

other = threading.Thread(target=send, args=(1,))
other.start()
while other.is_alive() and not errors.warnings():
    time.sleep(0.01)
send(0)
other.join()
other = threading.Thread(target=refused)
other.start()
other.join()
send(0)
"""


@pytest.mark.parametrize("name", SDKS)
@pytest.mark.shows("000.backpressure")
def test_each_sdks_refusal_lets_another_thread_wait(environment: Callable[[str], Environment], name: str) -> None:
    sdk = SDKS[name]
    arrived: list[float] = []

    def decide(_: Any) -> Reply:
        arrived.append(time.monotonic())
        if len(arrived) in (1, 4):  # of a call that the SDK sends again, and of one that fails then
            raise sdk.refusal
        return "done"

    with sdk.server(decide) as server:
        report = run(environment(sdk.environment), sdk.client + _TWICE, server.base_url)
    assert len(arrived) == 5
    assert report["refused"]
    if name == "azure-ai-inference":
        assert (report["own"], report["plain"]) == (True, "ServiceRequestError")
    # The SDK's own attempt and the request of the other thread, in any order; then one of a third thread.
    assert min(arrived[1:3]) - arrived[0] >= sdk.seconds
    assert arrived[4] - arrived[3] >= sdk.seconds
