"""Hand-written loops without any execution: lost histories are found, healthy ones are quiet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import ToolCall
from tests.system.scripted_child import report_of
from tests.system.threads.programs import KEPT, LOST, PROGRAMS

if TYPE_CHECKING:
    from agent_otel.testing.servers.openai import Reply
    from tests.forks import Forks

_STACKS = {
    "openai_chat": ("openai-agents", "openai:OpenAIServer"),
    "openai_responses": ("openai-agents", "openai:OpenAIServer"),
    "anthropic": ("anthropic", "anthropic:AnthropicServer"),
    "langgraph": ("langchain", "openai:OpenAIServer"),
    "dspy": ("dspy", "openai:OpenAIServer"),
    "smolagents": ("smolagents", "openai:OpenAIServer"),
}


@pytest.mark.parametrize("stack", _STACKS)
def test_lost_histories_are_found_and_healthy_ones_are_quiet(forks: Forks, stack: str) -> None:
    environment, server = _STACKS[stack]
    numbers = iter(range(10_000))

    def decide(request: Any) -> Reply:
        number = next(numbers)
        if request["model"] == "finish":
            return [ToolCall(f"call_{number}", "final_answer", {"answer": "done"})]
        return [ToolCall(f"call_{number}", "search", {"query": str(number)})] if request["model"] == "call" else "done"

    report = report_of("tests.system.threads.programs", stack, forks, environment, server, decide)

    assert report["messages"] == []
    lost = {shape: counts["model.history.lost"] for shape, counts in report["shapes"].items()}
    assert lost == {shape: count for shape, (_, count) in LOST.items()} | dict.fromkeys([*KEPT, *PROGRAMS], 0)
    cut = {shape: counts["tool.results.truncated"] for shape, counts in report["shapes"].items()}
    assert {shape for shape, count in cut.items() if count} <= {"each cut to 100", "results emptied"}
    assert cut["each cut to 100"] == 5
    incomplete = {shape for shape, counts in report["shapes"].items() if counts["answers.incomplete"]}
    assert incomplete.isdisjoint([*KEPT.keys() - {"each cut to 100"}, *PROGRAMS])
    assert {} == {shape: n for shape, counts in report["shapes"].items() if (n := counts["tool.results.unmatched"])}
