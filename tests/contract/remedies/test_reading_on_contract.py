"""Reading on with the variable alone: each SDK and framework gets the tool, and its calls are answered below them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from agent_otel.testing.servers.anthropic import AnthropicServer, BedrockServer
from agent_otel.testing.servers.openai import (
    CohereServer,
    Json,
    OllamaServer,
    OpenAIServer,
    Reply,
    ToolCall,
    tool_results,
)
from agent_otel.testing.servers.providers import GeminiServer
from tests.contract.suite import QUIET
from tests.forks import agents
from tests.servers.mistral import MistralServer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_otel.testing.servers.openai import Decider
    from tests.forks import Forks

REF = re.compile(r'ref=\\*"(claim:[^"\\]+)')
LINE = re.compile(r'content\\*": ?\\*"row 4000\\*"')
READ = {"content": "4002: row 4000", "size_bytes": 14, "start": 0, "end": 14}
NOT_RUN = {
    "error": "not_run",
    "hint": "The call stood beside get_tool_result, which is answered first. Call the tool again if you need it.",
}
VARIABLES = {
    **QUIET,
    "AGENT_OTEL_CLAIM_CHECK": "memory:",
    "AGENT_OTEL_CLAIM_CHECK_KEY": "the secret of this test",
    "AGENT_OTEL_CLAIM_CHECK_BUDGET": "30",
}
BEGIN = """
import asyncio, importlib, inspect
ran = []

def report(name: str) -> str:
    "Return a report."
    ran.append("report")
    return f"Report {name}\\n" + "\\n".join(f"row {number}" for number in range(5_000))

def look(name: str) -> str:
    "Return a name."
    ran.append("look")
    return "found"
"""
PROGRAM = """
run = getattr(importlib.import_module("tests.contract.agents.{agent}"), {function!r})
with agent_otel.execution("run-1"):
    said = run({base_url!r}, [report, look], "go", {setting!r})
    said = asyncio.run(said) if inspect.isawaitable(said) else said
report = {{"said": said, "ran": ran}}
"""


class Way(NamedTuple):
    """One way to a model: a program, what of it runs, and the server behind it."""

    environment: str
    agent: str
    function: str = "run"
    server: type[Any] = OpenAIServer
    setting: str = ""


WAYS = {
    "openai": Way("openai-agents", "openai_client"),
    "openai, streamed": Way("openai-agents", "openai_client", "astream"),
    "openai, responses": Way("openai-agents", "openai_client", "arun", setting="responses"),
    "openai, raw": Way("openai-agents", "raw_client", "arun", setting="openai raw parsed"),
    "openai 2": Way("openai-2", "openai_client"),
    "anthropic": Way("anthropic", "anthropic_client", "run", AnthropicServer),
    "anthropic, streamed": Way("anthropic", "anthropic_client", "astream", AnthropicServer),
    "anthropic, raw": Way("anthropic", "raw_client", "arun", AnthropicServer, "anthropic raw parsed"),
    "anthropic, raw and streamed": Way("anthropic", "raw_client", "run", AnthropicServer, "anthropic raw streamed"),
    "anthropic's tool runner": Way("anthropic", "anthropic_runner", "arun", AnthropicServer),
    "bedrock": Way("bedrock", "bedrock_client", "run", BedrockServer),
    "aiobotocore": Way("aiobotocore", "aiobotocore_client", "arun", BedrockServer),
    "aiobotocore, streamed": Way("aiobotocore", "aiobotocore_client", "astream", BedrockServer),
    "google-genai": Way("google-genai", "google_client", "run", GeminiServer),
    "google-genai, streamed": Way("google-genai", "google_client", "astream", GeminiServer),
    "groq, streamed": Way("groq", "groq_client", "astream"),
    "fireworks, messages": Way("fireworks", "fireworks_messages", "arun", AnthropicServer),
    "huggingface, streamed": Way("huggingface", "huggingface_client", "astream"),
    "azure-ai-inference, streamed": Way("azure-inference", "azure_client", "astream"),
    "xai-sdk": Way("xai", "xai_client", "arun"),
    "xai-sdk, streamed": Way("xai", "xai_client", "stream"),
    "cohere": Way("cohere", "cohere_client", "arun", CohereServer),
    "mistral, streamed": Way("mistralai", "mistral_client", "astream", MistralServer),
    "ollama, streamed": Way("ollama", "ollama_client", "astream", OllamaServer),
    "litellm": Way("litellm", "litellm_client", "arun"),
    "litellm alone, streamed": Way("litellm", "litellm_client", "astream", AnthropicServer),
    "langgraph, streamed": Way("langchain", "langgraph", "astream"),
    "openai-agents, streamed": Way("openai-agents", "openai_agents", "astream"),
    "openai-agents, responses": Way("openai-agents", "openai_agents", "astream", setting="responses"),
    "pydantic-ai, streamed": Way("pydantic-ai", "pydantic_ai", "astream"),
    "strands": Way("strands", "strands"),
    "google-adk": Way("google-adk", "google_adk", "arun", GeminiServer),
}


def decide(request: Json) -> Reply:
    """Ask for a report; read on beside another call, then alone; ask for another report; answer."""
    text = json.dumps(request)
    refs = REF.findall(text)
    if not refs:
        return [ToolCall("call_1", "report", {"name": "a"})]
    if "Report b" in text:
        return "done"
    if "not_run" not in text:
        look = ToolCall("look_1", "look", {"name": "a"})
        return [ToolCall("read_1", "get_tool_result", {"ref": refs[0], "grep": "row 4000"}), look]
    if not LINE.search(text):
        return [ToolCall("read_2", "get_tool_result", {"ref": refs[0], "lines": "4002-4002", "cursor": ""})]
    return [ToolCall("call_2", "report", {"name": "b"})]


def asks_once(request: Json) -> Reply:
    """Ask for a report; answer."""
    return "done" if tool_results(request) else [ToolCall("call_1", "report", {"name": "a"})]


class Ran(NamedTuple):
    """The child's report, the requests on the wire, and their texts."""

    report: Json
    requests: list[Json]
    results: dict[str, str]


