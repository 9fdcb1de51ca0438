"""Chat completions in OpenAI's shape, whole and streamed. Groq's streams have the usage in a field of their own."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING
from uuid import uuid4

from agent_otel.testing.servers.replies import pieces, usage
from agent_otel.testing.servers.web import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_otel.testing.servers.replies import Json, Reply, ToolCall


def chat_answer(request: Json, reply: Reply) -> Answer:
    """Answer a chat completion, streamed on request."""
    if not request.get("stream"):
        return Answer(json.dumps(chat_completion(request, reply)).encode())
    return _streamed(_chat_events(request, reply))


def groq_answer(request: Json, reply: Reply) -> Answer:
    """Answer a chat completion as Groq does."""
    if not request.get("stream"):
        return chat_answer(request, reply)
    metadata = {"x_groq": {"id": f"req_{uuid4().hex}", "usage": _chat_usage(request, reply)}}
    return _streamed(_chat_events(request, reply, metadata))


def _streamed(events: Iterator[str]) -> Answer:
    return Answer((f"data: {event}\n\n".encode() for event in events), "text/event-stream")


def _head(request: Json, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": request.get("model", "scripted"),
    }


def _chat_usage(request: Json, reply: Reply) -> Json:
    read, wrote = usage(request, reply)
    return {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote}


def _chat_call(call: ToolCall, arguments: str) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def chat_completion(request: Json, reply: Reply) -> Json:
    """Return a whole chat completion."""
    message: Json = {"role": "assistant", "content": None, "refusal": None}
    if isinstance(reply, str):
        message["content"] = reply
    else:
        message["tool_calls"] = [_chat_call(call, call.arguments_text) for call in reply]
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(reply), "logprobs": None}
    return {**_head(request, "chat.completion"), "choices": [choice], "usage": _chat_usage(request, reply)}


def _chat_events(request: Json, reply: Reply, metadata: Json | None = None) -> Iterator[str]:
    """Yield the chunks; the last one that has a choice also has the metadata."""
    head = _head(request, "chat.completion.chunk")

    def event(delta: Json) -> str:
        return json.dumps({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})

    yield event({"role": "assistant", "content": "" if isinstance(reply, str) else None})
    if isinstance(reply, str):
        for piece in pieces(reply):
            yield event({"content": piece})
    else:
        for index, call in enumerate(reply):
            yield event({"tool_calls": [{"index": index, **_chat_call(call, "")}]})
            for piece in pieces(call.arguments_text):
                yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    last = {"index": 0, "delta": {}, "finish_reason": _finish_reason(reply)}
    yield json.dumps({**head, "choices": [last], **(metadata or {})})
    if (request.get("stream_options") or {}).get("include_usage"):
        yield json.dumps({**head, "choices": [], "usage": _chat_usage(request, reply)})
    yield "[DONE]"


def _finish_reason(reply: Reply) -> str:
    return "stop" if isinstance(reply, str) else "tool_calls"
