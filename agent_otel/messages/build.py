"""Build a tool call and its result in the format of an existing history."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from agent_otel.messages.fields import fields, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ITEMS: Final = frozenset({"function_call", "function_call_output", "reasoning"})
_BLOCKS: Final = frozenset({"tool_use", "tool_result"})


def shape_of(messages: Sequence[Any]) -> str | None:
    """Return the format of a history that has tool calls; None if no format or several formats match."""
    found = {shape for message in messages if (shape := _shape(message)) is not None}
    return found.pop() if len(found) == 1 else None


def pair(messages: Sequence[Any], call_id: str, name: str, text: str) -> list[Any]:
    """Return a call without arguments and its result in the history's format; raise KeyError for an unknown format."""
    return _MAKERS[shape_of(messages) or ""](call_id, name, text)


def _shape(message: Any) -> str | None:
    known = fields(message)
    kind = known.get("type")
    if type(message) is not dict:
        return "langchain" if "tool_calls" in known and kind == "ai" else None
    if kind in _ITEMS:
        return "responses"
    if "tool_calls" in known:
        return "chat"
    for block in map(fields, listed(known.get("content"))):
        if block.get("type") in _BLOCKS:
            return "anthropic"
    for part in map(fields, listed(known.get("parts"))):
        if "functionCall" in part or "function_call" in part:
            return "gemini"
    return None


def _chat(call_id: str, name: str, text: str) -> list[Any]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": text},
    ]


def _responses(call_id: str, name: str, text: str) -> list[Any]:
    return [
        {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}"},
        {"type": "function_call_output", "call_id": call_id, "output": text},
    ]


def _anthropic(call_id: str, name: str, text: str) -> list[Any]:
    return [
        {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": name, "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": text}]},
    ]


def _gemini(_: str, name: str, text: str) -> list[Any]:
    return [
        {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"result": text}}}]},
    ]


def _langchain(call_id: str, name: str, text: str) -> list[Any]:
    messages = sys.modules["langchain_core.messages"]
    call = {"id": call_id, "name": name, "args": {}, "type": "tool_call"}
    return [
        messages.AIMessage(content="", tool_calls=[call]),
        messages.ToolMessage(content=text, tool_call_id=call_id, name=name),
    ]


_MAKERS: Final[dict[str, Callable[[str, str, str], list[Any]]]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "langchain": _langchain,
}
