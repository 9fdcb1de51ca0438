"""The scripted model of Mistral's chat, agents and conversations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_otel.testing.servers.openai import chat_completion
from agent_otel.testing.servers.scripted import Answer, ScriptedServer, answer, result

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_otel.testing.servers.replies import Json, Reply
    from agent_otel.testing.servers.scripted import Endpoint


class MistralServer(ScriptedServer):
    """A server of Mistral's chat and agents' completions, and of a conversation.

    In its streams each call comes in one piece.
    """

    def endpoints(self) -> Mapping[str, Endpoint]:
        """Return the endpoints by path."""
        conversations = ("/v1/conversations", "/v1/conversations/conv_1")
        completions = ("/v1/chat/completions", "/v1/agents/completions")
        return {**dict.fromkeys(completions, _mistral_answer), **dict.fromkeys(conversations, _conversation)}

    def messages(self, request: Json) -> list[Json]:
        """Return a request's messages, which have OpenAI's shape; of a conversation those since it began."""
        if "inputs" not in request:
            return super().messages(request)
        place = next((at for at, sent in enumerate(self.requests) if sent is request), -1)
        until = [*self.requests[: place + 1]] if place >= 0 else [request]
        began = max((at for at, sent in enumerate(until) if "model" in sent), default=len(until) - 1)
        return [message for sent in until[began:] for message in _entries(sent.get("inputs", ()))]


def _entries(inputs: Any) -> Iterator[Json]:
    for entry in [{"content": inputs}] if isinstance(inputs, str) else inputs:
        if "result" in entry:
            yield result(entry["tool_call_id"], entry["result"])
        elif "content" in entry:
            yield {"role": entry.get("role", "user"), "content": entry["content"]}


def _mistral_answer(request: Json, reply: Reply) -> Answer:
    completion = chat_completion(request, reply)
    choice = completion["choices"][0]
    whole = {"index": 0, "delta": choice["message"], "finish_reason": None}
    last = {"index": 0, "delta": {"content": ""}, "finish_reason": choice["finish_reason"]}
    return answer(request, completion, [*({**completion, "choices": [each]} for each in (whole, last)), "[DONE]"])


def _conversation(_: Json, reply: Reply) -> Answer:
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
