"""Loops over each SDK whose tools nobody decorated: the remedies act on the requests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.anthropic import AnthropicServer, BedrockServer
from agent_otel.testing.servers.openai import CohereServer, OllamaServer, ToolCall
from agent_otel.testing.servers.providers import GeminiServer, GeminiServerWithIds
from tests.contract.remedies.test_reading_on_contract import LINE, REF, VARIABLES, Way
from tests.contract.suite import QUIET
from tests.forks import agents
from tests.servers.mistral import MistralServer

if TYPE_CHECKING:
    from agent_otel.testing.servers.openai import Json, Reply
    from tests.forks import Forks

BEGIN = """
import asyncio, contextlib, importlib, inspect
ran = []

def report(name: str) -> str:
    "Return a report."
    ran.append(name)
    return f"Report {name}\\n" + "\\n".join(f"row {number}" for number in range(5_000))

class Bare:
    result = staticmethod(lambda value: value)
    refused = staticmethod(lambda: None)

    @staticmethod
    async def arefused():
        return None

agent_otel.tool_call = lambda *_, **__: contextlib.nullcontext(Bare)
agent_otel.execution = lambda *_, **__: contextlib.nullcontext()
"""
PROGRAM = """
run = getattr(importlib.import_module("tests.contract.agents.{agent}"), {function!r})
said = run({base_url!r}, [report], "go", {setting!r})
said = asyncio.run(said) if inspect.isawaitable(said) else said
report = {{"said": said, "ran": ran}}
"""
#: "Report a", a newline, and 5,000 rows of 4 characters and their numbers.
BYTES = len("Report a\n" + "\n".join(f"row {number}" for number in range(5_000)))

WAYS = {
    "openai": Way("openai-agents", "openai_client"),
    "openai, streamed": Way("openai-agents", "openai_client", "astream"),
    "openai, responses": Way("openai-agents", "openai_client", "arun", setting="responses"),
    "openai, raw": Way("openai-agents", "raw_client", "arun", setting="openai raw parsed"),
    "anthropic": Way("anthropic", "anthropic_client", "run", AnthropicServer),
    "anthropic, blocks": Way("anthropic", "anthropic_client", "run", AnthropicServer, "blocks"),
    "anthropic, streamed": Way("anthropic", "anthropic_client", "astream", AnthropicServer),
    "bedrock": Way("bedrock", "bedrock_client", "run", BedrockServer),
    "aiobotocore": Way("aiobotocore", "aiobotocore_client", "arun", BedrockServer),
    "aiobotocore, streamed": Way("aiobotocore", "aiobotocore_client", "astream", BedrockServer),
    "google-genai": Way("google-genai", "google_client", "run", GeminiServer),
    "google-genai, with ids": Way("google-genai", "google_client", "arun", GeminiServerWithIds),
    "google-genai, streamed": Way("google-genai", "google_client", "astream", GeminiServer),
    "groq": Way("groq", "groq_client", "arun"),
    "together": Way("together", "together_client"),
    "fireworks": Way("fireworks", "fireworks_client", "arun"),
    "fireworks, messages": Way("fireworks", "fireworks_messages", "arun", AnthropicServer),
    "huggingface": Way("huggingface", "huggingface_client"),
    "huggingface, streamed": Way("huggingface", "huggingface_client", "astream"),
    "azure-ai-inference": Way("azure-inference", "azure_client", "arun"),
    "xai-sdk": Way("xai", "xai_client"),
    "xai-sdk, streamed": Way("xai", "xai_client", "stream"),
    "cohere": Way("cohere", "cohere_client", "arun", CohereServer),
    "mistral": Way("mistralai", "mistral_client", "run", MistralServer),
    "mistral, streamed": Way("mistralai", "mistral_client", "astream", MistralServer),
    "ollama": Way("ollama", "ollama_client", "run", OllamaServer),
    "ollama, streamed": Way("ollama", "ollama_client", "astream", OllamaServer),
    "litellm": Way("litellm", "litellm_client", "arun"),
    "litellm alone": Way("litellm", "litellm_client", "arun", AnthropicServer),
    "litellm alone, streamed": Way("litellm", "litellm_client", "astream", AnthropicServer),
}


def reads_on(request: Json) -> Reply:
    """Ask for a report, read on in it, ask for another report, and answer."""
    text = json.dumps(request)
    refs = REF.findall(text)
    if "Report b" in text:
        return "done"
    if not refs and "row 4999" not in text:
        return [ToolCall("call_1", "report", {"name": "a"})]
    if not refs:
        return "whole"
    if not LINE.search(text):
        return [ToolCall("read_1", "get_tool_result", {"ref": refs[0], "lines": "4002-4002"})]
    return [ToolCall("call_2", "report", {"name": "b"})]


def asks_twice(request: Json) -> Reply:
    """Ask for two reports, and answer."""
    text = json.dumps(request)
    number = text.count("result_too_large")
    if number == 2 or "row 4999" in text:
        return "done" if number == 2 else "whole"
    return [ToolCall(f"call_{number}", "report", {"name": "ab"[number]})]


def run(forks: Forks, way: Way, decide: Any, variables: dict[str, str]) -> tuple[Json, list[Json], dict[str, str]]:
    """Run a way; return the program's report, the requests, and the results in them."""
    with way.server(decide) as server:
        program = PROGRAM.format(base_url=server.base_url, agent=way.agent, function=way.function, setting=way.setting)
        measured = forks.measure(way.environment, agents(way.environment, way.agent) + BEGIN, program, variables)
        return measured, server.requests, server.tool_results()


