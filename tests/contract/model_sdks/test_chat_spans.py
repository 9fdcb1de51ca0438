"""Spans and durations of model requests, in hand-written loops over each SDK and in an agent's run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.anthropic import AnthropicServer, BedrockServer
from agent_otel.testing.servers.openai import (
    CohereServer,
    OllamaServer,
    OpenAIServer,
    ToolCall,
    call_once,
)
from agent_otel.testing.servers.providers import GeminiServer
from tests.contract.suite import QUIET
from tests.forks import agents
from tests.servers.mistral import MistralServer

if TYPE_CHECKING:
    from tests.forks import Forks

BEGIN = """
import asyncio, contextlib, importlib, inspect
from tests.contract import toolbox

class Bare:
    result = staticmethod(lambda value: value)
    refused = staticmethod(lambda: None)

if {is_bare}:
    agent_otel.tool_call = lambda *_, **__: contextlib.nullcontext(Bare)
    agent_otel.execution = lambda *_, **__: contextlib.nullcontext()
spans = telemetry.spans
telemetry.spans = lambda: spans(chats=True)
"""
PROGRAM = """
run = getattr(importlib.import_module("tests.contract.agents.{agent}"), {function!r})
said = run({base_url!r}, [toolbox.lookup], "go", {setting!r})
report = asyncio.run(said) if inspect.isawaitable(said) else said
"""
#: The agent, its environment, its server, its function, its setting, and the provider.
ROWS: dict[str, tuple[str, str, Any, str, str, str]] = {
    "openai": ("openai_client", "openai-agents", OpenAIServer, "run", "", "openai"),
    "openai, streamed": ("openai_client", "openai-agents", OpenAIServer, "astream", "", "openai"),
    "openai, responses": ("openai_client", "openai-agents", OpenAIServer, "arun", "responses", "openai"),
    "anthropic": ("anthropic_client", "anthropic-0.125", AnthropicServer, "run", "", "anthropic"),
    "bedrock": ("bedrock_client", "bedrock", BedrockServer, "run", "", "aws.bedrock"),
    "gemini": ("google_client", "google-genai", GeminiServer, "run", "", "gcp.gemini"),
    "gemini, streamed": ("google_client", "google-genai", GeminiServer, "astream", "", "gcp.gemini"),
    "mistral, streamed": ("mistral_client", "mistralai", MistralServer, "astream", "", "mistral_ai"),
    "ollama, streamed": ("ollama_client", "ollama", OllamaServer, "astream", "", "ollama"),
    "cohere": ("cohere_client", "cohere", CohereServer, "arun", "", "cohere"),
    "litellm": ("litellm_client", "litellm", OpenAIServer, "arun", "", "openai"),
    "litellm alone": ("litellm_client", "litellm", AnthropicServer, "arun", "", "litellm"),
    "openai-agents": ("openai_agents", "openai-agents", OpenAIServer, "arun", "", "openai"),
    "langgraph, streamed": ("langgraph", "langchain", OpenAIServer, "astream", "", "openai"),
}
CALL = ToolCall("call_1", "lookup", {"key": "größe"})


@pytest.mark.parametrize("row", ROWS)
def test_each_request_is_a_child_of_the_run(forks: Forks, row: str) -> None:
    agent, name, server_class, function, setting, provider = ROWS[row]
    with server_class(call_once((CALL,))) as server:
        program = PROGRAM.format(agent=agent, function=function, base_url=server.base_url, setting=setting)
        begin = BEGIN.format(is_bare=agent.endswith("_client"))
        report = forks.measure(name, agents(name, agent) + begin, program, QUIET)

    assert ("done", {}, []) == (report["report"], report["errors"], report["messages"])
    chats = [span for span in report["spans"] if span["attributes"].get("gen_ai.operation.name") == "chat"]
    assert [(provider, "CLIENT")] * 2 == [(one["attributes"]["gen_ai.provider.name"], one["kind"]) for one in chats]
    assert {f"chat {one['attributes']['gen_ai.request.model']}" for one in chats} == {one["name"] for one in chats}
    # One trace: of the run's span, else of the first request.
    assert 1 == len({span["trace"] for span in report["spans"]})
    roots = [span for span in report["spans"] if span["parent"] is None]
    assert 1 == len(roots)
    assert {roots[0]["name"]} == {span["parent"] for span in report["spans"] if span is not roots[0]}
    tools = [span for span in report["spans"] if span["name"] == "execute_tool lookup"]
    assert ["lookup"] == [one["attributes"]["tool.name"] for one in tools]
    assert {"error.type"}.isdisjoint(key for one in chats for key in one["attributes"])
    durations = [one for one in report["metrics"] if one["name"] == "gen_ai.client.operation.duration"]
    model = chats[0]["attributes"]["gen_ai.request.model"]
    labels = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": provider, "gen_ai.request.model": model}
    named = {"gen_ai.agent.name", "gen_ai.workflow.name"}
    found = [({k: v for k, v in one["attributes"].items() if k not in named}, one["count"]) for one in durations]
    assert [(labels, 2)] == found


LIFE = """
import gc
import openai
client = openai.OpenAI(base_url={base_url!r}, api_key="scripted", max_retries=0)
request = dict(model="scripted", messages=[{{"role": "user", "content": "go"}}])
said = client.chat.completions.create(**request)
stream = client.chat.completions.create(**request, stream=True)
next(stream)
stream.close()
del stream
gc.collect()  # what it frees ends with the next request
with contextlib.suppress(openai.BadRequestError):
    client.chat.completions.create(**request | {{"model": "refused"}})
