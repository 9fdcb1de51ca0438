"""Cohere's SDK: chats of its API v2, sync, async and streamed.

Read at the raw clients, through which both forms of the client send. A stream is read inside of a context manager, so
that no request can be sent in its place: of a stream, remedies act on the request only.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from agent_otel._internal.object_kinds import attributes, fields, is_text, listed, reworded, text
from agent_otel.core.cost.usage import Usage
from agent_otel.core.types import AskedCall, Exchange, Invocation, ModelRequest, RequestPart, ResponseVisit
from agent_otel.integrations.model_sdks.stainless import asks, longer_delay, plain_model
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.integrations.request_bodies import ChatFunction, chat, is_forced
from agent_otel.integrations.wrap import watched
from agent_otel.messages.fields import without
from agent_otel.semconv import ASSISTANT, TOOL_RESULTS, TOOLS, USER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

ENTRY = Integration(
    "cohere",
    minimum="5.16",
    tested="7.3",
    uncovered="the API v1 (`Client.chat`); embeddings and reranking",
    sites=(
        Candidate(
            "cohere.v2.raw_client",
            request="RawV2Client.chat AsyncRawV2Client.chat",
            streamed="RawV2Client.chat_stream",
            astreamed="AsyncRawV2Client.chat_stream",
        ),
        Candidate("cohere.core.http_client", delay="_retry_timeout"),
    ),
)

_CHAT = ChatFunction(form="cohere", none="NONE")
#: Arguments that a request without tools, or with other messages, does not have.
_OF_TOOLS = ("strict_tools", "citation_options", "documents", "stop_sequences")


def _request(invocation: Invocation) -> ModelRequest:
    given = invocation.kwargs
    return ModelRequest(_parts(given), model=text(given.get("model")), must_call=is_forced(given.get("tool_choice")))


def _parts(body: Mapping[str, Any]) -> Iterator[RequestPart]:
    if listed(body.get("tools")):
        yield RequestPart(TOOLS, list(map(plain_model, listed(body["tools"]))))
    if listed(body.get("documents")):
        yield RequestPart(USER, listed(body["documents"]))
    for message in listed(body.get("messages")):
        plan = fields(message).get("tool_plan")
        if is_text(plan):
            yield RequestPart(ASSISTANT, plan)
        for part in chat({"messages": [message]}):
            yield part._replace(value=_result(part.value)) if part.part == TOOL_RESULTS else part


def _result(content: Any) -> Any:
    """Return the data of a result that is a single document."""
    blocks = [fields(block) for block in listed(content)]
    data = fields(blocks[0].get("document")).get("data") if len(blocks) == 1 else None
    return content if data is None else data


def _usage(response: Any) -> Usage | None:
    """Return the usage of a whole response, or of the last event of a stream; the counts may be floats."""
    known = _item(response)
    usage = fields(known.get("usage")) or fields(fields(known.get("delta")).get("usage"))
    tokens = fields(usage.get("tokens"))
    found = Usage(_count(tokens, "input_tokens"), _count(usage, "cached_tokens"), _count(tokens, "output_tokens"))
    return found if found.input or found.output else None


def _count(counts: Mapping[str, Any], name: str) -> int:
    value: Any = counts.get(name)
    return int(value) if type(value) is int or type(value) is float else 0


def _asks(response: Any) -> Sequence[AskedCall] | None:
    """Return the calls that a response, or an event of a stream, asks for."""
    known = _item(response)
    kind = text(known.get("type"))
    if kind is None:
        return asks({"choices": [known]}) if "message" in known else None
    if kind in {"tool-call-start", "tool-call-delta"}:
        call = fields(fields(fields(known.get("delta")).get("message")).get("tool_calls"))
        return asks({"choices": [{"delta": {"tool_calls": [{**call, "index": known.get("index")}]}}]})
    return [] if kind == "content-delta" else None


def _item(value: Any) -> Mapping[str, Any]:
    """Return the fields of an event, or of the data of an HTTP response."""
    known = fields(value)
    return fields(known["_data"]) if "_data" in known else known


def _apart(invocation: Invocation, body: dict[str, Any], model: str) -> Invocation:
    made = _CHAT.apart(invocation, body, model)
    made.kwargs = without(made.kwargs, *_OF_TOOLS)
    return made


def _reword(invocation: Invocation, reword: Callable[[str], str]) -> None:
    """Reword the results in a request whose response is a stream: no call in it can be answered."""
    invocation.kwargs = {**invocation.kwargs, "messages": reworded(invocation.kwargs.get("messages"), reword)}


@contextmanager
def _watch(stream: Any, visit: ResponseVisit) -> Iterator[Any]:
    """Put a visit around the events of the response that a context manager returns."""
    with stream as response:
        response._data = watched(response._data, visit)
        yield response


@asynccontextmanager
async def _watch_async(stream: Any, visit: ResponseVisit) -> AsyncIterator[Any]:
    async with stream as response:
        response._data = watched(response._data, visit)
        yield response


exchange = _CHAT.exchange(lambda response: plain_model(fields(response).get("_data")))._replace(apart=_apart)
request = _CHAT.reader(_request, _usage, _asks, exchange=exchange)
streamed = request._replace(
    watch=_watch,
    ends=lambda event: text(fields(event).get("type")) == "message-end",
    exchange=Exchange(lambda _: None, _CHAT.put, reword=_reword),
    passes=lambda event: text(attributes(event).get("type")) == "content-delta",  # a piece of the answer's text
)
astreamed = streamed._replace(watch=_watch_async)
delay = longer_delay(lambda invocation: invocation.arg(0, "response"))
