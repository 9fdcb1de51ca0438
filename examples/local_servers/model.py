"""A model without weights: speaks OpenAI's chat completions over real HTTP and lets a function decide what to say."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import uuid4

from examples.local_servers.web import Answer, LoopbackServer, Route

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class ToolCall:
    """One tool call asked for by the model. Arguments given as text go out as they are: models write broken JSON."""

    id: str
    name: str
    arguments: Mapping[str, Any] | str

    @property
    def arguments_text(self) -> str:
        """The arguments as the wire carries them."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


Reply: TypeAlias = str | list[ToolCall]
"""A text, or the tool calls of one turn; more than one is a parallel call."""

Decider: TypeAlias = Callable[[Json], Reply]
"""Gets the request's body, parsed; decides what the model says to it."""

Endpoint: TypeAlias = Callable[[Json, Reply], Answer]


class ChatServer(LoopbackServer):
    """Serves ``POST /v1/chat/completions``, whole and streamed, and keeps every request it got."""

    def __init__(self, decider: Decider, **more: Endpoint) -> None:
        """Serve chat completions and ``more`` endpoints, each named by the last part of its path."""
        self.requests: list[Json] = []
        self._decider = decider
        super().__init__(
            {
                "/v1/chat/completions": self._route(chat_answer),
                **{f"/v1/{name}": self._route(endpoint) for name, endpoint in more.items()},
            }
        )

    @property
    def base_url(self) -> str:
        """What a client takes as its base URL."""
        return f"{self.url}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that point an OpenAI client at this server."""
        return {"OPENAI_BASE_URL": self.base_url, "OPENAI_API_KEY": "scripted"}

    def _route(self, endpoint: Endpoint) -> Route:
        def answer(body: bytes) -> Answer:
            request = json.loads(body)
            self.requests.append(request)
            try:
                reply = self._decider(request)
            except Exception as error:
                # 400 and not 500: clients retry a 500, and a fault in a script should show at once.
                message = f"the script failed, {type(error).__name__}: {error}"
                return Answer(json.dumps({"error": {"message": message}}).encode(), status=400)
            return endpoint(request, reply)

        return answer


def chat_answer(request: Json, reply: Reply) -> Answer:
    """Answer a chat completion, streamed when the request says so."""
    if not request.get("stream"):
        return Answer(json.dumps(_chat_completion(request, reply)).encode())
    return Answer((f"data: {event}\n\n".encode() for event in _chat_events(request, reply)), "text/event-stream")


def usage(request: Json, reply: Reply) -> tuple[int, int]:
    """Tokens in and out by the usual rule of thumb, four characters to a token."""
    said = reply if isinstance(reply, str) else "".join(call.arguments_text for call in reply)
    return len(json.dumps(request)) // 4, len(said) // 4 + 1


def pieces(text: str) -> Iterator[str]:
    """Two halves, so that a client has to put a streamed value together."""
    middle = len(text) // 2
    return (part for part in (text[:middle], text[middle:]) if part)


def text_of(content: Any) -> str:
    """Return the text of a message's content, which is a string, a list of text parts, or nothing."""
    if isinstance(content, str):
        return content
    parts: Iterable[Any] = content or ()
    return "".join(part.get("text") or "" for part in parts if isinstance(part, dict))


def chat_tool_results(request: Json) -> dict[str, str]:
    """Tool results in a chat request by call id, as they stood on the wire."""
    messages: list[Json] = request.get("messages") or []
    return {m["tool_call_id"]: text_of(m.get("content")) for m in messages if m.get("role") == "tool"}


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


def _chat_completion(request: Json, reply: Reply) -> Json:
    message: Json = {"role": "assistant", "content": None, "refusal": None}
    if isinstance(reply, str):
        message["content"] = reply
    else:
        message["tool_calls"] = [_chat_call(call, call.arguments_text) for call in reply]
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(reply), "logprobs": None}
    return {**_head(request, "chat.completion"), "choices": [choice], "usage": _chat_usage(request, reply)}


def _chat_events(request: Json, reply: Reply) -> Iterator[str]:
    head = _head(request, "chat.completion.chunk")

    def event(delta: Json, finish_reason: str | None = None) -> str:
        return json.dumps({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})

    yield event({"role": "assistant", "content": "" if isinstance(reply, str) else None})
    if isinstance(reply, str):
        for piece in pieces(reply):
            yield event({"content": piece})
    else:
        for index, call in enumerate(reply):
            yield event({"tool_calls": [{"index": index, **_chat_call(call, "")}]})
            for piece in pieces(call.arguments_text):
                yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield event({}, _finish_reason(reply))
    if (request.get("stream_options") or {}).get("include_usage"):
        yield json.dumps({**head, "choices": [], "usage": _chat_usage(request, reply)})
    yield "[DONE]"


def _finish_reason(reply: Reply) -> str:
    return "stop" if isinstance(reply, str) else "tool_calls"
