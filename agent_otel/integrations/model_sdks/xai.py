"""xAI's SDK: chats over gRPC, sync, async, streamed, parsed and deferred, and compactions of their history.

Read at the functions of the connection's stub, each of which sends one request; the SDK's chat keeps the history itself
and copies it for each request, so that remedies change the copy. The protocol is binary: sizes are those of the texts,
and of tools as compact JSON. An async stream is read by the SDK, so that no request can be sent in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core.message_parts import Messages
from agent_otel.core.plain import fields, is_named, listed
from agent_otel.core.types import Exchange, Invocation, ModelReader, ModelRequest, RequestPart, ResponseVisit
from agent_otel.core.usage import Usage
from agent_otel.integrations import wrappers
from agent_otel.integrations.final_request import OF_ANSWERS, tool_fields, with_system
from agent_otel.integrations.generators import watched
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.model_sdks import openai
from agent_otel.integrations.model_sdks.xai_messages import as_chat, as_response, with_body
from agent_otel.integrations.registry.entries import Candidate, Integration, Wrap
from agent_otel.integrations.streams import MeasuredStream, with_items
from agent_otel.semconv import ASSISTANT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENTRY = Integration(
    "xai-sdk",
    distribution="xai-sdk",
    minimum="1.6",  # the first with ids of calls in results
    tested="1.6 and 1.21",
    uncovered="batches, images and videos; results of the tools that xAI runs; the client's own retries",
    sites=(Candidate("xai_sdk.chat", Wrap("BaseClient.__init__", "connected")),),
)


def _request(invocation: Invocation) -> ModelRequest:
    sent = invocation.arg(0, "request")
    body = as_chat(sent)
    parts = Messages(openai.chat({"tools": body.get("tools")}).head, body["messages"], _parts)
    continued = bool(getattr(sent, "previous_response_id", ""))
    forced, answers = openai.must_call(body), body.get("n", 1)
    return ModelRequest(parts, continued=continued, model=sent.model, must_call=forced, answers=answers)


def _parts(message: Any) -> Iterator[RequestPart]:
    """Read a message; the model's reasoning is sent again, and so is what only xAI can read."""
    for name in ("reasoning_content", "encrypted_content"):
        if name in message:
            yield RequestPart(ASSISTANT, message[name])
    yield from openai.chat({"messages": [message]})


def _usage(response: Any) -> Usage | None:
    """Return the usage of a response, or of a chunk, whose usage is that of the stream so far."""
    counts = getattr(response, "usage", None)
    if counts is None:
        return None
    found = Usage(
        counts.prompt_tokens,
        counts.cached_prompt_text_tokens,
        counts.completion_tokens + counts.reasoning_tokens,
        counts.reasoning_tokens,
        counts.prompt_image_tokens,
    )
    return found if found.input or found.output else None


def _asks(response: Any) -> bool | None:
    return openai.asks(as_response(response)) if hasattr(response, "outputs") else None


def _ends(chunk: Any) -> bool:
    return any(output.finish_reason for output in getattr(chunk, "outputs", ()))


def _rewrite(invocation: Invocation, view: Callable[..., Any]) -> None:
    sent = invocation.arg(0, "request")
    if hasattr(sent, "messages"):
        body = as_chat(sent)
        made = view(body["messages"], kept=bool(sent.previous_response_id))
        if made is not body["messages"]:
            invocation.put(0, "request", with_body(sent, {**body, "messages": made}))


def _answer_only(invocation: Invocation, note: str) -> None:
    sent = invocation.arg(0, "request")
    body = as_chat(sent)
    body |= {"messages": with_system(body["messages"], note), **tool_fields(body)}
    invocation.put(0, "request", with_body(sent, body))


def _body(invocation: Invocation) -> tuple[str, dict[str, Any]] | None:
    """Return the body of a request that can be sent again: xAI runs no tool in it, and has no earlier messages."""
    sent = invocation.arg(0, "request")
    body = as_chat(sent)
    is_whole = not sent.previous_response_id and not sent.store_messages
    return ("chat", body) if is_whole and all("function" in tool for tool in listed(body.get("tools"))) else None


def _put(invocation: Invocation, body: dict[str, Any]) -> None:
    invocation.put(0, "request", with_body(invocation.arg(0, "request"), body))


def _apart(invocation: Invocation, body: dict[str, Any], model: str) -> Invocation:
    sent = invocation.arg(0, "request")
    made = with_body(sent, {"messages": body["messages"], "tools": as_chat(sent).get("tools")})
    for name, _ in made.ListFields():
        if name.name in OF_ANSWERS:
            made.ClearField(name.name)
    made.model = model or made.model
    return Invocation(invocation.instance, (made,), {})


def _reword(invocation: Invocation, reword: Callable[[str], str]) -> None:
    """Reword the results in a request whose response is an async stream: no call in it can be answered."""
    sent = invocation.arg(0, "request")
    body = as_chat(sent)
    messages = [{**each, "content": _reworded(each["content"], reword)} for each in body["messages"]]
    invocation.put(0, "request", with_body(sent, {**body, "messages": messages}))


def _reworded(content: Any, reword: Callable[[str], str]) -> Any:
    return reword(content) if type(content) is str else content


def _stream(response: Any) -> Any:
    return response if hasattr(type(response), "__next__") else None


def _watch(response: Any, visit: ResponseVisit) -> Any:
    """Put a visit around the steps of a stream; gRPC's async one has a generator of its chunks."""
    if hasattr(type(response), "__next__"):
        return MeasuredStream(response, visit)
    if hasattr(type(response), "__aiter__"):
        return with_items(response, watched(response.__aiter__(), visit))
    return response


measured = ModelReader(_request, _usage, _asks, _watch, _ends, rewrite=_rewrite, answer_only=_answer_only)
_EXCHANGE = Exchange(_body, _put, as_response, _stream, replaced=with_items, apart=_apart)
answered = measured._replace(exchange=_EXCHANGE)
read_by_sdk = measured._replace(exchange=_EXCHANGE._replace(body=lambda _: None, reword=_reword))
compacted = ModelReader(_request, _usage, rewrite=_rewrite)  # what is summed up goes whole
_READERS = {
    "GetCompletion": answered,
    "GetCompletionChunk": answered,
    "StartDeferredCompletion": measured,
    "CompactContext": compacted,
}


def _connected(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    """Wrap the functions of a client's stub; the async ones return objects that the SDK awaits or iterates."""
    stub = fields(invocation.instance).get("_stub")
    for name, reader in _READERS.items() if error is None and stub is not None else ():
        send = getattr(stub, name, None)
        if send is None:  # compactions came later
            continue
        if is_named(send, "UnaryUnaryMultiCallable"):
            is_async = type(send).__module__.startswith("grpc.aio")
            send = _awaiting(send) if is_async else send
        elif type(send).__module__.startswith("grpc.aio"):
            reader = read_by_sdk  # noqa: PLW2901 - another one for this function
        wrappers.wrap_attribute(stub, name, reader, send)


def _awaiting(send: Any) -> Any:
    """Return a coroutine function for a function that returns an awaitable call."""

    async def call(*args: Any, **kwargs: Any) -> Any:
        return await send(*args, **kwargs)

    return call


connected = Hook(after=_connected)
