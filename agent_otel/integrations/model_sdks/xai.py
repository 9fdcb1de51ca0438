"""xAI's SDK: chats over gRPC, sync, async, streamed, parsed and deferred, and compactions of their history.

Read at the functions of the connection's stub, each of which sends one request; the SDK's chat keeps the history itself
and copies it for each request, so that remedies change the copy. The protocol is binary: sizes are those of the texts,
and of tools as compact JSON. An async stream is read by the SDK, so that no request can be sent in its place.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from google.protobuf.json_format import MessageToDict, ParseDict  # type: ignore[import-untyped, unused-ignore]

from agent_otel._internal.errors import ours
from agent_otel._internal.object_kinds import fields, is_named, is_text, listed, reworded, text
from agent_otel.core.cost.usage import Usage
from agent_otel.core.thread.request_prefix import Messages
from agent_otel.core.types import Exchange, Invocation, ModelReader, ModelRequest, RequestPart, ResponseVisit
from agent_otel.integrations import wrap
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.model_sdks.stainless import asks
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.integrations.request_bodies import CHAT, OF_ANSWERS, Form, chat_request, reading
from agent_otel.integrations.wrap import MeasuredStream, OtherItems, watched
from agent_otel.messages.fields import is_kept, without
from agent_otel.messages.openai import chat_head, chat_parts
from agent_otel.semconv import ASSISTANT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


ENTRY = Integration(
    "xai-sdk",
    minimum="1.6",  # the first with ids of calls in results
    tested="1.6 and 1.21",
    uncovered="batches, images and videos; results of the tools that xAI runs; the client's own retries",
    sites=(Candidate("xai_sdk.chat", connected="BaseClient.__init__"),),
)


def _find(invocation: Invocation) -> tuple[Form, dict[str, Any]]:
    return _FORM, as_chat(invocation.arg(0, "request"))


def _put(invocation: Invocation, body: dict[str, Any]) -> None:
    invocation.put(0, "request", with_body(invocation.arg(0, "request"), body))


def _read(body: dict[str, Any]) -> ModelRequest:
    parts = Messages(chat_head(body), body["messages"], _parts)
    return chat_request(body)._replace(parts=parts, continued=is_kept(body))


def _parts(message: Any) -> Iterator[RequestPart]:
    """Read a message. The model's reasoning and xAI's encrypted content are sent again."""
    for name in ("reasoning_content", "encrypted_content"):
        if name in message:
            yield RequestPart(ASSISTANT, message[name])
    yield from chat_parts(message)


def _usage(response: Any) -> Usage | None:
    """Return the usage of a response, or of a chunk, which has the total of the stream so far."""
    counts = getattr(response, "usage", None)
    if counts is None:
        return None
    found = Usage(
        counts.prompt_tokens,
        counts.cached_prompt_text_tokens,
        counts.completion_tokens + counts.reasoning_tokens,
        counts.prompt_image_tokens,
    )
    return found if found.input or found.output else None


def _body(invocation: Invocation) -> tuple[str, dict[str, Any]] | None:
    """Return the body of a request that can be sent again: xAI runs no tool in it, and has no earlier messages."""
    sent = invocation.arg(0, "request")
    body = as_chat(sent)
    is_whole = not sent.previous_response_id and not sent.store_messages
    return ("chat", body) if is_whole and all("function" in tool for tool in listed(body.get("tools"))) else None


def _apart(invocation: Invocation, body: dict[str, Any], model: str) -> Invocation:
    sent = invocation.arg(0, "request")
    made = with_body(sent, {"messages": body["messages"], "tools": as_chat(sent).get("tools")})
    for name, _ in made.ListFields():
        if name.name in OF_ANSWERS:
            made.ClearField(name.name)
    made.model = model or made.model
    return Invocation(invocation.instance, (made,), {})


def _reword(invocation: Invocation, reword: Callable[[str], str]) -> None:
    """Reword the results in a request with an async stream: no call in its response can be answered."""
    body = as_chat(invocation.arg(0, "request"))
    messages = [{**each, "content": reworded(each["content"], reword)} for each in body["messages"]]
    _put(invocation, {**body, "messages": messages})


def _watch(response: Any, visit: ResponseVisit) -> Any:
    """Put a visit around the steps of a stream; gRPC's async one has a generator of its chunks."""
    if hasattr(type(response), "__next__"):
        return MeasuredStream(response, visit)
    if hasattr(type(response), "__aiter__"):
        return OtherItems(response, watched(response.__aiter__(), visit))
    return response