with contextlib.suppress(openai.APIConnectionError):
    openai.OpenAI(base_url="http://127.0.0.1:9", api_key="scripted", max_retries=0).chat.completions.create(**request)
"""


@pytest.mark.parametrize("mode", ["auto", "own", "enrich", "off"])
def test_streams_errors_and_modes(forks: Forks, mode: str) -> None:
    def decide(request: Any) -> str:
        if request["model"] == "refused":
            raise ValueError("refused")
        return "done"

    with OpenAIServer(decide) as server:
        program = LIFE.format(base_url=server.base_url)
        begin = agents("openai-agents") + BEGIN.format(is_bare=True)
        report = forks.measure("openai-agents", begin, program, {**QUIET, "AGENT_OTEL_SPANS": mode})

    chats = [span for span in report["spans"] if span["name"].startswith("chat ")]
    errors = [(one["name"], one["status"], one["attributes"].get("error.type")) for one in chats]
    shown = [
        ("chat scripted", "UNSET", None),
        ("chat scripted", "UNSET", None),
        ("chat refused", "ERROR", "openai.BadRequestError"),
        ("chat scripted", "ERROR", "openai.APIConnectionError"),
    ]
    assert {} == report["errors"]
    assert (shown if mode in {"auto", "own"} else []) == errors
    counts = {
        (one["attributes"]["gen_ai.request.model"], one["attributes"].get("error.type")): one["count"]
        for one in report["metrics"]
        if one["name"] == "gen_ai.client.operation.duration"
    }
    assert {
        ("scripted", None): 2,
        ("refused", "openai.BadRequestError"): 1,
        ("scripted", "openai.APIConnectionError"): 1,
    } == counts


OTHER = """
from opentelemetry import metrics, trace
metrics.get_meter("theirs").create_histogram("gen_ai.client.operation.duration", "s").record(1.0)
import openai
client = openai.OpenAI(base_url={base_url!r}, api_key="scripted", max_retries=0)
with trace.get_tracer("theirs").start_as_current_span("request", attributes={{"gen_ai.operation.name": "chat"}}):
    client.chat.completions.create(model="scripted", messages=[{{"role": "user", "content": "go"}}])
"""


def test_another_instrumentation_has_them(forks: Forks) -> None:
    with OpenAIServer(lambda _: "done") as server:
        begin = agents("openai-agents") + BEGIN.format(is_bare=True)
        report = forks.measure("openai-agents", begin, OTHER.format(base_url=server.base_url), QUIET)

    assert ["request"] == [span["name"] for span in report["spans"]]
    durations = [one["sum"] for one in report["metrics"] if one["name"] == "gen_ai.client.operation.duration"]
    assert [1.0] == durations