def run(forks: Forks, way: Way, decide: Decider, variables: Mapping[str, str] = VARIABLES) -> Ran:
    """Run a way with such a model."""
    with way.server(decide) as server:
        program = PROGRAM.format(base_url=server.base_url, agent=way.agent, function=way.function, setting=way.setting)
        measured = forks.measure(way.environment, BEGIN + agents(way.environment, way.agent), program, variables)
        return Ran({**measured, **measured["report"]}, server.requests, server.tool_results())


@pytest.fixture(scope="module", params=WAYS)
def ran(request: pytest.FixtureRequest, forks: Forks) -> Ran:
    """Run each way once."""
    return run(forks, WAYS[request.param], decide)


def _offers(request: Json) -> int:
    """How often a request offers the tool."""
    tools = request.get("tools") or request.get("toolConfig") or []
    return json.dumps(tools).count('"get_tool_result"')


def _sum(ran: Ran, name: str, **labels: str) -> float:
    points = (metric for metric in ran.report["metrics"] if metric["name"] == name)
    return float(sum(point["sum"] for point in points if labels.items() <= point["attributes"].items()))


@pytest.mark.shows("000.read_on")
def test_the_model_reads_on_and_the_program_never_sees_it(ran: Ran) -> None:
    assert (ran.report["said"], ran.report["ran"]) == ("done", ["report", "report"])
    assert (ran.report["errors"], ran.report["messages"]) == ({}, [])
    threads = [each.get("thread", {}).get("type") for each in ran.requests]
    if "continue" in threads:  # has the tools of its first request
        offered = {"create": 1, "continue": 0}
        assert [_offers(each) for each in ran.requests] == [offered[thread] for thread in threads]
        return
    first, *others = ran.requests
    assert _offers(first) == 0
    assert [_offers(each) for each in others] == [1] * 4


def test_the_answers_are_in_the_same_request_only(ran: Ran) -> None:
    texts = [json.dumps(each, ensure_ascii=False).replace("\\", "") for each in ran.requests]
    read = json.dumps(READ, separators=(",", ":"))[1:-1]
    reads = [text.replace('": ', '":').replace(', "', ',"').count(read) for text in texts]
    not_run = [text.count("is answered first") for text in texts]
    asked = [text.count("4002-4002") for text in texts]
    if any("thread" in each for each in ran.requests):  # the provider keeps what it has got
        assert (reads, not_run, asked) == ([0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0] * 5)
        continued = [each["thread"].get("previous_message_id") for each in ran.requests]
        assert len(set(continued)) == len(continued)
        return
    assert (reads, not_run, asked) == ([0, 0, 1, 1, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 0])


def test_the_requests_and_the_reading_are_measured(ran: Ran) -> None:
    assert _sum(ran, "agent_otel.claim_check.operations", operation="get", result="ok") == 2
    assert _sum(ran, "agent_otel.model.history.lost") == _sum(ran, "agent_otel.model.history.dropped") == 0
    reading = [span for span in ran.report["spans"] if span["attributes"].get("tool.name") == "get_tool_result"]
    assert [span["attributes"]["tool.result.truncated"] for span in reading] == [False, False]


@pytest.mark.parametrize(
    ("layer", "way"),
    [
        # A conversation keeps the tools that it began with, so that none can be added for a reference.
        ("mistral", Way("mistralai", "mistral_client", "converse", MistralServer)),
        # The program reads the response of InvokeModel from the wire.
        ("bedrock", Way("bedrock", "bedrock_client", "run", BedrockServer, "invoke")),
        # A stream of Cohere's is read inside of a context manager, so that no other one can be put in its place.
        ("cohere", Way("cohere", "cohere_client", "astream", CohereServer)),
        # The program reads these responses from the wire, so that no call in them can be answered.
        ("openai", Way("openai-agents", "raw_client", "run", setting="openai reading parsed")),
        ("anthropic", Way("anthropic", "raw_client", "arun", AnthropicServer, "anthropic reading json")),
    ],
)
def test_where_it_cannot_be_answered_it_is_not_named(forks: Forks, layer: str, way: Way) -> None:
    report, requests, results = run(forks, way, asks_once)
    assert (report["said"], report["ran"], report["errors"]) == ("done", ["report"], {})
    (message,) = report["messages"]
    assert message == (
        f"AGENT_OTEL_CLAIM_CHECK: get_tool_result cannot be offered in a request through {layer}; the result's view "
        "has the reference and names no tool."
    )
    is_not_named(requests, results)


def test_switched_off_it_is_not_offered_and_not_named(forks: Forks) -> None:
    _, requests, results = run(forks, WAYS["openai"], asks_once, {**VARIABLES, "AGENT_OTEL_CLAIM_CHECK_TOOL": "off"})
    is_not_named(requests, results)


def is_not_named(requests: list[Json], results: dict[str, str]) -> None:
    """Assert that no request offers the tool, and that the result's view has the reference and does not name it."""
    assert [_offers(each) for each in requests] == [0, 0]
    shown = results["call_1"]
    assert re.search(r'; the whole is stored: ref="claim:v2:[^"]+"\]$', shown)
    assert "get_tool_result" not in shown
