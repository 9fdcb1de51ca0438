"""The scripted model behind OpenAI's APIs: chat completions and Responses, whole and streamed.

What it received is the truth that tests compare with: ``server.requests`` and `tool_results`.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING
from uuid import uuid4

from agent_otel.testing.servers.replies import (
    Decider,
    Json,
    Reply,
    ToolCall,
    call_once,
    chat_tool_results,
    pieces,
    tool_results,
    usage,
)
from agent_otel.testing.servers.scripted import Answer, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_otel.testing.servers.scripted import Endpoint


__all__ = [
    "Decider",
    "Json",
    "OpenAIServer",
    "Reply",
    "ToolCall",
    "call_once",
    "chat_tool_results",
    "tool_results",
]


class OpenAIServer(ScriptedServer):
    """A server of ``/v1/chat/completions`` and ``/v1/responses``, and of Groq's ``/openai/v1/chat/completions``."""

    def endpoints(self) -> dict[str, Endpoint]:
        """Return both APIs."""
        return {
            "/v1/chat/completions": chat_answer,
            "/openai/v1/chat/completions": groq_answer,
            "/v1/responses": responses_answer,
        }

    @property
    def base_url(self) -> str:
        """The base URL for a client."""
        return f"{self.url}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that point an OpenAI client at this server."""
        return {"OPENAI_BASE_URL": self.base_url, "OPENAI_API_KEY": "scripted"}

    def messages(self, request: Json) -> list[Json]:
        """Return the messages of a chat completion."""
        messages: list[Json] = request.get("messages") or []
        return messages

    def seen(self, request: Json) -> Json:
        """Return the request itself: a decider gets that of either API."""
        return request


def responses_answer(request: Json, reply: Reply) -> Answer:
    """Answer a Responses request, streamed on request."""
    if not request.get("stream"):
        return Answer(json.dumps(_response(request, reply, _items(reply))).encode())
    return Answer(_encoded(_events(request, reply)), "text/event-stream")


def _encoded(events: Iterator[Json]) -> Iterator[bytes]:
    for number, event in enumerate(events):
        data = json.dumps({**event, "sequence_number": number})
        yield f"event: {event['type']}\ndata: {data}\n\n".encode()


def _items(reply: Reply) -> list[Json]:
    if isinstance(reply, str):
        return [
            {
                "id": f"msg_{uuid4().hex}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [_text_part(reply)],
            }
        ]
    return [
        {
            "id": f"fc_{uuid4().hex}",
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments_text,
            "status": "completed",
        }
        for call in reply
    ]


def _text_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _response(request: Json, reply: Reply, items: list[Json], status: str = "completed") -> Json:
    read, wrote = usage(request, reply)
    tokens = {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": wrote,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + wrote,
    }
    return {
        "id": f"resp_{uuid4().hex}",
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": request.get("instructions"),
        "metadata": {},
        "model": request.get("model", "scripted"),
        "output": items,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": request.get("tool_choice", "auto"),
        "tools": request.get("tools", []),
        "top_p": 1.0,
        "usage": tokens if status == "completed" else None,
    }


def _events(request: Json, reply: Reply) -> Iterator[Json]:
    items = _items(reply)
    begun = _response(request, reply, [], "in_progress")
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(items):
        empty: Json = {"content": []} if item["type"] == "message" else {"arguments": ""}
        yield {
            "type": "response.output_item.added",
            "output_index": index,
            "item": {**item, **empty, "status": "in_progress"},
        }
        place = {"item_id": item["id"], "output_index": index}
        yield from _message_events(item, place) if item["type"] == "message" else _call_events(item, place)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": {**_response(request, reply, items), "id": begun["id"]}}


def _message_events(item: Json, place: Json) -> Iterator[Json]:
    part = item["content"][0]
    place = {**place, "content_index": 0}
    yield {"type": "response.content_part.added", **place, "part": _text_part("")}
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}


def _call_events(item: Json, place: Json) -> Iterator[Json]:
    prefix = "response.function_call_arguments"
    for piece in pieces(item["arguments"]):
        yield {"type": f"{prefix}.delta", **place, "delta": piece}
    yield {"type": f"{prefix}.done", **place, "name": item["name"], "arguments": item["arguments"]}


# Chat completions in OpenAI's shape, whole and streamed. Groq's streams have the usage in a field of their own.


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


def chat_call(call: ToolCall, arguments: str) -> Json:
    """Return a call as a message of a chat has it."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def chat_completion(request: Json, reply: Reply) -> Json:
    """Return a whole chat completion."""
    message: Json = {"role": "assistant", "content": None, "refusal": None}
    if isinstance(reply, str):
        message["content"] = reply
    else:
        message["tool_calls"] = [chat_call(call, call.arguments_text) for call in reply]
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
            yield event({"tool_calls": [{"index": index, **chat_call(call, "")}]})
            for piece in pieces(call.arguments_text):
                yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    last = {"index": 0, "delta": {}, "finish_reason": _finish_reason(reply)}
    yield json.dumps({**head, "choices": [last], **(metadata or {})})
    if (request.get("stream_options") or {}).get("include_usage"):
        yield json.dumps({**head, "choices": [], "usage": _chat_usage(request, reply)})
    yield "[DONE]"


def _finish_reason(reply: Reply) -> str:
    return "stop" if isinstance(reply, str) else "tool_calls"
