"""Bedrock's Converse and InvokeModel, whole and streamed, through botocore, whose clients send at one place."""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any

from agent_otel._internal.daemon_pool import is_in_asyncio
from agent_otel._internal.errors import ours
from agent_otel._internal.object_kinds import dictionaries, fields, given, is_dict, listed, reworded, text
from agent_otel.core.cost.usage import Usage
from agent_otel.core.cost.usage import read as read_usage
from agent_otel.core.remedy_hooks import attempt_refused, retry_delay
from agent_otel.core.types import AskedCall, Exchange, Invocation, ModelReader, ModelRequest, ResponseVisit
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.model_sdks.stainless import asks, on_refusal
from agent_otel.integrations.registry import Candidate, Integration, Site
from agent_otel.integrations.request_bodies import CHAT, MESSAGES, BodyArgument, Form, reading
from agent_otel.integrations.wrap import streams
from agent_otel.messages.anthropic import converse_parts, is_cached
from agent_otel.messages.fields import without

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


ENTRY = Integration(
    "bedrock",
    distribution="botocore",
    minimum="1.35",
    tested="1.44, Converse and InvokeModel",
    uncovered="agents of Bedrock (`InvokeAgent`), which run their tools in its cloud; asynchronous invocations "
    "(`StartAsyncInvoke`)",
    sites=(
        Candidate("botocore.client", request="BaseClient._make_api_call"),
        Candidate("botocore.endpoint", retrying="Endpoint._needs_retry"),
        Site(Candidate("botocore.client", called="BaseClient._make_request"), adapter="runtimes.agentcore"),
    ),
)

AIOBOTOCORE = Integration(  # whose client has functions of its own in place of botocore's
    "aiobotocore",
    minimum="2.15",
    tested="3.10, Converse and InvokeModel",
    uncovered="as for `bedrock`; InvokeAgentRuntime; the wait of a retry for the refusals of other requests",
    product="bedrock",
    sites=(
        Candidate("aiobotocore.client", request="AioBaseClient._make_api_call"),
        Candidate("aiobotocore.endpoint", refusing="AioEndpoint._needs_retry"),
    ),
)

OPERATIONS = ("InvokeModel", "InvokeModelWithResponseStream")

_OPERATIONS = ("Converse", "ConverseStream", *OPERATIONS)
_CACHING = ("cache_control", "cachePoint")


def _find(invocation: Invocation) -> tuple[Form, dict[str, Any]] | None:
    """Return the format and the body of a request: of Converse the parameters, of InvokeModel their JSON text."""
    operation, params = invocation.arg(0, "operation_name"), invocation.arg(1, "api_params")
    if operation not in _OPERATIONS or invocation.instance.meta.service_model.service_name != "bedrock-runtime":
        return None
    if operation not in OPERATIONS:
        return (_CONVERSE, fields(params)) if is_dict(params) else None
    body = body_of(params)
    if body is None or type(body.get("messages")) is not list:
        return None
    # Amazon's models take the form of Converse.
    is_converse = any(name in body for name in ("schemaVersion", "toolConfig", "inferenceConfig"))
    form = MESSAGES if "anthropic_version" in body else _CONVERSE if is_converse else CHAT
    model = fields(params).get("modelId")
    invoked = form._replace(
        read=lambda body: form.read(body)._replace(model=model),
        keeps=lambda body: {"cached": any(mark in json.dumps(body["messages"]) for mark in _CACHING)},
    )
    return invoked, body


def _put(invocation: Invocation, body: dict[str, Any]) -> None:
    # botocore made this dictionary for this request only, so it is changed in place.
    if _invokes(invocation):
        invocation.arg(1, "api_params")["body"] = json.dumps(body)
    else:
        _PARAMS.put(invocation, body)


def _converse(body: Mapping[str, Any]) -> ModelRequest:
    choice = fields(fields(body.get("toolConfig")).get("toolChoice"))
    must_call = "any" in choice or "tool" in choice
    return ModelRequest(converse_parts(body), model=body.get("modelId"), must_call=must_call)


