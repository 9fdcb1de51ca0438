"""Mistral's SDK: chat and agents' completions and conversations, sync, async, streamed and parsed.

Read where the base SDK builds each request, from the models that it is about to serialise.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_otel._internal.failures import context_of
from agent_otel._internal.object_kinds import (
    attributes,
    fields,
    given,
    is_dict,
    is_named,
    is_text,
    listed,
    properties,
    reworded,
    text,
)
from agent_otel.core import handler
from agent_otel.core.captured_content import hiding
from agent_otel.core.types import (
    AgentRun,
    Exchange,
    Invocation,
    ModelReader,
    ModelRequest,
    RequestPart,
    RunReader,
    ToolCall,
    ToolReader,
    ToolResult,
)
from agent_otel.integrations.model_sdks import stainless
from agent_otel.integrations.model_sdks.stainless import plain_model
from agent_otel.integrations.readers import call_at, cause_behind, raises_within, replace_by_text
from agent_otel.integrations.registry import Candidate, Integration, Site
from agent_otel.integrations.request_bodies import ChatFunction, chat, is_forced, tool_fields, with_system
from agent_otel.integrations.wrap import streams
from agent_otel.messages.fields import without
from agent_otel.messages.openai import passes
from agent_otel.semconv import ASSISTANT, SYSTEM, TOOL_CALL_ARGUMENTS, TOOL_RESULTS, TOOLS, USER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from agent_otel.core.types import Replacement


def _candidates(module: str, **wraps: str) -> tuple[Candidate, ...]:
    """Return the candidates of a module: 2.0 and later, then older."""
    return tuple(Candidate(f"{package}.{module}", **wraps) for package in ("mistralai.client", "mistralai"))


LOOP = (
    Site(Candidate("mistralai.extra.run.context", called="create_function_result"), minimum="1.12"),
    Site(*_candidates("conversations", conversation_run="Conversations.run_async"), minimum="1.12"),
)

VOICE = Site(Candidate("mistralai.extra.voice_agents.tools", invoke="FunctionHandler.invoke"), minimum="3.3")
ENTRY = Integration(
    "mistralai",
    minimum="1.3",
    tested="1.12 and 3.7",
    uncovered="completions with a suffix (`fim`), embeddings and batches; runs of `run_stream_async` (their calls are "
    "measured); sessions of voice agents (the calls of the program's functions are measured)",
    packages=("mistralai", "mistralai.client"),  # a package with code up to 1.x
    sites=(
        Site(*_candidates("basesdk", request="BaseSDK._build_request BaseSDK._build_request_async")),
        Site(*_candidates("utils.retries", delay="_get_sleep_interval"), minimum="1.12"),
        # The calls that contain these requests.
        Site(*_candidates("chat", chatting="Chat.complete Chat.complete_async Chat.stream Chat.stream_async")),
        *LOOP,
        VOICE,
    ),
)

_COMPLETIONS = ("/v1/chat/completions", "/v1/agents/completions")
_CONVERSATIONS = "/v1/conversations"
_CHAT = ChatFunction(form="mistral")


def _request(invocation: Invocation) -> ModelRequest | None:
    path, body = invocation.arg(1, "path").partition("#")[0], invocation.arg(4, "request")
    if body is None or invocation.arg(0, "method") != "POST":
        return None
    if path in _COMPLETIONS:
        asked = fields(body)
        asked = {**asked, "tools": list(map(plain_model, listed(asked.get("tools"))))}
        return ModelRequest(iter(chat(asked)), model=asked.get("model"), must_call=is_forced(asked.get("tool_choice")))
    return _conversation(body) if path.startswith(_CONVERSATIONS) else None


def _conversation(body: Any) -> ModelRequest | None:
    """Read a conversation request; one with a conversation id has its fields in a nested request."""
    inner = _inner(body)
    if inner is None:
        return None
    is_continued = inner is not body or bool(listed(fields(inner).get("inputs")))  # the first entries are kept, too
    return ModelRequest(_entries(fields(inner)), continued=is_continued, model=fields(inner).get("model"))


def _inner(body: Any) -> Any:
    """Return the request that has the entries, None where there is none."""
    asked = fields(body)
    if asked.get("conversation_id") is None:
        return body
    return next((value for name, value in asked.items() if name.endswith("_request")), None)


def _entries(asked: Mapping[str, Any]) -> Iterator[RequestPart]:
    if listed(asked.get("tools")):
        yield RequestPart(TOOLS, list(map(plain_model, listed(asked["tools"]))))
    instructions, inputs = asked.get("instructions"), asked.get("inputs")
    if is_text(instructions):
        yield RequestPart(SYSTEM, instructions)
    if is_text(inputs):
        yield RequestPart(USER, inputs)
    for entry in map(fields, listed(inputs)):
        kind, content = text(entry.get("type")), entry.get("content")
        if kind == "function.result":
            yield RequestPart(TOOL_RESULTS, given(entry.get("result")), entry.get("tool_call_id"))
        elif kind == "function.call":
            call_id = entry.get("tool_call_id")
            yield RequestPart(TOOL_CALL_ARGUMENTS, given(entry.get("arguments")), call_id, entry.get("name"))
        elif issubclass(type(content), str | list):
            yield RequestPart(ASSISTANT if text(entry.get("role")) == "assistant" else USER, content)


def _rewrite(invocation: Invocation, view: Callable[..., Any]) -> None:
    path, body = invocation.arg(1, "path"), invocation.arg(4, "request")
    messages = fields(body).get("messages")
    if path.startswith(_CONVERSATIONS) and body is not None:
        inner = _inner(body)
        entries = listed(fields(inner).get("inputs"))
        chat = [_chat_message(fields(entry)) for entry in entries]
        made = view(chat, kept=True)
        if made is not chat:  # the program's own entries are copied
            inner.inputs = [_with_result(*both) for both in zip(entries, map(fields, made), strict=True)]
    # The SDK made this model for this request only; its messages may be the program's own and are copied.
    if path.partition("#")[0] in _COMPLETIONS and type(messages) is list and is_named(body, "BaseModel"):
        body.messages = view(messages, cached=False)


def _chat_message(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of a conversation as chats have it."""
    is_result = text(entry.get("type")) == "function.result"
    role = "tool" if is_result else text(entry.get("role")) or "assistant"
    return {"role": role, "content": entry.get("result"), "tool_call_id": entry.get("tool_call_id")}


