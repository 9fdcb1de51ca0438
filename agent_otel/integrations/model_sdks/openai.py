"""OpenAI's SDK: chat completions and responses, sync, async, streamed, parsed and raw, OpenAI's and Azure's clients.

Read at ``request`` of the base clients, which every call style passes exactly once, before HTTP, as plain data. Other
providers have the same shapes, some of them as objects: their adapters use `chat` and `responses` as well.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from agent_otel.core import handler
from agent_otel.core.plain import attributes, fields, given, is_dict, is_empty, is_text, listed, properties, text
from agent_otel.core.request_prefix import Messages
from agent_otel.core.types import (
    AgentRun,
    Invocation,
    ModelReader,
    ModelRequest,
    RequestPart,
    RunReader,
    ToolCall,
    ToolReader,
    ToolResult,
)
from agent_otel.core.usage import read as read_usage
from agent_otel.integrations.final_request import joined, tool_fields, with_system
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.model_sdks import stainless
from agent_otel.integrations.model_sdks.openai_answers import ENDED, asks, ends, hosted, passes
from agent_otel.integrations.model_sdks.stainless import (
    base_client,
    body_of,
    exchange_of,
    is_replayable,
    put_body,
    watch,
)
from agent_otel.integrations.registry.entries import Candidate, Integration, Site
from agent_otel.semconv import ASSISTANT, COMPACTION, SYSTEM, TOOL_CALL_ARGUMENTS, TOOL_RESULTS, TOOLS, USER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from agent_otel.core.types import Replacement
    from agent_otel.core.usage import Usage


__all__ = ["ENTRY", "asks", "chat", "delay", "ends", "must_call", "refused", "request", "responses", "usage"]

REALTIME = Site(
    Candidate("openai.resources.realtime.realtime", sent="AsyncRealtimeConnection.send RealtimeConnection.send"),
    minimum="3.0",
)
RESPONSES = Site(
    Candidate("openai.resources.responses.responses", created="AsyncResponsesConnection.send ResponsesConnection.send"),
    minimum="3.45",
)

ENTRY = Integration(
    "openai",
    distribution="openai",
    minimum="1.40",
    tested="2.54 and 3.52",
    uncovered="results of the tools that OpenAI runs, except for `mcp_call`; of Realtime sessions and of responses "
    "over WebSockets: all but the results that are sent; `responses.compact`, tokens of background responses, "
    "assistants, batches, embeddings",
    sites=(
        base_client("openai"),
        REALTIME,
        RESPONSES,
        Site(
            Candidate(
                "openai.lib.responses_tool_runner",
                execute="ResponsesToolRunner._execute_function AsyncResponsesToolRunner._execute_function",
                runner_run="ResponsesToolRunner.iterate AsyncResponsesToolRunner.iterate",
            ),
            minimum="3.45",
        ),
    ),
)


def _request(invocation: Invocation) -> ModelRequest | None:
    options = invocation.arg(1, "options")
    body = options.json_data if options.extra_json is None else body_of(options)
    path = options.url.partition("?")[0]
    if not is_dict(body):
        return None
    if path.endswith("/chat/completions"):
        known = fields(body)
        wanted = known.get("n")
        answers = wanted if type(wanted) is int else 1
        return ModelRequest(chat(body), model=known.get("model"), must_call=must_call(known), answers=answers)
    return responses(body) if path.endswith("/responses") else None


def chat(body: Any) -> Messages:
    """Read the body of a chat completion, as many providers have it: dictionaries or objects."""
    body = fields(body)
    head = [RequestPart(TOOLS, body[key]) for key in ("tools", "functions") if listed(body.get(key))]
    return Messages(head, listed(body.get("messages")), _message)


def _message(each: Any) -> Iterator[RequestPart]:
    message = fields(each)
    role, content = message.get("role"), message.get("content")
    role = role if type(role) is str else text(role) or ""
    content = content if type(content) is str else content_of(content)
    if content is not None:
        call_id, name = message.get("tool_call_id"), message.get("name")  # `plain_part` makes them plain texts
        yield RequestPart(ROLES.get(role, USER), content, call_id, name)
    if "tool_calls" in message or "function_call" in message:
        yield from _calls(message)


def _calls(message: Mapping[str, Any]) -> Iterator[RequestPart]:
    calls = list(map(fields, listed(message.get("tool_calls"))))
    if "function_call" in message:
        calls.append({"function": message["function_call"]})
    for call in calls:
        asked = fields(call.get("function")) or fields(call.get("custom"))
        if asked:
            arguments = asked.get("arguments")
            if type(arguments) is not str or not arguments:
                arguments = given(arguments, asked.get("input"))
            call_id, name = call.get("id"), asked.get("name")
            yield RequestPart(TOOL_CALL_ARGUMENTS, arguments, call_id, name)


def responses(body: Mapping[str, Any]) -> ModelRequest:
    """Read the body of a request to the Responses API."""
    body = fields(body)
    items = listed(body.get("input"))
    return ModelRequest(
        _responses(body, items),
        continued=is_continued(body),
        model=body.get("model"),
        must_call=must_call(body),
    )


def is_continued(body: Mapping[str, Any]) -> bool:
    """Return True where the provider has earlier messages of the conversation."""
    kept = any(
        (is_text(value) or is_dict(value)) and not is_empty(value)
        for value in (body.get("previous_response_id"), body.get("conversation"))
    )
    return kept or any(text(fields(item).get("type")) == "item_reference" for item in listed(body.get("input")))


def must_call(body: Mapping[str, Any]) -> bool:
    """Return True where the model may only call tools."""
    choice = body.get("tool_choice")
    return is_dict(choice) or text(choice) == "required"


def _responses(body: Mapping[str, Any], items: list[Any]) -> Messages:
    tools, instructions, said = (body.get(key) for key in ("tools", "instructions", "input"))
    head = [RequestPart(TOOLS, tools)] if listed(tools) else []
    if is_text(instructions):
        head.append(RequestPart(SYSTEM, instructions))
    if is_text(said):
        head.append(RequestPart(USER, said))
    return Messages(head, items, parts_of)


def usage(response: Any) -> Usage | None:
    """Return the usage of a response, or of a chunk or event of a stream; a raw response is not parsed."""
    known = attributes(response)
    counts = known.get("usage")
    if counts is None and "response" in known:
        counts = fields(known["response"]).get("usage")
    return None if counts is None else read_usage(counts)


def _rewrite(invocation: Invocation, view: Callable[..., Any]) -> None:
    options = invocation.arg(1, "options")
    body, path = body_of(options), options.url.partition("?")[0]
    key = "messages" if path.endswith("/chat/completions") else "input" if path.endswith("/responses") else ""
    if is_dict(body) and type(fields(body).get(key)) is list:
        put_body(options, {**body, key: view(body[key], kept=key == "input" and is_continued(fields(body)))})


def _answer_only(invocation: Invocation, note: str) -> None:
    options = invocation.arg(1, "options")
    body = fields(body_of(options))
    if listed(body.get("messages")):
        system = {"messages": with_system(listed(body["messages"]), note)}
    elif body.get("prompt") and not listed(body.get("tools")):  # instructions and tools are the provider's
        message = {"role": "developer", "content": note}
        put_body(options, {**body, "input": [*listed(body.get("input")), message], "tool_choice": "none"})
        return
    else:  # instructions apply to this request alone, also where the provider keeps the conversation
        system = {"instructions": joined(body.get("instructions"), note)}
    put_body(options, {**body, **system, **tool_fields(body)})


def _body(invocation: Invocation) -> tuple[str, dict[str, Any]] | None:
    options = invocation.arg(1, "options")
    body, path = body_of(options), options.url.partition("?")[0]
    if not is_dict(body) or not is_replayable(options, invocation):
        return None
    form = "chat" if path.endswith("/chat/completions") else "responses" if path.endswith("/responses") else None
    return None if form is None else (form, dict(body))


def _changed(event: Any, changes: Mapping[str, Any], earlier: Sequence[Any]) -> Any:
    """Set the place of an event, and the items of earlier responses in a last event."""
    for name, value in changes.items():
        setattr(event, name, value)
    if text(fields(event).get("type")) in ENDED:
        done = (item for item in earlier if text(fields(item).get("type")) == "response.output_item.done")
        event.response.output = [*(item.item for item in done), *event.response.output]
    return event


exchange = exchange_of(_body, _changed)
request = ModelReader(
    *(_request, usage, asks, watch, ends),
    rewrite=_rewrite,
    answer_only=_answer_only,
    exchange=exchange,
    hosted=hosted,
    passes=passes,
)
refused, delay = stainless.refused, stainless.delay

# The tool runner of OpenAI's SDK, which calls registered functions in a loop over the Responses API. Produced is read
# at ``_execute_function``, which returns the item that the model is sent. An exception of a function ends the run.


def _call(invocation: Invocation) -> ToolCall:
    item = invocation.arg(1, "item")
    return ToolCall(item.name, item.arguments, item.call_id)


def _result(item: Any) -> ToolResult:
    return ToolResult(fields(item).get("output", ""))


def _replace(_: Any, replacement: Replacement, invocation: Invocation) -> dict[str, Any]:
    """Return the item of a replacement; the runner has made the one that it stands for."""
    call_id = invocation.arg(1, "item").call_id
    return {"type": "function_call_output", "call_id": call_id, "output": replacement.text}


def _inject(invocation: Invocation, values: dict[str, Any]) -> None:
    """Put arguments into a copy of the run's state, from which the function gets them."""
    run, call_id = invocation.arg(0, "run"), invocation.arg(1, "item").call_id
    given = run.arguments[call_id]
    renewed = copy.copy(run)
    known = {**given, **values} if is_dict(given) else given.model_copy(update=values)
    renewed.arguments = {**run.arguments, call_id: known}
    invocation.put(0, "run", renewed)