def spans_of(report: Json) -> list[Json]:
    """Return the attributes of the spans of the tool."""
    found = [span["attributes"] for span in report["spans"] if span["name"] == "execute_tool report"]
    assert {one["tool.result.seen_at"] for one in found} == {"model_request"}
    return found


def sums(report: Json) -> dict[str, float]:
    """Return the sums of the tool's metrics."""
    found = [one for one in report["metrics"] if one["attributes"].get("gen_ai.tool.name") == "report"]
    return {one["name"].removeprefix("agent_otel."): one["sum"] for one in found if one["sum"]}


@pytest.mark.parametrize("way", WAYS)
def test_a_large_result_is_stored_and_read_on(forks: Forks, way: str) -> None:
    report, requests, results = run(forks, WAYS[way], reads_on, VARIABLES)

    assert ({"said": "done", "ran": ["a", "b"]}, {}, []) == (report["report"], report["errors"], report["messages"])
    views = [text for text in results.values() if text.startswith("Report ")]
    assert len(views) == 2
    # The view is the same in each request.
    shown = [REF.findall(json.dumps(request)) for request in requests]
    assert [len(set(refs)) for refs in shown] == [0, 1, 1, 2]
    spans = spans_of(report)
    assert [(BYTES, True, "remedy", "claim_check")] * 2 == [
        (
            one["tool.result.bytes"],
            one["tool.result.truncated"],
            one["tool.result.truncation.layer"],
            one["tool.result.truncation.reason"],
        )
        for one in spans
    ]
    assert [one["tool.result.ref"] for one in spans] == list(dict.fromkeys(ref for refs in shown for ref in refs))
    found = sums(report)
    delivered = sum(len(text.encode()) for text in views)
    assert (2 * BYTES, delivered) == (found["tool.result.size"], found["tool.result.delivered"])
    stored = [one for one in report["metrics"] if one["name"] == "agent_otel.claim_check.operations"]
    assert 2 == sum(one["sum"] for one in stored if one["attributes"] == {"operation": "put", "result": "ok"})


@pytest.mark.parametrize("way", WAYS)
def test_the_ceiling_and_the_limit_hold(forks: Forks, way: str) -> None:
    variables = {**QUIET, "AGENT_OTEL_RESULT_CEILING_BYTES": "4096", "AGENT_OTEL_MAX_TOOL_CALLS": "1"}

    report, requests, results = run(forks, WAYS[way], asks_twice, variables)

    assert ({"said": "done", "ran": ["a", "b"]}, {}, []) == (report["report"], report["errors"], report["messages"])
    # The second call has run, and is above the limit. The agent over Responses offers no tools.
    asked = ["limit of tool calls" in json.dumps(request) for request in requests]
    assert [False, False, way != "openai, responses"] == asked
    for text in results.values():
        error = json.loads(text)
        assert ("result_too_large", "report", BYTES, 4096) == (
            *(error["error"], error["tool"], error["size_bytes"], error["limit_bytes"]),
        )
    # Converse has no choice of no tools: the last request has its history as text, and no call that can be shown.
    count = 1 if WAYS[way].server is BedrockServer else 2
    assert [(BYTES, "ceiling", "result_too_large")] * count == [
        (one["tool.result.bytes"], one["tool.result.truncation.reason"], one["error.type"]) for one in spans_of(report)
    ]
    found = sums(report)
    error_bytes = len(next(iter(results.values())))
    assert (count * BYTES, count * error_bytes) == (found["tool.result.size"], found["tool.result.delivered"])
