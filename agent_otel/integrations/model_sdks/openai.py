"""OpenAI's SDK: chat completions and responses, sync, async, streamed, parsed and raw, OpenAI's and Azure's clients.

Read at ``request`` of the base clients, which every call style passes exactly once, before HTTP, as plain data. Other
providers have the same shapes, some of them as objects: their adapters use `chat` and `responses` as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core.message_parts import Messages
from agent_otel.core.plain import attributes, fields, given, is_dict, is_empty, is_text, listed, text
from agent_otel.core.types import Invocation, ModelReader, ModelRequest, RequestPart, new_part
from agent_otel.core.usage import read as read_usage
from agent_otel.integrations.final_request import joined, tool_fields, with_system
from agent_otel.integrations.model_sdks import stainless
from agent_otel.integrations.model_sdks.openai_answers import ENDED, asks, ends, hosted, passes
from agent_otel.integrations.model_sdks.openai_items import ROLES, content_of, parts_of
from agent_otel.integrations.model_sdks.openai_realtime import REALTIME, RESPONSES
from agent_otel.integrations.model_sdks.stainless import (
    base_client,
    body_of,
    exchange_of,
    is_replayable,
    put_body,
    watch,
)
from agent_otel.integrations.registry.entries import Candidate, Integration, Site, Wrap
from agent_otel.semconv import SYSTEM, TOOL_CALL_ARGUMENTS, TOOLS, USER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from agent_otel.core.usage import Usage

__all__ = ["ENTRY", "asks", "chat", "delay", "ends", "must_call", "refused", "request", "responses", "usage"]

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
                *(Wrap(f"{kind}ResponsesToolRunner._execute_function", "execute") for kind in ("", "Async")),
                *(Wrap(f"{kind}ResponsesToolRunner.iterate", "runner_run") for kind in ("", "Async")),
            ),
            adapter="frameworks.openai_runner",
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
        yield new_part(RequestPart, (ROLES.get(role, USER), content, call_id, name, None, None, False))
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
            yield new_part(RequestPart, (TOOL_CALL_ARGUMENTS, arguments, call_id, name, None, None, False))


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
