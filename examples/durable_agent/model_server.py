"""The model that needs no key: it searches for three topics in each turn, for as many turns as it is told to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel.testing.servers.openai import Json, OpenAIServer, Reply, ToolCall, chat_tool_results
from examples.durable_agent.repository import topic_of

if TYPE_CHECKING:
    from collections.abc import Callable

SEARCHES = 3
"""Calls of one turn, which are parallel."""


def scripted_model(turns: int, heard: Callable[[int], None]) -> OpenAIServer:
    """Return the server, to be used in a ``with`` statement; ``heard`` is called with the number of each turn."""

    def decide(request: Json) -> Reply:
        # The turn is counted in the conversation, so that a request that is sent again gets the same answer.
        turn = 1 + sum(bool(message.get("tool_calls")) for message in request["messages"])
        heard(turn)
        if turn <= turns:
            first = SEARCHES * (turn - 1) + 1
            return [_search(topic_of(number)) for number in range(first, first + SEARCHES)]
        results = chat_tool_results(request).values()
        lines = sum(result.count("\n") for result in results)
        return f"I have read {len(results)} search results, {lines} lines of them; the rest was cut before I saw it."

    return OpenAIServer(decide)


def _search(topic: str) -> ToolCall:
    return ToolCall(f"call_{topic}", "search_code", {"pattern": topic})
