"""A stream with several answers (``n``) to one request to OpenAI: it asks for a tool when any of them does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agent_otel.testing.servers.openai import OpenAIServer
from agent_otel.testing.servers.scripted import Answer
from tests.forks import agents

if TYPE_CHECKING:
    from agent_otel.testing.servers.replies import Json, Reply
    from agent_otel.testing.servers.scripted import Endpoint
    from tests.forks import Forks

PROGRAM = """
client = openai.OpenAI(base_url={base_url!r}, api_key="scripted", max_retries=0)
asked = {{"id": "call_1", "type": "function", "function": {{"name": "search", "arguments": "{{}}"}}}}
conversation = [
    {{"role": "user", "content": "go"}},
    {{"role": "assistant", "tool_calls": [asked]}},
    {{"role": "tool", "tool_call_id": "call_1", "content": "x" * 300 + "... [9000 characters truncated] ..."}},
]
with agent_otel.execution("run-1"):
    report = len(list(client.chat.completions.create(model="scripted", messages=conversation, n=2, stream=True)))
"""
SAYS: Json = {"content": "It is there."}
ASKS: Json = {
    "tool_calls": [{"index": 0, "id": "call_2", "type": "function", "function": {"name": "search", "arguments": "{}"}}]
}


class TwoAnswers(OpenAIServer):
    """Streams one answer after the other."""

    answers: tuple[Json, ...]

    def endpoints(self) -> dict[str, Endpoint]:
        """Return the API of chat completions."""
        return {"/v1/chat/completions": self.streamed}

    def streamed(self, _request: Json, _reply: Reply) -> Answer:
        """Send each answer as a chunk with what it says, and one with the reason why it ended."""
        choices: list[Json] = []
        for index, delta in enumerate(self.answers):
            reason = "tool_calls" if delta is ASKS else "stop"
            choices.append({"index": index, "delta": delta, "finish_reason": None})
            choices.append({"index": index, "delta": {}, "finish_reason": reason})
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
        events = (json.dumps({**head, "choices": [choice]}) for choice in choices)
        return Answer((f"data: {event}\n\n".encode() for event in (*events, "[DONE]")), "text/event-stream")


@pytest.mark.parametrize(
    ("answers", "counted"),
    [((SAYS, SAYS), [("marker", 1)]), ((SAYS, ASKS), []), ((ASKS, SAYS), [])],
    ids=["both say", "the second asks", "the first asks"],
)
def test_an_answer_is_final_when_none_of_a_response_asks_for_a_tool(
    forks: Forks, answers: tuple[Json, ...], counted: list[tuple[str, int]]
) -> None:
    with TwoAnswers(lambda _: "") as server:
        server.answers = answers
        program = PROGRAM.format(base_url=server.base_url)
        told = forks.measure("openai-agents", agents("openai-agents"), program)
    assert (4, [], {}) == (told["report"], told["messages"], told["errors"])
    assert counted == [
        (metric["attributes"]["reason"], metric["sum"])
        for metric in told["metrics"]
        if metric["name"] == "agent_otel.answers.incomplete" and metric["sum"]
    ]
