"""The scripted model behind Anthropic's Messages API, whole and streamed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import uuid4

from agent_otel.testing.servers.replies import pieces, usage
from agent_otel.testing.servers.scripted import Answer, Decider, Json, Reply, ScriptedServer, result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_otel.testing.servers.scripted import Endpoint

#: Tokens of the prompt that it reports as cached.
CACHED_TOKENS = 7


class AnthropicServer(ScriptedServer):
    """A server of ``/v1/messages``, which keeps the turns of a thread for requests that continue it.

    As at the API, each response of a thread can be continued once, by a request without system prompt and tools.
    """

    def __init__(self, decider: Decider) -> None:
        self._kept: dict[str, list[Json]] = {}
        self._continued: set[str] = set()
        super().__init__(decider)

    def endpoints(self) -> dict[str, Endpoint]:
        """Return the API of messages, with or without its beta."""
        return {"/v1/messages": self._answer}

    @property
    def environment(self) -> dict[str, str]:
        """The variables that point an Anthropic client at this server."""
        return {"ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": "scripted"}

    def messages(self, request: Json) -> list[Json]:
        """Return a request's messages; a user message's tool results come before its texts."""
        thread: Json = request.get("thread") or {}
        return [*self._kept.get(thread.get("previous_message_id", ""), ()), *messages_of(request)]

    def _answer(self, request: Json, reply: Reply) -> Answer:
        message = message_of(request, reply)
        thread: Json = request.get("thread") or {}
        if thread.get("type") == "continue":
            before = thread["previous_message_id"]
            if before in self._continued:
                return _rejected("thread_already_continued")
            if "tools" in request or "system" in request:
                return _rejected("create_only_fields")
            self._continued.add(before)
        self._kept[message["id"]] = self.messages(request)
        if not request.get("stream"):
            return Answer(json.dumps(message).encode())
        events = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events_of(message))
        return Answer(events, "text/event-stream")


def _rejected(code: str) -> Answer:
    error = {"type": "invalid_request_error", "message": code, "details": {"error_code": code}}
    return Answer(json.dumps({"type": "error", "error": error}).encode(), status=400)


def messages_of(request: Json) -> list[Json]:
    """Return the messages of a request in OpenAI's shape."""
    found: list[Json] = []
    for message in request["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        found += [result(b["tool_use_id"], b.get("content")) for b in blocks if b["type"] == "tool_result"]
        said = [block for block in blocks if block["type"] == "text"]
        if said:
            found.append({"role": message["role"], "content": said})
    return found


def _blocks(request: Json, reply: Reply) -> list[Json]:
    if isinstance(reply, str):
        return [{"type": "text", "text": reply, "citations": None}]
    return [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments_text)}
        | _toolset(request, call.name)
        for call in reply
    ]


def _toolset(request: Json, name: str) -> Json:
    """Return the toolset of a tool that the request does not name.

    Toolsets have no names, and types such as ``browser_toolset_20260801``.
    """
    tools = request.get("tools", ())
    families = [tool["type"].partition("_")[0] for tool in tools if "name" not in tool and "_toolset_" in tool["type"]]
    is_named = any(tool.get("name") == name for tool in tools)
    return {"toolset_name": families[0]} if families and not is_named else {}


def message_of(request: Json, reply: Reply) -> Json:
    """Return the message that answers a request."""
    read, wrote = usage(request, reply)
    return {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "scripted"),
        "content": _blocks(request, reply),
        "stop_reason": "end_turn" if isinstance(reply, str) else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": read, "output_tokens": wrote, "cache_read_input_tokens": CACHED_TOKENS},
    }


def events_of(message: Json) -> Iterator[Json]:
    """Yield the events of a stream of a message."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        is_text = block["type"] == "text"
        empty: Json = {"text": ""} if is_text else {"input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
        for piece in pieces(block["text"] if is_text else json.dumps(block["input"])):
            delta = (
                {"type": "text_delta", "text": piece}
                if is_text
                else {"type": "input_json_delta", "partial_json": piece}
            )
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": message["usage"]["output_tokens"]}}
    yield {"type": "message_stop"}
