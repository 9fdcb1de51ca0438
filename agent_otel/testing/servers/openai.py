"""The scripted models of OpenAI's APIs, and of Cohere and Ollama with nearly the same shape.

Tests compare with the requests that a server received: ``server.requests`` and `tool_results`.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from agent_otel.messages.openai import call_item, chat_call
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
from agent_otel.testing.servers.scripted import Answer, ScriptedServer, answer, result

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent_otel.testing.servers.scripted import Endpoint


__all__ = ["Decider", "Json", "OpenAIServer", "Reply", "ToolCall", "call_once", "chat_tool_results", "tool_results"]


class OpenAIServer(ScriptedServer):
    """A server of ``/v1/chat/completions`` and ``/v1/responses``, and of Groq's ``/openai/v1/chat/completions``."""

    variables: ClassVar[Mapping[str, str]] = {
        "OPENAI_BASE_URL": "{url}/v1",
        "OPENAI_API_KEY": "scripted",
        "GROQ_BASE_URL": "{url}",
        "GROQ_API_KEY": "scripted",
    }

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

    def seen(self, request: Json) -> Json:
        """Return the request itself: a decider gets that of either API."""
        return request


def responses_answer(request: Json, reply: Reply) -> Answer:
    """Answer a Responses request, streamed on request."""
    return answer(request, _response(request, reply, _items(reply)), numbered(_events(request, reply)))


def numbered(events: Iterable[Json]) -> Iterator[Json]:
    """Yield events with their numbers."""
    return ({**event, "sequence_number": number} for number, event in enumerate(events))


def _items(reply: Reply) -> list[Json]:
    if isinstance(reply, str):
        said = {"type": "message", "role": "assistant", "status": "completed", "content": [_text_part(reply)]}
        return [{"id": f"msg_{uuid4().hex}", **said}]
    return [
        {"id": f"fc_{uuid4().hex}", **call_item(call.id, call.name, call.arguments_text), "status": "completed"}
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
        added = {**item, **empty, "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": added}
        yield from _message_events(item, {"item_id": item["id"], "output_index": index})
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": {**_response(request, reply, items), "id": begun["id"]}}


def _message_events(item: Json, place: Json) -> Iterator[Json]:
    """Yield the events within an item: a message, or a call."""
    if item["type"] != "message":
        prefix = "response.function_call_arguments"
        for piece in pieces(item["arguments"]):
            yield {"type": f"{prefix}.delta", **place, "delta": piece}
        yield {"type": f"{prefix}.done", **place, "name": item["name"], "arguments": item["arguments"]}
        return
    part = item["content"][0]
    place = {**place, "content_index": 0}
    yield {"type": "response.content_part.added", **place, "part": _text_part("")}
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}


# Chat completions in OpenAI's shape, whole and streamed. Groq's streams have the usage in a field of their own.


def chat_answer(request: Json, reply: Reply) -> Answer:
    """Answer a chat completion, streamed on request."""
    return answer(request, chat_completion(request, reply), _chunks(request, reply))


def groq_answer(request: Json, reply: Reply) -> Answer:
    """Answer a chat completion as Groq does."""
    metadata = {"x_groq": {"id": f"req_{uuid4().hex}", "usage": _chat_usage(request, reply)}}
    return answer(request, chat_completion(request, reply), _chunks(request, reply, metadata))


def _head(request: Json, kind: str) -> Json:
    head = {"id": f"chatcmpl-{uuid4().hex}", "object": kind, "created": int(time.time())}
    return {**head, "model": request.get("model", "scripted")}


def _chat_usage(request: Json, reply: Reply) -> Json:
    read, wrote = usage(request, reply)
    return {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote}


def chat_completion(request: Json, reply: Reply) -> Json:
    """Return a whole chat completion."""
    message: Json = {"role": "assistant", "content": reply if isinstance(reply, str) else None, "refusal": None}
    if not isinstance(reply, str):
        message["tool_calls"] = [chat_call(call.id, call.name, call.arguments_text) for call in reply]
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(reply), "logprobs": None}
    return {**_head(request, "chat.completion"), "choices": [choice], "usage": _chat_usage(request, reply)}


