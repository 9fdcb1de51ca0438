"""The scripted model behind Mistral's API, whole and streamed; in its streams each call comes in one piece."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_otel.testing.servers.openai import chat_answer, chat_completion
from agent_otel.testing.servers.scripted import Answer, ScriptedServer, result

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
        """Return a request's messages, which have OpenAI's shape; of a conversation those since it began."""
        if "inputs" not in request:
            messages: list[Json] = request["messages"]
            return messages
        place = next((at for at, sent in enumerate(self.requests) if sent is request), -1)
        until = [*self.requests[: place + 1]] if place >= 0 else [request]
        began = max((at for at, sent in enumerate(until) if "model" in sent), default=len(until) - 1)
        return [message for sent in until[began:] for message in _entries(sent.get("inputs", ()))]


def _entries(inputs: Any) -> Iterator[Json]:
    if isinstance(inputs, str):
        yield {"role": "user", "content": inputs}
        return
    for entry in inputs:
        if "result" in entry:
            yield result(entry["tool_call_id"], entry["result"])
        elif "content" in entry:
            yield {"role": entry.get("role", "user"), "content": entry["content"]}


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
                "arguments": call.arguments_text,
            }
            for call in reply
        ]
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    whole = {"object": "conversation.response", "conversation_id": "conv_1", "outputs": outputs, "usage": usage}
    return Answer(json.dumps(whole).encode())