def _usage(response: Any) -> Usage | None:
    """Return the usage of a whole response, or of the last raw event of a stream."""
    known = fields(response)
    if "usage" in known:
        return read_usage(known["usage"])
    event = _plain(known)
    return read_usage(fields(event["metadata"]).get("usage")) if "metadata" in event else _invoke_usage(event)


def _raw(known: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return the type and the payload of a raw event of a stream; empty ones of anything else."""
    kind, payload = text(fields(known.get("headers")).get(":event-type")), known.get("payload")
    return (kind or "", payload) if type(payload) is bytes else ("", b"")


def _plain(value: Any) -> Mapping[str, Any]:
    """Return a response as it is, a raw event of a stream as its name with its payload, or as the provider's own."""
    known = fields(value)
    kind, payload = _raw(known)
    if not kind:
        return known
    read = json.loads(payload)
    return {kind: read} if kind != "chunk" else fields(json.loads(base64.b64decode(read["bytes"])))


def _answer_without_tools(body: dict[str, Any], note: str) -> dict[str, Any]:
    """Remove the tools and turn calls and results into text: Converse has no choice against tools, and needs them."""
    names = dict[str | None, str | None]()
    messages = [_in_text(message, names) for message in dictionaries(body["messages"])]
    made = {**without(body, "toolConfig"), "messages": messages}
    if ":prompt/" in (text(body.get("modelId")) or ""):  # which has the system prompt; Converse rejects another
        messages[-1] = {**messages[-1], "content": [*messages[-1]["content"], {"text": note}]}
    else:
        made["system"] = [*listed(body.get("system")), {"text": note}]
    return made


_CONVERSE = Form("bedrock", _converse, _answer_without_tools, lambda body: {"cached": is_cached(body)})
_PARAMS = BodyArgument(1, "api_params", "modelId")


def _in_text(message: dict[str, Any], names: dict[str | None, str | None]) -> dict[str, Any]:
    """Return a message with texts in the place of calls and results; ``names`` are the tools' by the calls' ids."""
    blocks: list[Any] = []
    for block in dictionaries(message.get("content")):
        call, result = fields(block.get("toolUse")), fields(block.get("toolResult"))
        if call:
            name = names[text(call.get("toolUseId"))] = text(call.get("name"))
            blocks.append({"text": f"[called {name} with {json.dumps(call.get('input'), default=str)}]"})
        elif result:
            # A result may have a blank text; Converse rejects one outside of a result.
            inner = [each for each in dictionaries(result.get("content")) if str(each.get("text", "json")).strip()]
            blocks.append({"text": f"[result of {names.get(text(result.get('toolUseId')))}]"})
            blocks += [{"text": json.dumps(each["json"], default=str)} if "json" in each else each for each in inner]
        else:
            blocks.append(block)
    return {**message, "content": blocks}


def _asks(response: Any) -> Sequence[AskedCall] | None:
    """Return the calls of the program that a response, or a raw event of a stream, asks for."""
    event = _plain(response)
    if "output" in event:
        blocks = dictionaries(fields(fields(event["output"]).get("message")).get("content"))
        asked = [fields(block["toolUse"]) for block in blocks if is_dict(block.get("toolUse"))]
        return [_call(call) for call in asked if "type" not in call]
    at = next((fields(event[name]) for name in _OF_CALLS if name in event), None)
    if at is None:
        return asks(event)
    block = fields(fields(given(at.get("start"), at.get("delta"))).get("toolUse"))
    if "messageStop" in event:
        return None if text(at.get("stopReason")) == "tool_use" else []
    return [_call(block, at.get("contentBlockIndex"))] if block and "type" not in block else None


def _call(call: Mapping[str, Any], place: object = None) -> AskedCall:
    return AskedCall(text(call.get("name")) or "", call.get("input"), text(call.get("toolUseId")), place)


_OF_CALLS = ("contentBlockStart", "contentBlockDelta", "messageStop")


def _passes(event: Any) -> bool:
    """Return true for an event with a piece of a text."""
    kind, payload = _raw(fields(event))
    return kind == "contentBlockDelta" and b'"toolUse"' not in payload


_stream_of, _watch_stream = streams("EventStream", generator="_event_generator")


def _watch(response: Any, visit: ResponseVisit) -> Any:
    """Put a visit around the raw events of a stream."""
    known = fields(response)
    _watch_stream(given(known.get("stream"), known.get("body")), visit)
    return response


def _body(invocation: Invocation) -> tuple[str, dict[str, Any]] | None:
    form, body = _find(invocation) or (None, {})
    return None if form is None or _invokes(invocation) else (form.name, dict(body))


def _invokes(invocation: Invocation) -> bool:
    return invocation.arg(0, "operation_name") in OPERATIONS


def _reword(invocation: Invocation, reword: Callable[[str], str]) -> None:
    """Reword the texts of a body. No call in its response can be answered."""
    found = _find(invocation)
    if found is not None and _invokes(invocation) and (made := reworded(found[1], reword)) is not found[1]:
        _put(invocation, made)


def _changed(event: Any, changes: Mapping[str, Any], _: Sequence[Any]) -> Any:
    for payload in changes.values():
        event.payload = json.dumps(payload, separators=(",", ":")).encode()
    return event


def _refused(invocation: Invocation) -> Any:
    response = invocation.arg(3, "response")  # HTTP's, and what botocore has parsed of it
    return response[1] if type(response) is tuple else None


def _retry(invocation: Invocation) -> bool:
    attempt_refused(_refused(invocation))
    return True


def _wait(_: Invocation, goes_on: Any, __: BaseException | None) -> None:
    """Wait after a function that waits itself, and returns True when there is another attempt."""
    if goes_on is True and not is_in_asyncio():
        time.sleep(max(0.0, retry_delay(0.0)))


retrying = Hook(_retry, _wait)
refusing = on_refusal(_refused)
exchange = Exchange(
    *(_body, _put, _plain),
    stream=lambda response: _stream_of(fields(response).get("stream")),
    generator="_event_generator",
    changed=_changed,
    reword=_reword,
    apart=_PARAMS.apart,
)
request = ModelReader(**reading(_find, _put), usage=_usage, asks=_asks, watch=_watch, exchange=exchange, passes=_passes)

# The names of the tokens of the input, of the output, and of what the cache has read and written.
_IN_HEADERS = tuple(
    f"x-amzn-bedrock-{of}-token-count" for of in ("input", "output", "cache-read-input", "cache-write-input")
)
_IN_METRICS = ("inputTokenCount", "outputTokenCount", "cacheReadInputTokenCount", "cacheWriteInputTokenCount")
_METRICS = "amazon-bedrock-invocationMetrics"

# Bedrock's InvokeModel, whole and streamed: the body is JSON text in the form of the model's provider. Read are the
# bodies of Anthropic's models, of Amazon's (the form of Converse), and of those with OpenAI's chat. The program reads
# the response from the wire, so that no call in it can be answered: views name no tool.


def body_of(params: Any) -> dict[str, Any] | None:
    """Return the body of a request; None where it is no JSON object, or a file, which is read once."""
    body: Any = fields(params).get("body")
    cls = type(body)
    if cls is not str and cls is not bytes and cls is not bytearray:
        return None
    try:
        found = json.loads(body)
    except ours(ValueError, RecursionError):
        return None
    return found if type(found) is dict else None


def _invoke_usage(response: Mapping[str, Any]) -> Usage | None:
    """Return the usage of a whole response, which its headers have, or of the last event of a stream."""
    headers = fields(fields(response.get("ResponseMetadata")).get("HTTPHeaders"))
    return _counted(fields(response.get(_METRICS)), _IN_METRICS) or _counted(headers, _IN_HEADERS)


def _counted(counts: Mapping[str, Any], names: tuple[str, ...]) -> Usage | None:
    """Return the usage; of the input, Bedrock counts what its cache has read and written apart."""
    if counts.get(names[0]) is None:
        return None
    rest, output, cached, put = (int(counts.get(name) or 0) for name in names)
    return Usage(rest + cached + put, cached, output, written=put)
