"""Loops over each provider's client whose tools nobody decorated: their requests show the calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.anthropic import AnthropicServer, BedrockServer
from agent_otel.testing.servers.openai import OllamaServer, OpenAIServer, ToolCall, call_once
from agent_otel.testing.servers.providers import GeminiServer, GeminiServerWithIds
from tests.forks import agents
from tests.servers.mistral import MistralServer

if TYPE_CHECKING:
    from tests.forks import Forks

#: An agent of the contract with the measuring of its tools taken out.
BEGIN = """
import asyncio, contextlib
from tests.contract import toolbox
from tests.contract.agents import {agent} as agent

class Bare:
    result = staticmethod(lambda value: value)
    refused = staticmethod(lambda: None)

agent_otel.tool_call = lambda *_, **__: contextlib.nullcontext(Bare)
"""
PROGRAM = """
if {within!r} == "none":
    agent_otel.execution = lambda *_, **__: contextlib.nullcontext()
given = ({base_url!r}, [toolbox.lookup, toolbox.big], "go", {setting!r})
report = agent.run(*given) if {mode!r} == "sync" else asyncio.run(agent.arun(*given))
"""
CALLS = (ToolCall("call_1", "lookup", {"key": "größe"}), ToolCall("call_2", "big", {"n": 20_000}))
ROWS = {
    "openai, chat": ("openai_client", "openai-agents", OpenAIServer, "sync", ""),
    "openai, responses": ("openai_client", "openai-agents", OpenAIServer, "async", "responses"),
    "openai 2": ("openai_client", "openai-2", OpenAIServer, "sync", ""),
    "anthropic": ("anthropic_client", "anthropic", AnthropicServer, "sync", ""),
    "anthropic, blocks": ("anthropic_client", "anthropic-0.125", AnthropicServer, "sync", "blocks"),
    "gemini": ("google_client", "google-genai", GeminiServer, "sync", ""),
    "gemini, with ids": ("google_client", "google-genai-1.20", GeminiServerWithIds, "async", ""),
    "bedrock": ("bedrock_client", "bedrock", BedrockServer, "sync", ""),
    "mistral": ("mistral_client", "mistralai", MistralServer, "sync", ""),
    "ollama": ("ollama_client", "ollama", OllamaServer, "sync", ""),
    "litellm": ("litellm_client", "litellm", OpenAIServer, "sync", ""),
}


@pytest.mark.parametrize("within", ["none", "an execution"])
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.shows("001.hand_written_loop")
def test_each_call_is_one(forks: Forks, row: str, within: str) -> None:
    agent, name, server_class, mode, setting = ROWS[row]
    make: Any = server_class
    with make(call_once(CALLS)) as server:
        program = PROGRAM.format(base_url=server.base_url, mode=mode, setting=setting, within=within)
        report = forks.measure(name, BEGIN.format(agent=agent) + agents(name), program)

    assert ("done", {}, []) == (report["report"], report["errors"], report["messages"])
    spans = [span["attributes"] for span in report["spans"] if span["name"].startswith("execute_tool")]
    # "größe: " is 9 bytes, "ß" two.
    assert [("lookup", 2009, False), ("big", 20_000, False)] == [
        (one["tool.name"], one["tool.result.bytes"], one["tool.result.truncated"]) for one in spans
    ]
    assert {"model_request"} == {one["tool.result.seen_at"] for one in spans}
    counts = {
        (metric["name"].removeprefix("agent_otel."), metric["attributes"].get("gen_ai.tool.name")): metric["sum"]
        for metric in report["metrics"]
        if metric["sum"]
    }
    assert (2009, 20_000) == (counts["tool.result.size", "lookup"], counts["tool.result.size", "big"])
    assert (2009, 20_000) == (counts["tool.result.delivered", "lookup"], counts["tool.result.delivered", "big"])
    assert 1 == counts["tool.results.large", "big"]
    assert {"tool.repeats", "tool.results.unmatched", "model.history.lost"}.isdisjoint(name for name, _ in counts)
