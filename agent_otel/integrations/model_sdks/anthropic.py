"""Anthropic's SDK: messages and their beta, sync, async, streamed, parsed and raw, on every platform of its clients.

Read at ``request`` of the base clients, which every call style passes exactly once, before HTTP. Up to 1.0 the body is
plain data there; since then it is what the program gave, models of the SDK's own among it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core.answer_tools import asks_for
from agent_otel.core.message_parts import Messages
from agent_otel.core.plain import attributes, fields, is_dict, is_text, listed, text
from agent_otel.core.types import Invocation, ModelReader, ModelRequest, RequestPart
from agent_otel.core.usage import read as read_usage
from agent_otel.integrations.final_request import joined, tool_fields
from agent_otel.integrations.frameworks.anthropic_sessions import SESSIONS
from agent_otel.integrations.model_sdks import stainless
from agent_otel.integrations.model_sdks.stainless import (
    base_client,
    body_of,
    exchange_of,
    is_replayable,
    put_body,
    watch,
)
from agent_otel.integrations.registry.entries import Candidate, Integration, Site, Wrap
from agent_otel.semconv import ASSISTANT, COMPACTION, SYSTEM, TOOL_CALL_ARGUMENTS, TOOL_RESULTS, TOOLS, USER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from agent_otel.core.usage import Usage

ENTRY = Integration(
    "anthropic",
    distribution="anthropic",
    minimum="0.72",
    tested="0.125 and 2.11",
    uncovered="batches; the old text completions; of managed agents' sessions what the provider's side does",
    sites=(
        base_client("anthropic"),
        Site(
            Candidate(  # 1.12 and later
                "anthropic.lib.tools._beta_runner",
                Wrap("BaseSyncToolRunner._run_tool", "run_tool"),
                Wrap("BaseAsyncToolRunner._run_tool", "run_tool"),
                Wrap("tool_error_content", "swallowed"),
            ),
            Candidate(
                "anthropic.lib.tools._beta_runner",
                Wrap("BaseToolRunner.__init__", "tools"),
                Wrap("BaseSyncToolRunner._get_last_assistant_message_content", "asked"),
                Wrap("BaseAsyncToolRunner._get_last_assistant_message_content", "asked"),
                Wrap("BaseSyncToolRunner._generate_tool_call_response", "turn"),
                Wrap("BaseAsyncToolRunner._generate_tool_call_response", "turn"),
            ),
            adapter="frameworks.anthropic",
        ),
        Site(
            Candidate(  # inside the SDK's own span
                "anthropic.lib.tools._toolsets._runnable",
                Wrap("BetaRunnableToolset.tool_result", "member"),
                Wrap("BetaAsyncRunnableToolset.tool_result", "member"),
            ),
            minimum="1.12",
            adapter="frameworks.anthropic",
        ),
        *SESSIONS,
    ),
)

_ROLES = {"user": USER, "assistant": ASSISTANT, "system": SYSTEM}


def _request(invocation: Invocation) -> ModelRequest | None:
    options = invocation.arg(1, "options")
    body = options.json_data if options.extra_json is None else body_of(options)
    if not is_dict(body) or not options.url.partition("?")[0].endswith("/v1/messages"):
        return None
    body = fields(body)
    # A container that is used again has what earlier requests put into it.
    container = body.get("container")
    is_kept = text(container) is not None or text(fields(container).get("id")) is not None
    continued = is_kept or _is_continued(body)
    return ModelRequest(messages(body), continued=continued, model=body.get("model"), must_call=must_call(body))


def must_call(body: Mapping[str, Any]) -> bool:
    """Return True where the model may only call tools."""
    return text(fields(body.get("tool_choice")).get("type")) in ("any", "tool")


def messages(body: Mapping[str, Any]) -> Messages:
    """Read the body of a request for messages, which other platforms have as well."""
    body = fields(body)
    tools, system = listed(body.get("tools")), body.get("system")
    head = [RequestPart(TOOLS, tools)] if tools else []
    if is_text(system) or type(system) is list or type(system) is tuple:
        head.append(RequestPart(SYSTEM, system if is_text(system) else listed(system)))
    return Messages(head, listed(body.get("messages")), _message)


def _message(each: Any) -> Iterator[RequestPart]:
    message = fields(each)
    part, content = _ROLES.get(text(message.get("role")) or "", USER), message.get("content")
    if is_text(content):
        yield RequestPart(part, content)
    else:
        yield from _blocks(part, listed(content))


def _blocks(part: str, blocks: list[Any]) -> Iterator[RequestPart]:
    said = []
    for each in blocks:
        block = fields(each)
        kind = text(block.get("type"))
        if kind is None:
            said.append(each)
        elif kind == "tool_result":
            yield _result(block)
        elif kind.endswith("tool_result"):
            # The provider ran this tool, so no call of it was measured here.
            yield RequestPart(TOOL_RESULTS, block.get("content"))
        elif kind.endswith("tool_use"):
            yield RequestPart(TOOL_CALL_ARGUMENTS, block.get("input"), text(block.get("id")), text(block.get("name")))
        elif kind == COMPACTION:
            yield RequestPart(ASSISTANT, block.get("content"), name=COMPACTION)
        else:
            said.append(each)
    if said:
        yield RequestPart(part, said)


def _result(block: Mapping[str, Any]) -> RequestPart:
    content, call_id = block.get("content"), text(block.get("tool_use_id"))
    if content is None:
        content = ""
    elif issubclass(type(content), list | tuple):
        # The text of a single block, as it is when it is no block, so that its length is known at once.
        content = listed(content)
        only = fields(content[0]) if len(content) == 1 else {}
        if text(only.get("type")) == "text" and is_text(only.get("text")):
            content = only["text"]
    elif not is_text(content):
        call_id = None  # not iterated, so its size is unknown
    return RequestPart(TOOL_RESULTS, content, call_id, failed=block.get("is_error") is True)


def usage(response: Any) -> Usage | None:
    """Return the usage of a message, or of an event of a stream, which begins with a message."""
    known = attributes(response)
    counts = known.get("usage")
    if counts is None and "message" in known:
        counts = fields(known["message"]).get("usage")
    return None if counts is None else read_usage(counts)


def _rewrite(invocation: Invocation, view: Callable[..., Any]) -> None:
    options = invocation.arg(1, "options")
    body = body_of(options)
    if is_dict(body) and type(fields(body).get("messages")) is list:
        kept = _is_continued(fields(body))
        view_of_all = view(body["messages"], cached=_is_cached(fields(body)), kept=kept)
        put_body(options, {**body, "messages": view_of_all})


def _is_continued(body: Mapping[str, Any]) -> bool:
    """Return True in a thread, whose earlier messages, system prompt and tools the provider has."""
    return text(fields(body.get("thread")).get("type")) == "continue"


def _is_cached(body: Mapping[str, Any]) -> bool:
    """Return True when the provider caches messages: it does so only up to a block that asks for it."""
    if is_dict(body.get("cache_control")):
        return True
    blocks = (block for message in listed(body["messages"]) for block in listed(fields(message).get("content")))
    return any("cache_control" in fields(block) for block in blocks)


def _answer_only(invocation: Invocation, note: str) -> None:
    options = invocation.arg(1, "options")
    body, none = fields(body_of(options)), {"type": "none"}
    if _is_continued(body):
        *before, last = listed(body["messages"])
        last = {**fields(last), "content": joined(fields(last).get("content"), note)}
        put_body(options, {**body, "messages": [*before, last], "tool_choice": none})
    else:
        put_body(options, {**body, "system": joined(body.get("system"), note), **tool_fields(body, none)})


def asks(response: Any) -> bool | None:
    """Return whether a message, or an event of a stream, asks for a tool call, or to go on after a pause."""
    known = fields(response)
    delta = fields(known.get("delta"))
    if "pause_turn" in (text(known.get("stop_reason")), text(delta.get("stop_reason"))):
        return True
    blocks = [fields(block) for block in (*listed(known.get("content")), known.get("content_block"))]
    asked = [text(block.get("name")) or "tool_use" for block in blocks if text(block.get("type")) == "tool_use"]
    return asks_for(asked) if asked else False if any(text(block.get("type")) == "text" for block in blocks) else None


def ends(item: Any) -> bool:
    """Return true for the last event of a stream."""
    return text(fields(item).get("type")) == "message_stop"


def _passes(item: Any) -> bool:
    """Return true for an event with a piece of a block, which most are; those around them have all that is read."""
    return text(attributes(item).get("type")) == "content_block_delta"


def _body(invocation: Invocation) -> tuple[str, dict[str, Any]] | None:
    options = invocation.arg(1, "options")
    is_sent_again = _request(invocation) is not None and is_replayable(options, invocation)
    return ("anthropic", dict(body_of(options))) if is_sent_again else None


def _changed(event: Any, changes: Mapping[str, Any], _: Sequence[Any]) -> Any:
    for name, value in changes.items():
        setattr(event, name, value)
    return event


exchange = exchange_of(_body, _changed)
request = ModelReader(
    _request,
    usage,
    asks,
    watch,
    ends,
    rewrite=_rewrite,
    answer_only=_answer_only,
    exchange=exchange,
    passes=_passes,
    opens_with_usage=True,
)
refused, delay = stainless.refused, stainless.delay