def _with_result(entry: Any, message: Mapping[str, Any]) -> Any:
    """Return an entry with the result of a message."""
    is_changed = is_named(entry, "FunctionResultEntry") and entry.result != message["content"]
    return entry.model_copy(update={"result": message["content"]}) if is_changed else entry


def _reword(invocation: Invocation, reword: Callable[[str], str]) -> None:
    """Reword the results that a conversation gets: it has the tools that it began with, and no request adds one."""
    if invocation.arg(1, "path").startswith(_CONVERSATIONS):
        _rewrite(invocation, lambda messages, **_: reworded(messages, reword))


def _answer_only(invocation: Invocation, note: str) -> None:
    body = invocation.arg(4, "request")
    models = sys.modules[type(body).__module__.rpartition(".")[0]]
    if invocation.arg(1, "path").startswith(_CONVERSATIONS):  # it would keep the note
        inner = _inner(body)
        own = inner.completion_args or models.CompletionArgs()  # or the SDK's sentinel, which is false
        inner.completion_args = own.model_copy(update={"tool_choice": "none"})
        return
    body.messages = with_system(body.messages, note, lambda: models.SystemMessage(content=note))
    for name, value in tool_fields(fields(body)).items():
        setattr(body, name, value)


def _body(invocation: Invocation) -> tuple[str, dict[str, Any]] | None:
    """Return the body without a choice that is an object of the SDK."""
    found = _CHAT.body(invocation)
    if found is None or is_text(found[1].get("tool_choice")):
        return found
    return found[0], without(found[1], "tool_choice")


