"""Bedrock's InvokeModel, whole and streamed: the body is JSON text in the form of the model's provider.

Read are the bodies of Anthropic's models, of Amazon's (the form of Converse), and of those with OpenAI's chat. The
program reads the response from the wire, so that no call in it can be answered: views name no tool.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from agent_otel.core.plain import fields, is_dict, listed, reworded, text
from agent_otel.core.types import ModelRequest, RequestPart
from agent_otel.core.usage import Usage
from agent_otel.integrations.final_request import joined, tool_fields, with_system
from agent_otel.integrations.model_sdks import anthropic, openai

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

OPERATIONS = ("InvokeModel", "InvokeModelWithResponseStream")

# The names of the tokens of the input, of the output, and of what the cache has read and written.
_IN_HEADERS = tuple(
    f"x-amzn-bedrock-{of}-token-count" for of in ("input", "output", "cache-read-input", "cache-write-input")
)
_IN_METRICS = ("inputTokenCount", "outputTokenCount", "cacheReadInputTokenCount", "cacheWriteInputTokenCount")
_METRICS = "amazon-bedrock-invocationMetrics"


def body_of(params: Any) -> dict[str, Any] | None:
    """Return the body of a request; None where it is no JSON object, or a file, which is read once."""
    body: Any = fields(params).get("body")
    cls = type(body)
    if cls is not str and cls is not bytes and cls is not bytearray:
        return None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if type(found) is dict else None


def is_converse(body: Mapping[str, Any]) -> bool:
    """Return True for a body in the form of Converse, which Amazon's models take."""
    return any(name in body for name in ("schemaVersion", "toolConfig", "inferenceConfig"))


def request(
    params: Any,
    converse: Callable[[Mapping[str, Any]], Iterator[RequestPart]],
    converse_must_call: Callable[[Mapping[str, Any]], bool],
) -> ModelRequest | None:
    """Read a request; ``converse`` and ``converse_must_call`` read a body in the form of Converse."""
    body = body_of(params)
    if body is None or type(body.get("messages")) is not list:
        return None
    model = text(fields(params).get("modelId"))
    if _is_anthropic(body):
        return ModelRequest(anthropic.messages(body), model=model, must_call=anthropic.must_call(body))
    if is_converse(body):
        return ModelRequest(converse(body), model=model, must_call=converse_must_call(body))
    return ModelRequest(openai.chat(body), model=model, must_call=openai.must_call(body))


def _is_anthropic(body: Mapping[str, Any]) -> bool:
    return "anthropic_version" in body


def rewrite(params: dict[str, Any], view: Callable[..., Any]) -> None:
    """Put a view in the place of the messages."""
    body = body_of(params)
    if body is not None and type(body.get("messages")) is list:
        messages = body["messages"]
        made = view(messages, cached=any(mark in json.dumps(messages) for mark in ("cache_control", "cachePoint")))
        if made is not messages:
            _put(params, {**body, "messages": made})


def answer_only(params: dict[str, Any], note: str, converse: Callable[[dict[str, Any], str], None]) -> None:
    """Forbid tool calls, and add the note to the system message; ``converse`` does so in the form of Converse."""
    body = body_of(params) or {}
    if _is_anthropic(body):
        body |= {"system": joined(body.get("system"), note), **tool_fields(body, {"type": "none"})}
    elif is_converse(body):
        converse(body, note)
    else:
        body |= {"messages": with_system(listed(body["messages"]), note), **tool_fields(body)}
    _put(params, body)


def reword(params: dict[str, Any], change: Callable[[str], str]) -> None:
    """Reword the texts of a request."""
    body = body_of(params)
    if body is not None:
        made = reworded(body, change)
        if made is not body:
            _put(params, made)


def _put(params: dict[str, Any], body: dict[str, Any]) -> None:
    # botocore made this dictionary for this request only, so it is changed in place.
    params["body"] = json.dumps(body)


def usage(response: Mapping[str, Any]) -> Usage | None:
    """Return the usage of a whole response, which its headers have, or of the last raw event of a stream."""
    event = event_of(response)
    if event is not None:
        counts = fields(event.get(_METRICS))
        return _usage(counts, _IN_METRICS)
    headers = fields(fields(response.get("ResponseMetadata")).get("HTTPHeaders"))
    return _usage(headers, _IN_HEADERS)


def _usage(counts: Mapping[str, Any], names: tuple[str, ...]) -> Usage | None:
    """Return the usage; of the input, Bedrock counts what its cache has read and written apart."""
    if counts.get(names[0]) is None:
        return None
    rest, output, cached, put = (int(counts.get(name) or 0) for name in names)
    return Usage(rest + cached + put, cached, output, written=put)


def event_of(known: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the provider's event in a raw event of a stream."""
    kind, payload = text(fields(known.get("headers")).get(":event-type")), known.get("payload")
    if kind != "chunk" or type(payload) is not bytes:
        return None
    event = json.loads(base64.b64decode(json.loads(payload)["bytes"]))
    return event if is_dict(event) else None


def asks(event: Mapping[str, Any]) -> bool | None:
    """Return whether a provider's event asks for a tool call."""
    if "messageStop" in event:
        return text(fields(event["messageStop"]).get("stopReason")) == "tool_use"
    return openai.asks(event) if "choices" in event else anthropic.asks(event)