def _chunks(request: Json, reply: Reply, metadata: Json | None = None) -> Iterator[Json | str]:
    """Yield the chunks; the last one that has a choice also has the metadata."""
    head = _head(request, "chat.completion.chunk")
    deltas: list[Json] = [{"role": "assistant", "content": "" if isinstance(reply, str) else None}]
    if isinstance(reply, str):
        deltas += ({"content": piece} for piece in pieces(reply))
    else:
        for index, call in enumerate(reply):
            deltas.append({"tool_calls": [{"index": index, **chat_call(call.id, call.name, "")}]})
            arguments = ({"index": index, "function": {"arguments": piece}} for piece in pieces(call.arguments_text))
            deltas += ({"tool_calls": [each]} for each in arguments)
    for delta in deltas:
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    last = {"index": 0, "delta": {}, "finish_reason": _finish_reason(reply)}
    yield {**head, "choices": [last], **(metadata or {})}
    if (request.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": _chat_usage(request, reply)}
    yield "[DONE]"


def _finish_reason(reply: Reply) -> str:
    return "stop" if isinstance(reply, str) else "tool_calls"


class CohereServer(ScriptedServer):
    """A server of Cohere's ``/v2/chat``."""

    variables: ClassVar[Mapping[str, str]] = {"CO_API_URL": "{url}", "CO_API_KEY": "scripted"}

    def endpoints(self) -> Mapping[str, Endpoint]:
        """Return the endpoints by path."""
        return {"/v2/chat": _cohere_answer}


def _cohere_answer(request: Json, reply: Reply) -> Answer:
    read, wrote = usage(request, reply)
    counts = {"input_tokens": float(read), "output_tokens": float(wrote)}
    reason = "COMPLETE" if isinstance(reply, str) else "TOOL_CALL"
    end = {"finish_reason": reason, "usage": {"billed_units": counts, "tokens": counts}}
    message: Json = {"role": "assistant"}
    if isinstance(reply, str):
        message["content"] = [{"type": "text", "text": reply}]
    else:
        calls = [chat_call(call.id, call.name, call.arguments_text) for call in reply]
        message |= {"tool_plan": "", "tool_calls": calls}
    return answer(request, {"id": str(uuid4()), "message": message, **end}, _cohere_events(reply, end))


def _cohere_events(reply: Reply, end: Json) -> Iterator[Json]:
    def event(kind: str, index: int, message: Json | None = None) -> Json:
        return {"type": kind, "index": index, **({} if message is None else {"delta": {"message": message}})}

    yield {"type": "message-start", "id": str(uuid4()), "delta": {"message": {"role": "assistant", "content": []}}}
    if isinstance(reply, str):
        yield event("content-start", 0, {"content": {"type": "text", "text": ""}})
        for piece in pieces(reply):
            yield event("content-delta", 0, {"content": {"text": piece}})
        yield event("content-end", 0)
    else:
        for index, call in enumerate(reply):
            yield event("tool-call-start", index, {"tool_calls": chat_call(call.id, call.name, "")})
            for piece in pieces(call.arguments_text):
                yield event("tool-call-delta", index, {"tool_calls": {"function": {"arguments": piece}}})
            yield event("tool-call-end", index)
    yield {"type": "message-end", "delta": end}


class OllamaServer(ScriptedServer):
    """A server of Ollama's ``/api/chat`` and, whole, of ``/api/generate``.

    Calls are matched by order: its protocol has no ids.
    """

    variables: ClassVar[Mapping[str, str]] = {"OLLAMA_HOST": "{url}"}

    def __init__(self, decider: Decider) -> None:
        self._ids: dict[str, str] = {}
        super().__init__(decider)

    def endpoints(self) -> Mapping[str, Endpoint]:
        """Return the endpoints by path."""
        return {"/api/chat": _ollama_answer, "/api/generate": _generated}

    def replied(self, request: Json, reply: Reply) -> None:
        """Remember the ids of calls, which are not sent."""
        for call in reply if isinstance(reply, list) else ():
            self._ids[_key(request, call.name, json.loads(call.arguments_text))] = call.id

    def messages(self, request: Json) -> list[Json]:
        """Return a request's messages, with the ids of the calls that the model made."""
        found: list[Json] = []
        unanswered: list[str] = []
        for message in super().messages(request):
            calls = [call["function"] for call in message.get("tool_calls") or ()]
            unanswered += [
                self._ids.get(_key(request, call["name"], call["arguments"]), call["name"]) for call in calls
            ]
            found.append(
                result(unanswered.pop(0), message.get("content", "")) if message["role"] == "tool" else message
            )
        return found


#: The fields at the end of an answer; times are in nanoseconds.
_END = {
    "done": True,
    "total_duration": 4_000_000,
    "load_duration": 1_000_000,
    "prompt_eval_count": 10,
    "prompt_eval_duration": 1_000_000,
    "eval_count": 2,
    "eval_duration": 2_000_000,
}


def _key(request: Json, name: str, arguments: Any) -> str:
    said = [message["content"] for message in request.get("messages", []) if message["role"] == "user"]
    return json.dumps([said, name, arguments], sort_keys=True)


def _generated(request: Json, reply: Reply) -> Answer:
    return Answer({**_of_ollama(request), "response": str(reply), **_END, "context": [1, 2, 3]})


def _of_ollama(request: Json) -> Json:
    return {"model": request["model"], "created_at": "2026-11-21T00:00:00Z"}


def _ollama_answer(request: Json, reply: Reply) -> Answer:
    if not request.get("stream"):
        return Answer(_part(request, reply, done=True))
    parts = [_part(request, piece) for piece in (pieces(reply) if isinstance(reply, str) else (reply,))]
    lines = (json.dumps(part).encode() + b"\n" for part in (*parts, _part(request, "", done=True)))
    return Answer(lines, "application/x-ndjson")


def _part(request: Json, reply: Reply, *, done: bool = False) -> Json:
    message: Json = {"role": "assistant", "content": reply if isinstance(reply, str) else ""}
    if not isinstance(reply, str):
        calls = [{"name": call.name, "arguments": json.loads(call.arguments_text)} for call in reply]
        message["tool_calls"] = [{"function": call} for call in calls]
    return {**_of_ollama(request), "message": message, **({"done_reason": "stop", **_END} if done else {"done": False})}
