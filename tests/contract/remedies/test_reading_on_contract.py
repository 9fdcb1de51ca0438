"""Reading on with the variable alone: each SDK and framework gets the tool, and its calls are answered below them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from agent_otel.testing.servers.anthropic import AnthropicServer
from agent_otel.testing.servers.bedrock import BedrockServer
from agent_otel.testing.servers.cohere import CohereServer
from agent_otel.testing.servers.gemini import GeminiServer
from agent_otel.testing.servers.mistral import MistralServer
from agent_otel.testing.servers.ollama import OllamaServer
from agent_otel.testing.servers.openai import Json, Reply, ToolCall, tool_results
from tests.contract.remedies import groups
from tests.contract.remedies.groups import Came, Carrier, Read, Scene

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.contract.remedies.groups import Decide
    from tests.environments import Environment

REF = re.compile(r'ref=\\*"(claim:[^"\\]+)')
LINE = re.compile(r'content\\*": ?\\*"row 4000\\*"')
READ = {"content": "4002: row 4000", "size_bytes": 14, "start": 0, "end": 14}
NOT_RUN = {
    "error": "not_run",
    "hint": "The call stood beside get_tool_result, which is answered first. Call the tool again if you need it.",
}
VARIABLES = {
    "AGENT_OTEL_CLAIM_CHECK": "memory:",
    "AGENT_OTEL_CLAIM_CHECK_KEY": "the secret of this test",
    "AGENT_OTEL_CLAIM_CHECK_BUDGET": "30",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}


WAYS = {
    "openai": Carrier("openai_client", "openai-agents", mode="sync"),
    "openai, streamed": Carrier("openai_client", "openai-agents", mode="stream"),
    "openai, responses": Carrier("openai_client", "openai-agents", setting="responses"),
    "openai, raw": Carrier("raw_client", "openai-agents", setting="openai raw parsed"),
    "openai 2": Carrier("openai_client", "openai-2", mode="sync"),
    "anthropic": Carrier("anthropic_client", "anthropic", AnthropicServer, "sync"),
    "anthropic, streamed": Carrier("anthropic_client", "anthropic", AnthropicServer, "stream"),
    "anthropic, raw": Carrier("raw_client", "anthropic", AnthropicServer, setting="anthropic raw parsed"),
    "anthropic, raw and streamed": Carrier(
        "raw_client", "anthropic", AnthropicServer, "sync", "anthropic raw streamed"
    ),
    "anthropic's tool runner": Carrier("anthropic_runner", "anthropic", AnthropicServer),
    "bedrock": Carrier("bedrock_client", "bedrock", BedrockServer, "sync"),
    "aiobotocore": Carrier("aiobotocore_client", "aiobotocore", BedrockServer),
    "aiobotocore, streamed": Carrier("aiobotocore_client", "aiobotocore", BedrockServer, "stream"),
    "google-genai": Carrier("google_client", "google-genai", GeminiServer, "sync"),
    "google-genai, streamed": Carrier("google_client", "google-genai", GeminiServer, "stream"),
    "groq, streamed": Carrier("groq_client", "groq", mode="stream"),
    "fireworks, messages": Carrier("fireworks_messages", "fireworks", AnthropicServer),
    "huggingface, streamed": Carrier("huggingface_client", "huggingface", mode="stream"),
    "azure-ai-inference, streamed": Carrier("azure_client", "azure-inference", mode="stream"),
    "xai-sdk": Carrier("xai_client", "xai"),
    "xai-sdk, streamed": Carrier("xai_client", "xai", mode="sync stream"),
    "cohere": Carrier("cohere_client", "cohere", CohereServer),
    "mistral, streamed": Carrier("mistral_client", "mistralai", MistralServer, "stream"),
    "ollama, streamed": Carrier("ollama_client", "ollama", OllamaServer, "stream"),
    "litellm": Carrier("litellm_client", "litellm"),
    "litellm alone, streamed": Carrier("litellm_client", "litellm", AnthropicServer, "stream"),
    "langgraph, streamed": Carrier("langgraph", "langchain", mode="stream"),
    "openai-agents, streamed": Carrier("openai_agents", "openai-agents", mode="stream"),
    "openai-agents, responses": Carrier("openai_agents", "openai-agents", mode="stream", setting="responses"),
    "pydantic-ai, streamed": Carrier("pydantic_ai", "pydantic-ai", mode="stream"),
    "strands": Carrier("strands", "strands", mode="sync"),
    "google-adk": Carrier("google_adk", "google-adk", GeminiServer),
}


def _reads_on(_: list[Json], request: Json, ids: str) -> Reply:
    """Ask for a report; read on beside another call, then alone; ask for another report; answer."""
    text = json.dumps(request)
    refs = REF.findall(text)
    if not refs:
        return [ToolCall(f"call_{ids}_1", "report", {"name": "a"})]
    if "Report b" in text:
        return "done"
    if "not_run" not in text:
        look = ToolCall(f"look_{ids}_1", "look", {"name": "a"})
        return [ToolCall(f"read_{ids}_1", "get_tool_result", {"ref": refs[0], "grep": "row 4000"}), look]
    if not LINE.search(text):
        return [ToolCall(f"read_{ids}_2", "get_tool_result", {"ref": refs[0], "lines": "4002-4002", "cursor": ""})]
    return [ToolCall(f"call_{ids}_2", "report", {"name": "b"})]


def _asks_once(_: list[Json], request: Json, ids: str) -> Reply:
    """Ask for a report; answer."""
    return "done" if tool_results(request) else [ToolCall(f"call_{ids}_1", "report", {"name": "a"})]


#: Where it cannot be answered. Each of them is the only one of its layer, whose message is logged once in a process.
UNANSWERED = {
    # A conversation keeps the tools that it began with, so that none can be added for a reference.
    "mistral": Carrier("mistral_client", "mistralai", MistralServer, "converse"),
    # The program reads the response of InvokeModel from the wire.
    "bedrock": Carrier("bedrock_client", "bedrock", BedrockServer, "sync", "invoke"),
    # A stream of Cohere's is read inside of a context manager, so that no other one can be put in its place.
    "cohere": Carrier("cohere_client", "cohere", CohereServer, "stream"),
    # The program reads these responses from the wire, so that no call in them can be answered.
    "openai": Carrier("raw_client", "openai-agents", mode="sync", setting="openai reading parsed"),
    "anthropic": Carrier("raw_client", "anthropic", AnthropicServer, setting="anthropic reading json"),
}


def _scene(carrier: Carrier, decide: Decide) -> Scene:
    """Return a run in a named execution."""
    return Scene(carrier._replace(is_named=True), decide, {"it": carrier.case("go", "report", "look")})


SCENES = {
    **{name: _scene(carrier, _reads_on) for name, carrier in WAYS.items()},
    **{f"unanswered: {layer}": _scene(carrier, _asks_once) for layer, carrier in UNANSWERED.items()},
}
came = groups.fixture(SCENES, lambda _: VARIABLES)


@pytest.fixture(params=WAYS)
def ran(request: pytest.FixtureRequest, came: Read) -> Came:
    """Each way in turn."""
    return came(request.param)


def _offers(request: Json) -> int:
    """How often a request offers the tool."""
    tools = request.get("tools") or request.get("toolConfig") or []
    return json.dumps(tools).count('"get_tool_result"')


def _sum(ran: Came, name: str, **labels: str) -> float:
    points = (metric for metric in ran.only()[1]["metrics"] if metric["name"] == name)
    return float(sum(point["sum"] for point in points if labels.items() <= point["attributes"].items()))


@pytest.mark.shows("000.read_on")
def test_the_model_reads_on_and_the_program_never_sees_it(ran: Came) -> None:
    _, case = ran.only()
    assert (case["said"], case["ran"]) == ("done", ["report", "report"])
    assert (case["errors"], case["messages"]) == ({}, [])
    threads = [each.get("thread", {}).get("type") for each in ran.requests]
    if "continue" in threads:  # has the tools of its first request
        offered = {"create": 1, "continue": 0}
        assert [_offers(each) for each in ran.requests] == [offered[thread] for thread in threads]
        return
    first, *others = ran.requests
    assert _offers(first) == 0
    assert [_offers(each) for each in others] == [1] * 4


def test_the_answers_are_in_the_same_request_only(ran: Came) -> None:
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


def test_the_requests_and_the_reading_are_measured(ran: Came) -> None:
    assert _sum(ran, "agent_otel.claim_check.operations", operation="get", result="ok") == 2
    assert _sum(ran, "agent_otel.model.history.lost") == _sum(ran, "agent_otel.model.history.dropped") == 0
    reading = [span for span in ran.only()[1]["spans"] if span["attributes"].get("tool.name") == "get_tool_result"]
    assert [span["attributes"]["tool.result.truncated"] for span in reading] == [False, False]


@pytest.mark.parametrize("layer", UNANSWERED, ids=(f"{layer}-way{place}" for place, layer in enumerate(UNANSWERED)))
def test_where_it_cannot_be_answered_it_is_not_named(came: Read, layer: str) -> None:
    found = came(f"unanswered: {layer}")
    requests, case = found.only()
    assert (case["said"], case["ran"], case["errors"]) == ("done", ["report"], {})
    (message,) = case["messages"]
    assert message == (
        f"AGENT_OTEL_CLAIM_CHECK: get_tool_result cannot be offered in a request through {layer}; the result's view "
        "has the reference and names no tool."
    )
    assert [_offers(each) for each in requests] == [0, 0]
    _is_not_named(found)


def test_switched_off_it_is_not_offered_and_not_named(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    scenes = {"off": _scene(WAYS["openai"], _asks_once)}
    variables = {**VARIABLES, "AGENT_OTEL_CLAIM_CHECK_TOOL": "off"}
    found = groups.checked(groups.run(scenes, environment("openai-agents"), tmp_path, variables), "off")
    assert [_offers(each) for each in found.requests] == [0, 0]
    _is_not_named(found)


def _is_not_named(found: Came) -> None:
    """Assert that the only result is shown with its reference and names no tool."""
    (shown,) = found.results.values()
    assert re.search(r'; the whole is stored: ref="claim:v2:[^"]+"\]$', shown)
    assert "get_tool_result" not in shown
