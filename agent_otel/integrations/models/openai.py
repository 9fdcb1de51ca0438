"""OpenAI's SDK: chat completions and responses, sync, async, streamed and parsed.

Read at ``request`` of the base clients, which every call style passes exactly once, before HTTP, as plain data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel import observer
from agent_otel.catalogue import ASSISTANT, SYSTEM, TOOL_CALL_ARGUMENTS, TOOL_RESULTS, TOOLS, USER
from agent_otel.reading import Before, Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ROLES = {"system": SYSTEM, "developer": SYSTEM, "user": USER, "assistant": ASSISTANT, "tool": TOOL_RESULTS}


def _request(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    options = kwargs["options"] if "options" in kwargs else args[1]
    body = options.json_data
    if not isinstance(body, dict):
        return
    if options.url.endswith("/chat/completions"):
        observer.model_request(_chat(body))
    elif options.url.endswith("/responses"):
        observer.model_request(_responses(body))


def _list(value: Any) -> list[Any]:
    """A list, or nothing: omitted keys hold sentinel objects."""
    return value if isinstance(value, list) else []


def _chat(body: Mapping[str, Any]) -> Iterator[Part]:
    if _list(body.get("tools")):
        yield Part(TOOLS, body["tools"])
    for message in _list(body.get("messages")):
        if message.get("content") is not None:
            yield Part(_ROLES.get(message.get("role"), USER), message["content"])
        for call in _list(message.get("tool_calls")):
            yield Part(TOOL_CALL_ARGUMENTS, (call.get("function") or {}).get("arguments", ""))


def _responses(body: Mapping[str, Any]) -> Iterator[Part]:
    if _list(body.get("tools")):
        yield Part(TOOLS, body["tools"])
    if isinstance(body.get("instructions"), str):
        yield Part(SYSTEM, body["instructions"])
    if isinstance(body.get("input"), str):
        yield Part(USER, body["input"])
    for item in _list(body.get("input")):
        kind = item.get("type", "message")
        if kind == "message" and item.get("content") is not None:
            yield Part(_ROLES.get(item.get("role"), USER), item["content"])
        elif kind.endswith("_call_output"):
            yield Part(TOOL_RESULTS, item.get("output", ""))
        elif kind.endswith("_call"):
            yield Part(TOOL_CALL_ARGUMENTS, item.get("arguments", ""))


request = Before(_request)
