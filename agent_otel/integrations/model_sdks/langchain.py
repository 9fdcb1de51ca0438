"""LangChain's chat models, of any provider.

They stand above the providers' SDKs: where one is read, its request counts, and learns here whose it is (a graph's
thread, an agent) and whether messages stand in it twice, since only LangChain's have ids.

The entry is in ``frameworks/langchain.py``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from agent_otel._internal.object_kinds import attributes, fields, identity, is_empty, listed, text
from agent_otel.core import handler, remedy_hooks
from agent_otel.core.cost.usage import read as read_usage
from agent_otel.core.thread.request_prefix import Messages
from agent_otel.core.types import PAUSED, AskedCall, Invocation, ModelReader, ModelRequest, RequestPart
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.request_bodies import is_forced
from agent_otel.semconv import ASSISTANT, SYSTEM, TOOL_CALL_ARGUMENTS, TOOL_RESULTS, TOOLS, USER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent_otel.core.cost.usage import Usage

_KINDS = {
    "human": USER,
    "user": USER,
    "ai": ASSISTANT,
    "assistant": ASSISTANT,
    "system": SYSTEM,
    "developer": SYSTEM,
    "tool": TOOL_RESULTS,
    "function": TOOL_RESULTS,
}
_CALL_LISTS = ("tool_calls", "invalid_tool_calls")
# Content blocks that repeat the message's tool_calls.
_CALLS = ("tool_use", "tool_call", "tool_call_chunk", "function_call", "input_json_delta", "invalid_tool_call")


def _generated(invocation: Invocation) -> ModelRequest:
    manager = invocation.arg(2, "run_manager")
    return _request(invocation, invocation.arg(0, "messages"), None, getattr(manager, "metadata", None))


def _streamed(invocation: Invocation) -> ModelRequest:
    messages = invocation.instance._convert_input(invocation.arg(0, "input")).to_messages()
    return _request(invocation, messages, invocation.arg(1, "config"), None)


def _request(invocation: Invocation, messages: Sequence[Any], config: Any, metadata: Any) -> ModelRequest:
    said = map(fields, messages)
    remedy_hooks.announce_messages((_KINDS.get(text(m.get("type")) or "", USER), text(m.get("id"))) for m in said)
    # The config of the graph's node, or of the chain, that runs here.
    variable = getattr(sys.modules.get("langchain_core.runnables.config"), "var_child_runnable_config", None)
    around = variable.get() if variable is not None else None
    thread = agent = None
    for each in (config, {"metadata": metadata}, around):
        known = fields(each)
        found, named = fields(known.get("configurable")), fields(known.get("metadata"))
        thread = thread or identity(found.get("thread_id")) or identity(named.get("thread_id"))
        agent = agent or text(named.get("lc_agent_name"))
    names = fields(invocation.instance)
    model = text(names.get("model_name")) or text(names.get("model"))
    forced = is_forced(invocation.kwargs.get("tool_choice"))
    parts = _parts(messages, invocation.kwargs)
    return ModelRequest(parts, agent=agent, execution=thread, model=model, must_call=forced)


def _parts(messages: Sequence[Any], kwargs: Mapping[str, Any]) -> Messages:
    offered = (kwargs.get(key) for key in ("tools", "functions"))
    head = [RequestPart(TOOLS, listed(tools)) for tools in offered if issubclass(type(tools), list | tuple)]
    return Messages(head, list(messages), _message, _values, lambda message: text(attributes(message).get("id")))


def _values(message: Any) -> list[Any]:
    """Return what `_message` reads."""
    get = attributes(message).get
    calls = [get(key) for key in _CALL_LISTS]
    return [get("type"), get("content"), get("tool_call_id"), get("name"), get("id"), get("role"), *calls]


def _message(message: Any) -> Iterator[RequestPart]:
    """Yield the parts of a message: its content, then its calls; the first carries its id. An artifact is not sent."""
    known = fields(message)
    kind = known.get("type")
    part = _KINDS.get(kind) if type(kind) is str else None
    if part is None:
        kind = text(kind) or ""
        kind = kind if kind != "chat" else text(known.get("role")) or ""
        part = _KINDS.get(kind.removesuffix("MessageChunk").lower(), USER)
    calls = [fields(call) for key in _CALL_LISTS if key in known for call in listed(known[key])]
    content, message_id = known.get("content"), known.get("id")
    if calls and issubclass(type(content), list):
        content = [block for block in listed(content) if text(fields(block).get("type")) not in _CALLS]
    if not calls or not is_empty(content):
        call_id, name = known.get("tool_call_id"), known.get("name")
        yield RequestPart(part, content, call_id, name, message_id)
        message_id = None
    for call in calls:
        arguments = call.get("args")
        arguments = {} if is_empty(arguments) else arguments
        call_id, name = call.get("id"), call.get("name")
        yield RequestPart(TOOL_CALL_ARGUMENTS, arguments, call_id, name, message_id)
        message_id = None


def _usage(response: Any) -> Usage | None:
    """Return the usage of a result, or of a chunk of a stream, if the provider's SDK is not read."""
    counts = _answer(response).get("usage_metadata")
    return None if counts is None else read_usage(counts)


def _passes(chunk: Any) -> bool:
    """Return true for a chunk with neither tokens nor a piece of a call."""
    known = attributes(chunk)
    has_calls = "generations" in known or known.get("tool_call_chunks")
    return not has_calls and known.get("usage_metadata") is None


def _answer(response: Any) -> Mapping[str, Any]:
    """Return the fields of the message in a result, or of a chunk itself."""
    known = fields(response)
    generations = listed(known.get("generations"))
    return fields(fields(generations[0]).get("message")) if generations else known


def _event_asks(event: Any) -> Sequence[AskedCall] | None:
    """Return the call that an event asks for; the last one of a message decides where none before it has."""
    known = fields(event)
    block = fields(known.get("content"))
    if text(known.get("event")) == "content-block-finish" and text(block.get("type")) in _CALLS:
        return [_call(block)]
    return () if _event_ends(event) else None


def _event_ends(event: Any) -> bool:
    return text(fields(event).get("event")) == "message-finish"


def _call(call: Any) -> AskedCall:
    known = fields(call)
    return AskedCall(text(known.get("name")) or "", known.get("args"), text(known.get("id")), known.get("index"))


def _asks(response: Any) -> Sequence[AskedCall] | None:
    """Return the calls that a result, or a chunk of a stream, asks for, or that it is paused."""
    known = _answer(response)
    if "tool_calls" not in known:
        return None
    if text(fields(known.get("response_metadata")).get("stop_reason")) == "pause_turn":
        return PAUSED
    keys = ("tool_call_chunks",) if listed(known.get("tool_call_chunks")) else ("tool_calls", "invalid_tool_calls")
    return [_call(call) for key in keys for call in listed(known.get(key))]


generated = ModelReader(_generated, _usage, _asks, outermost=True)
events = ModelReader(
    _generated,
    lambda event: read_usage(fields(event).get("usage")) if _event_ends(event) else None,
    _event_asks,
    ends=_event_ends,
    outermost=True,
)
streamed = ModelReader(_streamed, _usage, _asks, outermost=True, adds_usage=True, passes=_passes)
answered = Hook(lambda _: handler.model_answered())