def _validated(invocation: Invocation) -> object:
    return fields(invocation.arg(0, "run").arguments[invocation.arg(1, "item").call_id])


def _parameters(invocation: Invocation) -> Iterable[str]:
    tool = invocation.instance._functions[invocation.arg(1, "item").name].tool
    return properties(fields(tool).get("parameters"))


def _run(_: Invocation) -> AgentRun:
    """Read a run; a runner has no name."""
    return AgentRun()


execute = ToolReader(_call, _result, replace=_replace, parameters=_parameters, inject=_inject, validated=_validated)
runner_run = RunReader(_run)

ROLES = {"user": USER, "assistant": ASSISTANT}

# The items of a request to OpenAI's Responses API: messages, calls and their results, and what else a model reads.

ROLES |= {"system": SYSTEM, "developer": SYSTEM, "tool": TOOL_RESULTS, "function": TOOL_RESULTS}
# Keys of the model's arguments, in the items of calls to different tools.
_ARGUMENTS = ("arguments", "input", "action", "operation", "code", "queries")
# Prefixes of ids that the API generates. Other ids are frameworks' placeholders, the same for all items.
_OWN_IDS = ("msg_", "fc_", "ctc_")


def content_of(value: Any) -> Any:
    """Return a message's content, or None if it is missing or a sentinel of an omitted key."""
    cls = type(value)
    if issubclass(cls, tuple):
        return listed(value)
    return value if issubclass(cls, str | list | dict | int | float) else None


