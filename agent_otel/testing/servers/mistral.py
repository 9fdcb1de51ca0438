"""The scripted model behind Mistral's API, whole and streamed; in its streams each call comes in one piece."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent_otel.testing.servers.openai_chat import chat_answer, chat_completion
from agent_otel.testing.servers.scripted import ScriptedServer, result
from agent_otel.testing.servers.web import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_otel.testing.servers.scripted import Endpoint, Json, Reply


class MistralServer(ScriptedServer):
    """A server of chat and agents' completions and a conversation, whose answers are texts."""

    def endpoints(self) -> Mapping[str, Endpoint]:
        """Return the endpoints by path."""
        conversations = ("/v1/conversations", "/v1/conversations/conv_1")
        return {
            "/v1/chat/completions": _answer,
            "/v1/agents/completions": _answer,
            **dict.fromkeys(conversations, _conversation),
        }

    def messages(self, request: Json) -> list[Json]:
        """Return a request's messages, which have OpenAI's shape; of a conversation the results that it appends."""
        messages: list[Json] = request.get("messages", [])
        entries = request.get("inputs")
        new = entries if isinstance(entries, list) else []
        return [*messages, *(result(entry["tool_call_id"], entry["result"]) for entry in new if "result" in entry)]


def _answer(request: Json, reply: Reply) -> Answer:
    if not request.get("stream"):
        return chat_answer(request, reply)
    return Answer((f"data: {event}\n\n".encode() for event in _events(request, reply)), "text/event-stream")


def _events(request: Json, reply: Reply) -> Iterator[str]:
    completion = chat_completion(request, reply)
    choice = completion["choices"][0]
    delta, finish = choice.pop("message"), choice.pop("finish_reason")
    yield json.dumps({**completion, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    last = {"index": 0, "delta": {"content": ""}, "finish_reason": finish}
    yield json.dumps({**completion, "choices": [last]})
    yield "[DONE]"


def _conversation(request: Json, reply: Reply) -> Answer:
    del request
    outputs: list[Json] = [{"object": "entry", "type": "message.output", "role": "assistant", "content": reply}]
    if not isinstance(reply, str):
        outputs = [
            {
                "object": "entry",
                "type": "function.call",
                "tool_call_id": call.id,
                "name": call.name,
                "arguments": json.dumps(call.arguments),
            }
            for call in reply
        ]
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    whole = {"object": "conversation.response", "conversation_id": "conv_1", "outputs": outputs, "usage": usage}
    return Answer(json.dumps(whole).encode())
