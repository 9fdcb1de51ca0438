"""The items of a request to OpenAI's Responses API: messages, calls and their results, and what else a model reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core.plain import fields, given, listed, text
from agent_otel.core.types import RequestPart
from agent_otel.semconv import ASSISTANT, COMPACTION, SYSTEM, TOOL_CALL_ARGUMENTS, TOOL_RESULTS, TOOLS, USER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROLES = {"user": USER, "assistant": ASSISTANT}
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