_FORM = CHAT._replace(read=_read, keeps=lambda body: {"kept": is_kept(body)})
measured = ModelReader(
    **reading(_find, _put),
    usage=_usage,
    asks=lambda response: asks(as_response(response)) if hasattr(response, "outputs") else None,
    watch=_watch,
    ends=lambda chunk: any(output.finish_reason for output in getattr(chunk, "outputs", ())),
)

# The messages of xAI's SDK: its protocol buffers as the dictionaries of OpenAI's chat, and such dictionaries as
# those.


def as_response(response: Any) -> dict[str, Any]:
    """Return a response, or a chunk of a stream, as a chat completion; of its outputs, the model's calls and texts."""
    outputs = list(response.outputs)
    key = "delta" if outputs and hasattr(outputs[0], "delta") else "message"
    said = [getattr(output, key) for output in outputs]
    calls = [call for each in said for call in each.tool_calls if call.type in _OF_PROGRAM]
    message: dict[str, Any] = {"role": "assistant", "content": "".join(each.content for each in said) or None}
    if calls:
        message["tool_calls"] = [{"index": call.id, **_call(call)} for call in calls]
    for name in ("reasoning_content", "encrypted_content"):
        words = "".join(getattr(each, name) for each in said)
        if words:
            message[name] = words
    return {"choices": [{key: message}] if outputs else []}


_EXCHANGE = Exchange(
    _body,
    _put,
    as_response,
    lambda response: response if hasattr(type(response), "__next__") else None,
    replaced=OtherItems,
    apart=_apart,
)
answered = measured._replace(exchange=_EXCHANGE)
read_by_sdk = measured._replace(exchange=_EXCHANGE._replace(body=lambda _: None, reword=_reword))
compacted = ModelReader(measured.request, _usage, rewrite=lambda *_: None)  # a summarised message goes whole
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
        wrap.wrap_attribute(stub, name, reader, send)


def _awaiting(send: Any) -> Any:
    """Return a coroutine function for a function that returns an awaitable call."""

    async def call(*args: Any, **kwargs: Any) -> Any:
        return await send(*args, **kwargs)

    return call


connected = Hook(after=_connected)

# The numbers of the protocol, https://github.com/xai-org/xai-proto.
_ROLES = {1: "user", 2: "assistant", 3: "system", 4: "function", 5: "tool", 6: "developer"}
_NUMBERS = {name: number for number, name in _ROLES.items()}
_CHOICES = {1: "auto", 2: "none", 3: "required"}
_MODES = {name: number for number, name in _CHOICES.items()}
#: The types of calls that the program answers. xAI runs all other tools.
_OF_PROGRAM = (0, 1)
#: The place of a message in the request, by which a changed one keeps the fields that are not in OpenAI's chat.
_PLACE = "place"
_OTHER_TEXTS = ("reasoning_content", "encrypted_content", "tool_call_id", "name")


def as_chat(request: Any) -> dict[str, Any]:
    """Return a request as the body of a chat completion."""
    messages = request.input if hasattr(request, "input") else request.messages
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [_message(message, place) for place, message in enumerate(messages)],
    }
    if not hasattr(request, "tools"):
        return body
    if request.previous_response_id:
        body["previous_response_id"] = request.previous_response_id
    choice = request.tool_choice
    if request.tools:
        body["tools"] = list(map(_tool, request.tools))
    if choice.function_name:
        body["tool_choice"] = {"type": "function", "function": {"name": choice.function_name}}
    elif choice.mode in _CHOICES:
        body["tool_choice"] = _CHOICES[choice.mode]
    return body | ({"n": request.n} if request.n > 1 else {})