def _item(value: Any) -> Any:
    return fields(value).get("data", value)


_stream, _watch = streams("EventStream", "EventStreamAsync", generator="generator")
delay = stainless.longer_delay(lambda invocation: getattr(invocation.arg(0, "exception"), "response", None))
exchange = _CHAT.exchange(lambda value: plain_model(_item(value)))._replace(
    body=_body, stream=_stream, generator="generator"
)
chatting = ModelReader(
    lambda _: ModelRequest(()),
    watch=_watch,
    outermost=True,
    # For remedies that act before the SDK builds its request.
    rewrite=lambda invocation, view: _CHAT.rewrite(invocation, partial(view, cached=False)),
    exchange=exchange,
    passes=lambda event: passes(attributes(event).get("data", event)),
    **stainless.reads(_item),
)
request = ModelReader(
    _request, rewrite=_rewrite, answer_only=_answer_only, exchange=Exchange(lambda _: None, _CHAT.put, reword=_reword)
)

#: The field that holds the function, by kind of tool; a tool of an MCP server has none.
_FUNCTIONS = ("callable", "awaitable")
_FAILED = "Error while executing "

# The loop of Mistral's client over a conversation, ``run_async``, whose context calls registered functions. Produced
# is read at ``create_function_result``, which returns the entry that the model is sent. With ``continue_on_fn_error``
# it makes a text of what a function raises.


def _result(entry: Any) -> ToolResult:
    result = fields(entry).get("result", "")
    if (text(result) or "").startswith(_FAILED):
        return ToolResult(result, error_type="tool_error", raised=True)
    return ToolResult(result)


def _replace(_: Any, replacement: Replacement, invocation: Invocation) -> Any:
    asked = invocation.arg(0, "function_call")
    models = sys.modules[type(asked).__module__.rpartition(".")[0]]
    return models.FunctionResultEntry(tool_call_id=asked.tool_call_id, result=replacement.text)


def _inject(invocation: Invocation, values: dict[str, Any]) -> bool:
    """Put arguments behind those of the model, which the client shows on a span of its own."""
    tool = invocation.arg(1, "run_tool")
    name = next((each for each in _FUNCTIONS if each in fields(tool)), None)
    if name is None:
        return False
    function = hiding(fields(tool)[name], values, handler.injected() or {})
    invocation.put(1, "run_tool", dataclasses.replace(tool, **{name: function}))
    return True


def _parameters(invocation: Invocation) -> Iterable[str]:
    definition = fields(fields(fields(invocation.arg(1, "run_tool")).get("tool")).get("function"))
    return properties(definition.get("parameters"))


called = ToolReader(
    call_at(0, "function_call", "name", "arguments", "tool_call_id"),
    _result,
    cause=cause_behind("RunException", of=context_of),  # the context raises its own within the function's exception
    replace=_replace,
    parameters=_parameters,
    inject=_inject,
)
conversation_run = RunReader(lambda _: AgentRun())  # it has no name

# Functions of the program that Mistral's voice agents call. Produced is read where a handler is invoked. It gets the
# model's arguments as JSON and returns a text. The id of the call does not reach the program.


def _voice_inject(invocation: Invocation, values: dict[str, Any]) -> bool:
    given = text(invocation.arg(0, "raw_arguments"))
    arguments = json.loads(given) if given else {}
    if not is_dict(arguments):
        return False
    invocation.put(0, "raw_arguments", json.dumps({**arguments, **values}, ensure_ascii=False))
    return True


invoke = ToolReader(
    lambda invocation: ToolCall(invocation.instance.name, text(invocation.arg(0, "raw_arguments")) or {}),
    ToolResult,
    is_refusal=raises_within("mistralai", "ValidationError"),
    replace=replace_by_text,
    parameters=lambda invocation: properties(invocation.instance.parameters),
    inject=_voice_inject,
)
