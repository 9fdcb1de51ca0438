"""Items of OpenAI's Responses API: calls of functions and custom tools, and their outputs. Reasoning is left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_otel.messages import messages
from agent_otel.messages.fields import text
from agent_otel.messages.types import AnsweredCall, RequestedCall, Transcript

if TYPE_CHECKING:
    from collections.abc import Mapping

_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output")
# Prefixes of ids that the API generates. Other ids are frameworks' placeholders, the same for all items.
_OWN_IDS: Final = ("msg_", "fc_", "fco_", "ctc_", "ctco_", "rs_")


def read(item: Mapping[str, Any]) -> Transcript | None:
    """Return an item's calls and outputs, or None if the item is of another type."""
    kind = item.get("type")
    if type(kind) is not str:
        return None
    own = text(item.get("id"))
    own = own if own is not None and own.startswith(_OWN_IDS) else None
    if kind in _OUTPUTS and "output" in item:
        status = item.get("status")
        failed = True if status == "failed" else None
        return Transcript(
            answered=(AnsweredCall(("output",), text(item.get("call_id")), None, item["output"], failed),), id=own
        )
    name = _CALLS.get(kind)
    if name is not None and name in item:
        free = kind == "custom_tool_call"
        return Transcript(
            (RequestedCall((name,), text(item.get("call_id")), text(item.get("name")), item[name], free),), id=own
        )
    if kind == "message":
        seen = messages.read(item)
        return None if seen is None else seen._replace(id=own)
    return Transcript(id=own) if kind == "reasoning" else None