def _message(message: Any, place: int) -> dict[str, Any]:
    made: dict[str, Any] = {
        "role": _ROLES.get(message.role, "user"),
        "content": _content(message.content),
        **{name: value for name in _OTHER_TEXTS if (value := getattr(message, name))},
        _PLACE: place,
    }
    if message.tool_calls:
        made["tool_calls"] = list(map(_call, message.tool_calls))
    return made


def _content(blocks: Any) -> Any:
    """Return the text of a message, or its blocks where it has an image, a file, or several texts."""
    if len(blocks) == 1 and blocks[0].WhichOneof("content") == "text":
        return blocks[0].text
    return [{"type": each.WhichOneof("content"), **_plain(each)} for each in blocks] or None


def _call(call: Any) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _tool(tool: Any) -> dict[str, Any]:
    if tool.WhichOneof("tool") != "function":
        return _plain(tool)
    function = tool.function
    try:
        parameters = json.loads(function.parameters)
    except ours(ValueError):
        parameters = function.parameters
    described = {"description": function.description} if function.description else {}
    return {"type": "function", "function": {"name": function.name, **described, "parameters": parameters}}


def _plain(message: Any) -> dict[str, Any]:
    made: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return made


def with_body(request: Any, body: dict[str, Any]) -> Any:
    """Return a request with the messages, the further tools and the choice of a body; the given one stays as it is."""
    made = type(request)()
    made.CopyFrom(request)
    del made.messages[:]
    for message in map(fields, listed(body["messages"])):
        _add(made.messages.add(), message, request.messages)
    _put_tools(made, listed(body.get("tools")))
    choice = text(body.get("tool_choice"))
    if choice in _MODES:
        made.tool_choice.Clear()
        made.tool_choice.mode = _MODES[choice]
    return made


def _add(made: Any, message: Any, originals: Any) -> None:
    """Fill a new message; a changed one has its other fields from the original in its place."""
    place, plain = message.get(_PLACE), dict[str, Any]()
    if type(place) is int:
        made.CopyFrom(originals[place])
        if message == _message(made, place):
            return
        plain = _plain(made)
        made.Clear()
    content, before = message.get("content"), listed(plain.get("tool_calls"))
    blocks = [content] if is_text(content) else listed(content)
    blocks = [{"text": block} if is_text(block) else without(fields(block), "type") for block in blocks]
    calls = enumerate(map(fields, listed(message.get("tool_calls"))))
    changed = {
        "role": _NUMBERS.get(text(message.get("role")) or "", 1),
        "content": [block for block in blocks if any(block.values())],
        "tool_calls": [_put_call(call, before[at] if at < len(before) else {"type": 1}) for at, call in calls],
        **{name: value for name in _OTHER_TEXTS if (value := text(message.get(name)))},
    }
    ParseDict({**plain, **changed}, made, ignore_unknown_fields=True)


def _put_call(call: Any, before: dict[str, Any]) -> dict[str, Any]:
    """Return a call as protocol buffers have it. An original call keeps its type."""
    function = fields(call.get("function"))
    named = {name: text(function.get(name)) or "" for name in ("name", "arguments")}
    return {**before, "id": text(call.get("id")) or "", "function": named}


def _put_tools(made: Any, tools: list[Any]) -> None:
    """Keep the tools that a body still has, and add tools that the request does not have."""
    given = list(map(_tool, made.tools))
    if tools == given:
        return
    kept = [tool for tool, plain in zip(list(made.tools), given, strict=True) if plain in tools]
    del made.tools[:]
    made.tools.extend(kept)
    for tool in tools:
        if tool not in given:
            function = fields(fields(tool).get("function"))
            changed = {**function, "parameters": json.dumps(function["parameters"])}
            ParseDict({"function": changed}, made.tools.add(), ignore_unknown_fields=True)
