"""Final answers that are built on a part of a result, through the agent loops of the contract suite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import ToolCall, tool_results
from tests.contract import script
from tests.system.answers.programs import CUT_BYTES
from tests.system.scripted_child import report_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Json, Reply
    from tests.environments import Environment

#: Agent and mode -> environment and server.
_STACKS = {
    "openai_client,sync": ("openai-agents", "openai:OpenAIServer"),
    "openai_client,stream": ("openai-agents", "openai:OpenAIServer"),
    "openai_client,async responses": ("openai-agents", "openai:OpenAIServer"),
    "openai_agents,async": ("openai-agents", "openai:OpenAIServer"),
    "openai_agents,stream": ("openai-agents", "openai:OpenAIServer"),
    "anthropic_client,sync": ("anthropic", "anthropic:AnthropicServer"),
    "anthropic_client,stream": ("anthropic", "anthropic:AnthropicServer"),
    "anthropic_client,stream events": ("anthropic", "anthropic:AnthropicServer"),
    "google_client,sync": ("google-genai", "gemini:GeminiServerWithIds"),
    "google_client,sync stream": ("google-genai", "gemini:GeminiServerWithIds"),
    "google_client,stream": ("google-genai", "gemini:GeminiServerWithIds"),
    "bedrock_client,sync": ("bedrock", "bedrock:BedrockServer"),
    "bedrock_client,sync stream": ("bedrock", "bedrock:BedrockServer"),
    "langchain,sync": ("langchain", "openai:OpenAIServer"),
    "langgraph,sync": ("langchain", "openai:OpenAIServer"),
    "langgraph,stream": ("langchain", "openai:OpenAIServer"),
    "pydantic_ai,async": ("pydantic-ai", "openai:OpenAIServer"),
    "pydantic_ai,stream": ("pydantic-ai", "openai:OpenAIServer"),
    "litellm_client,sync": ("litellm", "openai:OpenAIServer"),
    "litellm_client,sync stream": ("litellm", "anthropic:AnthropicServer"),
    "mistral_client,sync": ("mistralai", "mistral:MistralServer"),
    "mistral_client,stream": ("mistralai", "mistral:MistralServer"),
    "ollama_client,sync": ("ollama", "ollama:OllamaServer"),
    "ollama_client,stream": ("ollama", "ollama:OllamaServer"),
}


def decide(request: Json) -> Reply:
    """Ask for the calls of the first turn that has some without a result."""
    answered = tool_results(request)
    left = [
        call
        for call in script.calls_of(request.get("messages") or request.get("input") or ())
        if call[0] not in answered
    ]
    return [ToolCall(*call) for call in left if call[0][0] == left[0][0][0]] or "done"


def _event(call_id: str | None, reason: str, shown: int) -> list[Any]:
    return [
        "agent",
        {
            "tool.name": "search",
            **({"gen_ai.tool.call.id": call_id} if call_id is not None else {}),
            "tool.result.truncation.reason": reason,
            "tool.result.delivered_bytes": shown,
            "tool.followup": "ignored",
        },
    ]


@pytest.mark.parametrize("stack", _STACKS)
@pytest.mark.shows("001.wrong_answer")
def test_an_answer_that_is_built_on_a_fragment_is_counted(
    environment: Callable[[str], Environment], stack: str
) -> None:
    name, server = _STACKS[stack]

    report = report_of("tests.system.answers.programs", stack, environment(name), server, decide)

    assert (report["messages"], report["errors"]) == ([], {})
    runs = report["runs"]
    counted = {task: run["counted"] for task, run in runs.items()}
    knows_ids = not stack.startswith("ollama")
    assert counted | ({} if knows_ids else {"cut and repeated": {"search cut_json": 1}}) == {
        "whole": {},
        "cut": {"search cut_json": 1},
        "cut and another tool": {"search cut_json": 1},
        "cut beside a whole one": {"search cut_json": 1},
        "cut and narrowed": {},
        "cut and repeated": {"search cut_json": 1},
        "a page": {"search page": 1},
        "all pages": {},
    }
    assert runs["cut"]["events"] == [_event("a11" if knows_ids else None, "cut_json", CUT_BYTES)]
    assert not knows_ids or runs["cut and repeated"]["events"] == [_event("b15", "cut_json", CUT_BYTES)]
    assert [run["children"] for run in runs.values()] == [[]] * len(runs)
    assert {task: run["outcomes"] for task, run in runs.items() if run["outcomes"]} == {
        "cut and narrowed": ["narrowed"],
        **({"cut and repeated": ["repeated"]} if knows_ids else {}),
        "all pages": ["paginated"],
    }
