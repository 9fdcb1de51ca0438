"""The scripted model behind Bedrock's Converse API and Anthropic's InvokeModel, whole and as an event stream."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import TYPE_CHECKING

from agent_otel.testing.servers.anthropic import events_of, message_of, messages_of
from agent_otel.testing.servers.replies import pieces, usage
from agent_otel.testing.servers.scripted import Answer, Json, Reply, ScriptedServer, result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_otel.testing.servers.scripted import Endpoint

#: Tokens of the prompt that it reports as cached.
CACHED_TOKENS = 3


class BedrockServer(ScriptedServer):
    """A server of Converse, and of InvokeModel with the bodies of Anthropic's models, each also streamed."""

    def endpoints(self) -> dict[str, Endpoint]:
        """Return both APIs, each whole and streamed."""
        return {
            "/model/*/converse": _whole,
            "/model/*/converse-stream": _streamed,
            "/model/*/invoke": _invoked,
            "/model/*/invoke-with-response-stream": _invoked_streamed,
        }

    @property
    def environment(self) -> dict[str, str]:
        """The variables that point a client of Bedrock at this server."""
        keys = {"AWS_ACCESS_KEY_ID": "scripted", "AWS_SECRET_ACCESS_KEY": "scripted", "AWS_DEFAULT_REGION": "us-east-1"}
        return {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": self.url, **keys}

    def messages(self, request: Json) -> list[Json]:
        """Return a request's messages; a user message's tool results come before its texts."""
        if "anthropic_version" in request:
            return messages_of(request)
        found: list[Json] = []
        for message in request["messages"]:
            answers = [block["toolResult"] for block in message["content"] if "toolResult" in block]
            found += [result(answer["toolUseId"], _text(answer["content"])) for answer in answers]
            said = "".join(block.get("text", "") for block in message["content"])
            if said:
                found.append({"role": message["role"], "content": said})
        return found


def _text(blocks: list[Json]) -> str:
    return "".join(
        block["text"] if "text" in block else json.dumps(block["json"], ensure_ascii=False, separators=(",", ":"))
        for block in blocks
        if "text" in block or "json" in block
    )


def _whole(request: Json, reply: Reply) -> Answer:
    blocks: list[Json] = [{"text": reply}] if isinstance(reply, str) else []
    if not isinstance(reply, str):
        blocks = [
            {"toolUse": {"toolUseId": call.id, "name": call.name, "input": json.loads(call.arguments_text)}}
            for call in reply
        ]
    answer = {
        "output": {"message": {"role": "assistant", "content": blocks}},
        "stopReason": _stop_reason(reply),
        "usage": _usage(request, reply),
        "metrics": {"latencyMs": 1},
    }
    return Answer(json.dumps(answer).encode())


def _stop_reason(reply: Reply) -> str:
    return "end_turn" if isinstance(reply, str) else "tool_use"


def _usage(request: Json, reply: Reply) -> Json:
    read, wrote = usage(request, reply)
    tokens = {"inputTokens": read, "outputTokens": wrote, "totalTokens": read + wrote}
    return {**tokens, "cacheReadInputTokens": CACHED_TOKENS}


def _streamed(request: Json, reply: Reply) -> Answer:
    events = (_frame(kind, body) for kind, body in _events(request, reply))
    return Answer(events, "application/vnd.amazon.eventstream")


def _events(request: Json, reply: Reply) -> Iterator[tuple[str, Json]]:
    yield "messageStart", {"role": "assistant"}
    if isinstance(reply, str):
        for piece in pieces(reply):
            yield "contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}}
        yield "contentBlockStop", {"contentBlockIndex": 0}
    else:
        for index, call in enumerate(reply):
            start = {"toolUse": {"toolUseId": call.id, "name": call.name}}
            yield "contentBlockStart", {"contentBlockIndex": index, "start": start}
            for piece in pieces(call.arguments_text):
                yield "contentBlockDelta", {"contentBlockIndex": index, "delta": {"toolUse": {"input": piece}}}
            yield "contentBlockStop", {"contentBlockIndex": index}
    yield "messageStop", {"stopReason": _stop_reason(reply)}
    yield "metadata", {"usage": _usage(request, reply), "metrics": {"latencyMs": 1}}


def _invoked(request: Json, reply: Reply) -> Answer:
    read, wrote = usage(request, reply)
    counts = {"X-Amzn-Bedrock-Input-Token-Count": str(read), "X-Amzn-Bedrock-Output-Token-Count": str(wrote)}
    return Answer(json.dumps(message_of(request, reply)).encode(), headers=counts)


def _invoked_streamed(request: Json, reply: Reply) -> Answer:
    return Answer(map(_chunk, _invoked_events(request, reply)), "application/vnd.amazon.eventstream")


def _invoked_events(request: Json, reply: Reply) -> Iterator[Json]:
    read, wrote = usage(request, reply)
    metrics = {"inputTokenCount": read, "outputTokenCount": wrote}
    for event in events_of(message_of(request, reply)):
        is_last = event["type"] == "message_stop"
        yield {**event, "amazon-bedrock-invocationMetrics": metrics} if is_last else event


def _chunk(event: Json) -> bytes:
    return _frame("chunk", {"bytes": base64.b64encode(json.dumps(event).encode()).decode()})


def _frame(kind: str, body: Json) -> bytes:
    """Return a message of Amazon's event-stream encoding: lengths, their checksum, headers, payload, checksum."""
    payload = json.dumps(body).encode()
    headers = b"".join(
        _header(name, value)
        for name, value in (
            (":event-type", kind),
            (":content-type", "application/json"),
            (":message-type", "event"),
        )
    )
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack("!I", zlib.crc32(message))


def _header(name: str, value: str) -> bytes:
    return struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
