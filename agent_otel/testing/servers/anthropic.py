"""The scripted models of Anthropic's Messages API and of Bedrock, whole and streamed."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import TYPE_CHECKING, ClassVar
from uuid import uuid4

from agent_otel.messages.anthropic import call_block, converse_call
from agent_otel.messages.fields import text_of
from agent_otel.messages.formats import transcript
from agent_otel.testing.servers.replies import pieces, usage
from agent_otel.testing.servers.scripted import Answer, Decider, Json, Reply, ScriptedServer, answer, result

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_otel.testing.servers.scripted import Endpoint

#: Tokens of the prompt that both report as cached.
CACHED_TOKENS = 7


def messages_of(request: Json) -> list[Json]:
    """Return the messages of a request in OpenAI's shape; a user message's tool results come before its texts."""
    found: list[Json] = []
    for message in request["messages"]:
        found += [result(one.id or "", text_of(one.content)) for one in transcript(message).answered]
        said = text_of(message["content"])
        if said:
            found.append({"role": message["role"], "content": said})
    return found


class AnthropicServer(ScriptedServer):
    """A server of ``/v1/messages``, which keeps the turns of a thread for requests that continue it.

    As at the API, each response of a thread can be continued once, by a request without system prompt and tools.
    """

    variables: ClassVar[Mapping[str, str]] = {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "scripted"}

    def __init__(self, decider: Decider) -> None:
        self._kept: dict[str, list[Json]] = {}
        self._continued: set[str] = set()
        super().__init__(decider)

    def endpoints(self) -> dict[str, Endpoint]:
        """Return the API of messages, with or without its beta."""
        return {"/v1/messages": self._answer}

    def messages(self, request: Json) -> list[Json]:
        """Return the messages of a request's thread, then its own."""
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
        return answer(request, message, events_of(message))


def _rejected(code: str) -> Answer:
    error = {"type": "invalid_request_error", "message": code, "details": {"error_code": code}}
    return Answer({"type": "error", "error": error}, status=400)


def _blocks(request: Json, reply: Reply) -> list[Json]:
    """Return the blocks of a message; a call of a tool that the request does not name has the name of its toolset.

    Toolsets have no names, and types such as ``browser_toolset_20260801``.
    """
    if isinstance(reply, str):
        return [{"type": "text", "text": reply, "citations": None}]
    tools = request.get("tools", ())
    sets = [tool["type"].partition("_")[0] for tool in tools if "name" not in tool and "_toolset_" in tool["type"]]
    named = {tool.get("name") for tool in tools}
    return [
        call_block(call.id, call.name, json.loads(call.arguments_text))
        | ({"toolset_name": sets[0]} if sets and call.name not in named else {})
        for call in reply
    ]


def message_of(request: Json, reply: Reply) -> Json:
    """Return the message that answers a request."""
    read, wrote = usage(request, reply)
    return {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "scripted"),
        "content": _blocks(request, reply),
        "stop_reason": _stop_reason(reply),
        "stop_sequence": None,
        "usage": {"input_tokens": read, "output_tokens": wrote, "cache_read_input_tokens": CACHED_TOKENS},
    }


def _stop_reason(reply: Reply) -> str:
    return "end_turn" if isinstance(reply, str) else "tool_use"


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


class BedrockServer(ScriptedServer):
    """A server of Converse, and of InvokeModel with the bodies of Anthropic's models, each also streamed."""

    variables: ClassVar[Mapping[str, str]] = {
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "{url}",
        "AWS_ACCESS_KEY_ID": "scripted",
        "AWS_SECRET_ACCESS_KEY": "scripted",
        "AWS_DEFAULT_REGION": "us-east-1",
    }

    def endpoints(self) -> dict[str, Endpoint]:
        """Return both APIs, each whole and streamed."""
        return {
            "/model/*/converse": _converse,
            "/model/*/converse-stream": lambda request, reply: _framed(_converse_events(request, reply)),
            "/model/*/invoke": _invoked,
            "/model/*/invoke-with-response-stream": lambda request, reply: _framed(_invoked_events(request, reply)),
        }

    def messages(self, request: Json) -> list[Json]:
        """Return a request's messages."""
        return messages_of(request)


def _converse(request: Json, reply: Reply) -> Answer:
    blocks: list[Json] = [{"text": reply}]
    if not isinstance(reply, str):
        blocks = [converse_call(call.id, call.name, json.loads(call.arguments_text)) for call in reply]
    message = {"role": "assistant", "content": blocks}
    end = {"stopReason": _stop_reason(reply), **_converse_usage(request, reply)}
    return Answer({"output": {"message": message}, **end})


def _converse_usage(request: Json, reply: Reply) -> Json:
    read, wrote = usage(request, reply)
    tokens = {"inputTokens": read, "outputTokens": wrote, "totalTokens": read + wrote}
    return {"usage": {**tokens, "cacheReadInputTokens": CACHED_TOKENS}, "metrics": {"latencyMs": 1}}


def _converse_events(request: Json, reply: Reply) -> Iterator[tuple[str, Json]]:
    yield "messageStart", {"role": "assistant"}
    for index, call in enumerate([None] if isinstance(reply, str) else reply):
        if call is not None:
            start = {"toolUse": {"toolUseId": call.id, "name": call.name}}
            yield "contentBlockStart", {"contentBlockIndex": index, "start": start}
        for piece in pieces(str(reply) if call is None else call.arguments_text):
            delta = {"text": piece} if call is None else {"toolUse": {"input": piece}}
            yield "contentBlockDelta", {"contentBlockIndex": index, "delta": delta}
        yield "contentBlockStop", {"contentBlockIndex": index}
    yield "messageStop", {"stopReason": _stop_reason(reply)}
    yield "metadata", _converse_usage(request, reply)


def _invoked(request: Json, reply: Reply) -> Answer:
    read, wrote = usage(request, reply)
    counts = {"X-Amzn-Bedrock-Input-Token-Count": str(read), "X-Amzn-Bedrock-Output-Token-Count": str(wrote)}
    return Answer(message_of(request, reply), headers=counts)


def _invoked_events(request: Json, reply: Reply) -> Iterator[tuple[str, Json]]:
    read, wrote = usage(request, reply)
    metrics = {"amazon-bedrock-invocationMetrics": {"inputTokenCount": read, "outputTokenCount": wrote}}
    for event in events_of(message_of(request, reply)):
        whole = {**event, **(metrics if event["type"] == "message_stop" else {})}
        yield "chunk", {"bytes": base64.b64encode(json.dumps(whole).encode()).decode()}


def _framed(events: Iterator[tuple[str, Json]]) -> Answer:
    return Answer((_frame(kind, body) for kind, body in events), "application/vnd.amazon.eventstream")


def _frame(kind: str, body: Json) -> bytes:
    """Return a message of Amazon's event-stream encoding: lengths, their checksum, headers, payload, checksum."""
    payload = json.dumps(body).encode()
    named = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for name, value in named.items()
    )
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack("!I", zlib.crc32(message))
