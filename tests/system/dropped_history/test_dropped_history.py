"""Windows of frameworks and of hand-written loops: what they drop, in bytes and turns, and the task when it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_otel.testing.servers.openai import ToolCall
from tests.system.dropped_history.programs import TOOL, TURNS
from tests.system.scripted_child import report_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Reply
    from tests.environments import Environment

_AGENTS = {
    "openai_chat": ("openai-agents", "openai:OpenAIServer"),
    "anthropic": ("anthropic", "anthropic:AnthropicServer"),
    "langchain": ("langchain", "openai:OpenAIServer"),
    "autogen": ("autogen", "openai:OpenAIServer"),
}


@pytest.mark.parametrize("agent", _AGENTS)
@pytest.mark.shows("000.tail_window")
def test_a_window_of_four_messages_drops_the_task_and_four_turns(
    environment: Callable[[str], Environment], agent: str
) -> None:
    name, server = _AGENTS[agent]
    turns = iter(range(TURNS + 1))

    def decide(_: object) -> Reply:
        turn = next(turns)
        return [ToolCall(f"call_{turn}", TOOL, {"page": turn})] if turn < TURNS else "done"

    report = report_of("tests.system.dropped_history.programs", agent, environment(name), server, decide)

    # The last request has 4 messages of 13. The arguments are {"page": 0}; Anthropic's are an object, {"page":0}.
    arguments = 10 if agent == "anthropic" else 11
    dropped = 20 + 4 * arguments + 100 + 101 + 102 + 103
    assert report == {"counted": {"dropped": dropped, "dropped_turns": 4, "dropped_tasks": 1}, "messages": []}


@pytest.mark.shows("000.tail_window")
def test_a_chat_that_is_trimmed_to_whole_exchanges(environment: Callable[[str], Environment]) -> None:
    turns = iter(range(6))

    def decide(_: object) -> Reply:
        """Ask for a page at each question, and answer."""
        turn = next(turns)
        return "done" if turn % 2 else [ToolCall(f"call_{turn}", TOOL, {"page": turn})]

    server = "openai:OpenAIServer"
    report = report_of("tests.system.dropped_history.programs", "langgraph", environment("langchain"), server, decide)

    # At the third question there are 9 messages. The last 7 of them begin with a result, so that those from the second
    # question on are left, and of the first exchange all is gone: the question, {"page": 0}, 100 bytes, "done".
    assert report == {
        "counted": {"dropped": 20 + 11 + 100 + 4, "dropped_turns": 2, "dropped_tasks": 1},
        "messages": [],
    }
