"""Windows of frameworks and of hand-written loops: what they drop, in bytes and turns, and the task when it goes."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest

from agent_otel.testing.servers.openai import OpenAIServer, ToolCall
from agent_otel.testing.servers.scripted import Answer
from tests.system.dropped_history.programs import TOOL, TURNS
from tests.system.scripted_child import report_of

if TYPE_CHECKING:
    from agent_otel.testing.servers.openai import Decider, Json, Reply
    from agent_otel.testing.servers.scripted import Endpoint
    from tests.forks import Forks

_PROGRAMS = "tests.system.dropped_history.programs"
_AGENTS = {
    "openai_chat": ("openai-agents", "openai:OpenAIServer"),
    "anthropic": ("anthropic", "anthropic:AnthropicServer"),
    "langchain": ("langchain", "openai:OpenAIServer"),
    "autogen": ("autogen", "openai:OpenAIServer"),
}


@pytest.mark.parametrize("agent", _AGENTS)
@pytest.mark.shows("000.tail_window")
def test_a_window_of_four_messages_drops_the_task_and_four_turns(forks: Forks, agent: str) -> None:
    name, server = _AGENTS[agent]
    turns = iter(range(TURNS + 1))

    def decide(_: object) -> Reply:
        turn = next(turns)
        return [ToolCall(f"call_{turn}", TOOL, {"page": turn})] if turn < TURNS else "done"

    report = report_of(_PROGRAMS, agent, forks, name, server, decide)

    # The last request has 4 messages of 13. The arguments are {"page": 0}; Anthropic's are an object, {"page":0}.
    arguments = 10 if agent == "anthropic" else 11
    dropped = 20 + 4 * arguments + 100 + 101 + 102 + 103
    assert report == {"counted": {"dropped": dropped, "dropped_turns": 4, "dropped_tasks": 1}, "messages": []}


@pytest.mark.shows("000.tail_window")
def test_a_chat_that_is_trimmed_to_whole_exchanges(forks: Forks) -> None:
    turns = iter(range(6))

    def decide(_: object) -> Reply:
        """Ask for a page at each question, and answer."""
        turn = next(turns)
        return "done" if turn % 2 else [ToolCall(f"call_{turn}", TOOL, {"page": turn})]

    server = "openai:OpenAIServer"
    report = report_of(_PROGRAMS, "langgraph", forks, "langchain", server, decide)

    # At the third question there are 9 messages. The last 7 of them begin with a result, so that those from the second
    # question on are left, and of the first exchange all is gone: the question, {"page": 0}, 100 bytes, "done".
    assert report == {
        "counted": {"dropped": 20 + 11 + 100 + 4, "dropped_turns": 2, "dropped_tasks": 1},
        "messages": [],
    }


def _questions() -> Decider:
    """Return a model that asks for a page at each question, and answers."""
    calls = itertools.count()

    def decide(request: Json) -> Reply:
        is_answered = request["input"][-1].get("type") == "function_call_output"
        return "done" if is_answered else [ToolCall(f"call_{next(calls)}", TOOL, {"page": 1})]

    return decide


class _CompactingServer(OpenAIServer):
    """Serves ``/v1/responses/compact`` as well: it keeps the user's messages, and hides the rest in one item."""

    def endpoints(self) -> dict[str, Endpoint]:
        """Return all three APIs."""
        return {**super().endpoints(), "/v1/responses/compact": _compact}


def _compact(request: Json, _: Reply) -> Answer:
    items = [item for item in request["input"] if item.get("role") == "user"]
    compaction = {"id": "cmp_1", "type": "compaction", "encrypted_content": "c" * 60}
    found = {"id": "resp_c", "object": "response.compaction", "created_at": 0, "output": [*items, compaction]}
    counts = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return Answer(json.dumps({**found, "usage": {**counts, **details}}).encode())


@pytest.mark.shows("000.summarising_session")
def test_a_session_that_the_provider_compacts(forks: Forks) -> None:
    report = report_of(_PROGRAMS, "agents_compaction", forks, "openai-agents", _CompactingServer, _questions())
    assert report == {"counted": {}, "summarized": True, "messages": []}


@pytest.mark.shows("000.summarising_session")
def test_a_middleware_that_summarises(forks: Forks) -> None:
    turns = iter(range(TURNS + 1))

    def decide(request: Json) -> Reply:
        if "tools" not in request:
            return "All pages so far: r."
        turn = next(turns)
        return [ToolCall(f"call_{turn}", TOOL, {"page": turn})] if turn < TURNS else "done"

    report = report_of(_PROGRAMS, "langchain_summary", forks, "langchain", "openai:OpenAIServer", decide)
    assert report == {"counted": {}, "summarized": True, "messages": []}


@pytest.mark.shows("000.summarising_session")
def test_a_session_store_with_a_window(forks: Forks) -> None:
    report = report_of(_PROGRAMS, "agents_window", forks, "openai-agents", "openai:OpenAIServer", _questions())
    # Of the first exchange: the question, {"page": 1}, 101 bytes, "done".
    assert report == {
        "counted": {"dropped": 20 + 11 + 101 + 4, "dropped_turns": 2, "dropped_tasks": 1},
        "messages": [],
    }
