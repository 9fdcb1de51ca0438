"""Final answers that are built on a part of a result, through the agent loops of the contract suite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import ToolCall, tool_results
from tests.contract import script
from tests.contract.suite import QUIET
from tests.forks import agents
from tests.system.answers.programs import CUT_BYTES
from tests.system.scripted_child import server_of

if TYPE_CHECKING:
    from agent_otel.testing.servers.openai import Decider, Json, Reply
    from tests.forks import Forks

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
    "raw_client,sync openai raw parsed": ("openai-agents", "openai:OpenAIServer"),
    "raw_client,async openai raw streamed": ("openai-agents", "openai:OpenAIServer"),
    "raw_client,async openai reading json": ("openai-agents", "openai:OpenAIServer"),
    "raw_client,sync openai reading streamed": ("openai-agents", "openai:OpenAIServer"),
    "raw_client,async anthropic raw parsed": ("anthropic", "anthropic:AnthropicServer"),
    "raw_client,sync anthropic raw streamed": ("anthropic", "anthropic:AnthropicServer"),
    "raw_client,sync anthropic reading parsed": ("anthropic", "anthropic:AnthropicServer"),
    "raw_client,async anthropic reading streamed": ("anthropic", "anthropic:AnthropicServer"),
    "raw_client,async anthropic raw streamed": ("anthropic-0.125", "anthropic:AnthropicServer"),
    "google_client,sync": ("google-genai", "providers:GeminiServerWithIds"),
    "google_client,sync stream": ("google-genai", "providers:GeminiServerWithIds"),
    "google_client,stream": ("google-genai", "providers:GeminiServerWithIds"),
    "bedrock_client,sync": ("bedrock", "anthropic:BedrockServer"),
    "bedrock_client,sync stream": ("bedrock", "anthropic:BedrockServer"),
    "langchain,sync": ("langchain", "openai:OpenAIServer"),
    "langgraph,sync": ("langchain", "openai:OpenAIServer"),
    "langgraph,stream": ("langchain", "openai:OpenAIServer"),
    "pydantic_ai,async": ("pydantic-ai", "openai:OpenAIServer"),
    "pydantic_ai,stream": ("pydantic-ai", "openai:OpenAIServer"),
    "litellm_client,sync": ("litellm", "openai:OpenAIServer"),
    "litellm_client,sync stream": ("litellm", "anthropic:AnthropicServer"),
    "mistral_client,sync": ("mistralai", "tests.servers.mistral:MistralServer"),
    "mistral_client,stream": ("mistralai", "tests.servers.mistral:MistralServer"),
    "ollama_client,sync": ("ollama", "openai:OllamaServer"),
    "ollama_client,stream": ("ollama", "openai:OllamaServer"),
}


def _begin(name: str) -> str:
    """Return what all programs of an environment begin with: they import its agents and their frameworks."""
    modules = sorted({stack.partition(",")[0] for stack, (row, _) in _STACKS.items() if row == name})
    return f"from tests.system.answers import programs, structured\n{agents(name, *modules)}"


def decide(request: Json) -> Reply:
    """Ask for the calls of the first turn that has some without a result."""
    answered = tool_results(request)
    left = [
        call
        for call in script.calls_of(request.get("messages") or request.get("input") or ())
        if call[0] not in answered
    ]
    return [ToolCall(*call) for call in left if call[0][0] == left[0][0][0]] or "done"


def _report_of(forks: Forks, name: str, program: str, server: str, decide: Decider) -> Any:
    """Return what a program of this folder reports, which is without messages and errors."""
    with server_of(server)(decide) as running:
        told = forks.measure(name, _begin(name), f"url = {running.base_url!r}\n{program}", QUIET)
    assert (told["messages"], told["errors"]) == ([], {})
    return told["report"]


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
def test_an_answer_that_is_built_on_a_fragment_is_counted(forks: Forks, stack: str) -> None:
    name, server = _STACKS[stack]
    program = f"report = programs.main({stack!r}, url, telemetry)"

    runs = _report_of(forks, name, program, server, decide)

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
        "the last page by another tool": {},
        "not the last page": {"search page": 1},
        "cut and another question": {"search cut_json": 1},
    }
    assert runs["cut"]["events"] == [_event("a11" if knows_ids else None, "cut_json", CUT_BYTES)]
    assert not knows_ids or runs["cut and repeated"]["events"] == [_event("b15", "cut_json", CUT_BYTES)]
    assert [run["children"] for run in runs.values()] == [[]] * len(runs)
    assert {task: run["outcomes"] for task, run in runs.items() if run["outcomes"]} == {
        "cut and narrowed": ["narrowed"],
        **({"cut and repeated": ["repeated"]} if knows_ids else {}),
        "all pages": ["paginated"],
        "the last page by another tool": ["paginated"],
    }


_OUTPUT_TOOLS = {
    "pydantic_ai": "pydantic-ai",
    "pydantic_ai_streamed": "pydantic-ai",
    "langchain": "langchain",
    "langchain_streamed": "langchain",
    "smolagents": "smolagents",
    "by_hand": "openai-agents",
}


def _structured(
    forks: Forks, name: str, agent: str, *queries: str, last: str = "", server: str = "openai:OpenAIServer"
) -> Json:
    """Run an agent whose model searches, and then calls the tool that is no other's, or the ``last``."""
    turns = iter(range(len(queries) + 1))

    def answer(request: Json) -> Reply:
        turn = next(turns)
        if turn < len(queries):
            return [ToolCall(f"call_{turn}", "search", {"query": queries[turn]})]
        called = last or next(
            name for tool in request["tools"] if (name := tool["function"]["name"]) not in {"search", "send"}
        )
        key = "answer" if called == "final_answer" else "text"
        return [ToolCall("call_last", called, {key: "done"})]

    program = f"report = structured.main({agent!r}, url, telemetry)"
    report: Json = _report_of(forks, name, program, server, answer)
    return report


@pytest.mark.parametrize("agent", _OUTPUT_TOOLS)
@pytest.mark.shows("001.wrong_answer")
def test_the_call_of_an_output_tool_is_an_answer(forks: Forks, agent: str) -> None:
    name = _OUTPUT_TOOLS[agent]
    counted = {"said": "done", "counted": {"search cut_json": 1}}
    assert _structured(forks, name, agent, "cut") == counted
    assert _structured(forks, name, agent, "cut", "cut row 7") == {**counted, "counted": {}}


@pytest.mark.parametrize(
    ("agent", "name", "server"),
    [
        ("gemini", "google-genai", "providers:GeminiServerWithIds"),
        ("bedrock", "bedrock", "anthropic:BedrockServer"),
        ("mistral", "mistralai", "tests.servers.mistral:MistralServer"),
    ],
)
@pytest.mark.shows("001.wrong_answer")
def test_the_last_call_is_an_answer_where_a_call_is_required(forks: Forks, agent: str, name: str, server: str) -> None:
    """The name of the last tool is that of no framework's output tool."""
    counted = {"said": "done", "counted": {"search cut_json": 1}}
    assert _structured(forks, name, agent, "cut", last="Answer", server=server) == counted
    assert _structured(forks, name, agent, "cut", "cut row 7", last="Answer", server=server) == {
        **counted,
        "counted": {},
    }


def test_a_call_that_waits_for_an_approval_is_no_answer(forks: Forks) -> None:
    report = _structured(forks, "langchain", "langchain_paused", "cut", last="send")
    assert report == {"said": "paused", "counted": {}}