def parts_of(each: Any) -> Iterator[RequestPart]:
    """Yield the parts of an item."""
    item = fields(each)
    kind = text(given(item.get("type"), "message"))
    if kind is None:
        return
    item_id = text(item.get("id"))
    item_id = item_id if item_id is not None and item_id.startswith(_OWN_IDS) else None
    if kind == "message":
        role, content = text(item.get("role")), content_of(item.get("content"))
        if content is not None:
            yield RequestPart(ROLES.get(role or "", USER), content, message_id=item_id)
    elif kind.endswith("_call_output") or kind == "program_output":
        call_id = text(given(item.get("call_id"), item.get("id")))  # a local shell's output has its call's as its own
        yield RequestPart(TOOL_RESULTS, given(content_of(item.get("output")), item.get("result")), call_id or None)
    elif kind.endswith("_call"):
        asked = next((value for name in _ARGUMENTS if (value := item.get(name)) is not None), "")
        name = text(item.get("name")) or kind.removesuffix("_call")
        yield RequestPart(TOOL_CALL_ARGUMENTS, asked, text(item.get("call_id")), name, item_id)
        # The provider ran this tool, so no call of it was measured here.
        for name in ("output", "results", "result"):
            if item.get(name) is not None:
                yield RequestPart(TOOL_RESULTS, item.get(name))
    else:
        yield from _of_others(kind, item)


def _of_others(kind: str, item: Mapping[str, Any]) -> Iterator[RequestPart]:
    """Yield the part of an item that is neither a message nor a call; the model reads each but a reference."""
    if kind in {"reasoning", COMPACTION}:
        value = given(item.get("encrypted_content"), item.get("summary"))
        yield RequestPart(ASSISTANT, value, name=COMPACTION if kind == COMPACTION else None)
    elif item.get("tools") is not None:  # that a server lists, a search has found, or the program adds
        yield RequestPart(TOOLS, listed(item["tools"]))
    elif kind != "item_reference":
        yield RequestPart(ASSISTANT, item)


# OpenAI's APIs over WebSockets, Realtime and Responses: the results that a program sends. Read at ``send`` of each
# connection. Realtime keeps the conversation: no request repeats it. The entry is in ``openai.py``.


def _sent(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    event = fields(invocation.arg(0, "event"))
    item = fields(event.get("item"))
    kinds = (text(event.get("type")), text(item.get("type")))
    if error is None and kinds == ("conversation.item.create", "function_call_output"):
        _deliver(item)


def _created(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    event = fields(invocation.arg(0, "event"))
    is_request = error is None and text(event.get("type")) == "response.create"
    for item in map(fields, listed(event.get("input")) if is_request else ()):
        if (text(item.get("type")) or "").endswith("_call_output"):
            _deliver(item)


def _deliver(item: dict[str, Any]) -> None:
    if is_text(item.get("output")):
        handler.result_delivered(RequestPart(TOOL_RESULTS, item["output"], text(item.get("call_id"))), __name__)


sent = Hook(after=_sent)
created = Hook(after=_created)
