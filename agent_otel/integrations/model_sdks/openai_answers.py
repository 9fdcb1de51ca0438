"""Responses of OpenAI's APIs, and of those that have the same: what they ask for, where they end, what OpenAI has run.

The entry is in ``openai.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core.answers import asks_for
from agent_otel.core.plain import attributes, fields, given, is_empty, is_text, listed, text
from agent_otel.core.types import RequestPart
from agent_otel.semconv import TOOL_CALL_ARGUMENTS, TOOL_RESULTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ENDED = ("response.completed", "response.incomplete")
_DONE = "response.output_item.done"
#: Items of a response by which the program, and not the provider, is asked to act.
_ASKING = (
    *("function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"),
    "mcp_approval_request",
)


def asks(response: Any) -> bool | None:
    """Return whether a response, or a chunk or event of a stream, asks for a tool call."""
    known = fields(response)
    if "choices" in known:
        choices = [fields(choice) for choice in listed(known["choices"])]
        messages = [fields(given(choice.get("message"), choice.get("delta"))) for choice in choices]
        if not messages:
            return None
        if all(is_empty(message.get(key)) for message in messages for key in ("tool_calls", "function_call")):
            return False
        return asks_for(name for message in messages for name in _names(message))
    if "output" in known:
        items = [(text(item.get("type")), text(item.get("name"))) for item in map(fields, listed(known["output"]))]
        asked = [name or kind for kind, name in items if kind in _ASKING]
        return asks_for(asked) if asked else False if any(kind == "message" for kind, _ in items) else None
    kind = text(known.get("type"))
    return asks(known.get("response")) if kind in ENDED else None


def _names(message: Mapping[str, Any]) -> Iterator[str | None]:
    for call in (*listed(message.get("tool_calls")), {"function": message.get("function_call")}):
        asked = fields(call)
        yield text((fields(asked.get("function")) or fields(asked.get("custom"))).get("name"))


def ends(item: Any) -> bool:
    """Return true for the last chunk or event of a stream with the reason why the response ended."""
    known = fields(item)
    choices = [fields(choice) for choice in listed(known.get("choices"))]
    return text(known.get("type")) in ENDED or any(is_text(choice.get("finish_reason")) for choice in choices)


def hosted(response: Any) -> Iterable[tuple[RequestPart, RequestPart]]:
    """Read the calls of MCP tools that OpenAI has made, in a response or in the event at the end of such a call."""
    known = attributes(response)
    is_event = "type" in known and text(known["type"]) == _DONE
    return _hosted(known, is_event=is_event) if is_event or "output" in known else ()


def passes(item: Any) -> bool:
    """Return true for a chunk or event of a stream with neither tokens nor a call that OpenAI has made."""
    known = attributes(item)
    if known.get("usage") is not None or "response" in known or "output" in known:
        return False
    return "type" not in known or text(known["type"]) != _DONE


def _hosted(known: Mapping[str, Any], *, is_event: bool) -> Iterator[tuple[RequestPart, RequestPart]]:
    for item in map(fields, [known.get("item")] if is_event else listed(known.get("output"))):
        output, error = item.get("output"), item.get("error")
        if text(item.get("type")) == "mcp_call" and (output is not None or error is not None):
            call_id, name = text(item.get("id")), text(item.get("name"))
            yield (
                RequestPart(TOOL_CALL_ARGUMENTS, given(item.get("arguments")), call_id, name),
                RequestPart(TOOL_RESULTS, given(output, error), call_id, name, failed=error is not None),
            )
