"""The scripted model behind Cohere's chat, whole and streamed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import uuid4

from agent_otel.testing.servers.openai import chat_call
from agent_otel.testing.servers.replies import pieces, usage
from agent_otel.testing.servers.scripted import Answer, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_otel.testing.servers.scripted import Endpoint, Json, Reply


class CohereServer(ScriptedServer):
    """A server of ``/v2/chat``."""

    def endpoints(self) -> Mapping[str, Endpoint]:
        """Return the endpoints by path."""
        return {"/v2/chat": _answer}

    @property
    def environment(self) -> dict[str, str]:
        """The variables that point a client at this server."""
        return {"CO_API_URL": self.url, "CO_API_KEY": "scripted"}

    def messages(self, request: Json) -> list[Json]:
        """Return a request's messages, which have OpenAI's shape; a result may consist of documents."""
        return [{**message, "content": _text(message.get("content"))} for message in request["messages"]]


def _text(content: object) -> object:
    if not isinstance(content, list):
        return content
    return [{"text": block["document"]["data"]} if "document" in block else block for block in content]


def _answer(request: Json, reply: Reply) -> Answer:
    if not request.get("stream"):
        message: Json = {"role": "assistant"}
        if isinstance(reply, str):
            message["content"] = [{"type": "text", "text": reply}]
        else:
            message |= {"tool_plan": "", "tool_calls": [chat_call(call, call.arguments_text) for call in reply]}
        end = _end(request, reply)
        return Answer(json.dumps({"id": str(uuid4()), "message": message, **end}).encode())
    events = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in _events(request, reply))
    return Answer((event.encode() for event in events), "text/event-stream")


def _end(request: Json, reply: Reply) -> Json:
    read, wrote = usage(request, reply)
    counts = {"input_tokens": float(read), "output_tokens": float(wrote)}
    reason = "COMPLETE" if isinstance(reply, str) else "TOOL_CALL"
    return {"finish_reason": reason, "usage": {"billed_units": counts, "tokens": counts}}


def _events(request: Json, reply: Reply) -> Iterator[Json]:
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
            yield event("tool-call-start", index, {"tool_calls": chat_call(call, "")})
            for piece in pieces(call.arguments_text):
                yield event("tool-call-delta", index, {"tool_calls": {"function": {"arguments": piece}}})
            yield event("tool-call-end", index)
    yield {"type": "message-end", "delta": _end(request, reply)}
