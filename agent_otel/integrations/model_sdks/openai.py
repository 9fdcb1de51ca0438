"""OpenAI's SDK: chat completions and responses, sync, async, streamed, parsed and raw, OpenAI's and Azure's clients.

Read at ``request`` of the base clients, which every call style passes exactly once, before HTTP, as plain data. Other
providers have the same shapes, some of them as objects: their adapters use `chat` and `responses` as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core.types import ModelReader, Part, Request
from agent_otel.semconv import ASSISTANT, SYSTEM, TOOL_CALL_ARGUMENTS, TOOL_RESULTS, TOOLS, USER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_ROLES = {
    "system": SYSTEM,
    "developer": SYSTEM,
    "user": USER,
    "assistant": ASSISTANT,
    "tool": TOOL_RESULTS,
    "function": TOOL_RESULTS,
}
# What a model asked for, in the items of calls to different tools.
_ARGUMENTS = ("arguments", "input", "action", "operation", "code", "queries")
# Ids that the API gave; frameworks put placeholders in their place, one for all.
_OWN_IDS = ("msg_", "fc_", "ctc_")


def _request(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Request | None:
    options = kwargs["options"] if "options" in kwargs else args[1]
    body, path = options.json_data, options.url.partition("?")[0]
    if not isinstance(body, dict):
        return None
    if path.endswith("/chat/completions"):
        return Request(chat(body))
    return responses(body) if path.endswith("/responses") else None


def fields(value: Any) -> Mapping[str, Any]:
    """The fields of a dictionary, or of an SDK's own object, without running code of it; none of anything else."""
    return value if isinstance(value, dict) else getattr(value, "__dict__", {})


def listed(value: Any) -> list[Any]:
    """A list, or nothing: omitted keys hold sentinel objects."""
    return list(value) if isinstance(value, list | tuple) else []


def text(value: Any) -> str | None:
    """A text, or nothing."""
    return value if isinstance(value, str) else None


def _content(value: Any) -> Any:
    """What can be the content of a message: anything but nothing, and the sentinels of omitted keys."""
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, str | list | dict | int | float) else None


def chat(body: Any) -> Iterator[Part]:
    """Read the body of a chat completion, as many providers have it: dictionaries or objects."""
    body = fields(body)
    for key in ("tools", "functions"):
        if listed(body.get(key)):
            yield Part(TOOLS, body[key])
    for each in listed(body.get("messages")):
        message = fields(each)
        role, content = message.get("role"), message.get("content")
        content = content if isinstance(content, str) else _content(content)
        if content is not None:
            part = _ROLES.get(role, USER) if isinstance(role, str) else USER
            yield Part(part, content, text(message.get("tool_call_id")), text(message.get("name")))
        if "tool_calls" in message or "function_call" in message:
            yield from _calls(message)


def _calls(message: Mapping[str, Any]) -> Iterator[Part]:
    calls = map(fields, listed(message.get("tool_calls")))
    asked = [call.get("function") or call.get("custom") for call in calls]
    for call in map(fields, filter(None, [*asked, message.get("function_call")])):
        yield Part(TOOL_CALL_ARGUMENTS, call.get("arguments") or call.get("input") or "")


def responses(body: Mapping[str, Any]) -> Request:
    """Read the body of a request to the Responses API."""
    items = listed(body.get("input"))
    kept = isinstance(body.get("previous_response_id") or body.get("conversation"), str | dict)
    return Request(
        _responses(body, items), continued=kept or any(fields(item).get("type") == "item_reference" for item in items)
    )


def _responses(body: Mapping[str, Any], items: list[Any]) -> Iterator[Part]:
    if listed(body.get("tools")):
        yield Part(TOOLS, body["tools"])
    if isinstance(body.get("instructions"), str):
        yield Part(SYSTEM, body["instructions"])
    if isinstance(body.get("input"), str):
        yield Part(USER, body["input"])
    for item in map(fields, items):
        kind = item.get("type") or "message"
        if isinstance(kind, str):
            yield from _item(item, kind)


def _item(item: Mapping[str, Any], kind: str) -> Iterator[Part]:
    item_id = text(item.get("id"))
    item_id = item_id if item_id is not None and item_id.startswith(_OWN_IDS) else None
    if kind == "message":
        role, content = item.get("role"), _content(item.get("content"))
        if content is not None:
            yield Part(_ROLES.get(role, USER) if isinstance(role, str) else USER, content, message_id=item_id)
    elif kind.endswith("_call_output"):
        yield Part(TOOL_RESULTS, _content(item.get("output")) or "", text(item.get("call_id")))
    elif kind.endswith("_call"):
        asked = next((value for name in _ARGUMENTS if (value := item.get(name)) is not None), "")
        yield Part(TOOL_CALL_ARGUMENTS, asked, message_id=item_id)
        # Of a tool that the provider runs: nobody here saw it being called.
        for name in ("output", "results", "result"):
            if item.get(name) is not None:
                yield Part(TOOL_RESULTS, item.get(name))
    elif kind in {"reasoning", "compaction"}:
        yield Part(ASSISTANT, item.get("encrypted_content") or item.get("summary") or "")


def _cached_tokens(response: Any) -> int | None:
    """What the usage of a whole response says; a stream has none yet, a raw one is not parsed."""
    usage = getattr(response, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None) or getattr(usage, "input_tokens_details", None)
    tokens = getattr(details, "cached_tokens", None)
    return tokens if isinstance(tokens, int) else None


def _rewrite(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], view: Callable[[Any], Any]) -> None:
    options = kwargs["options"] if "options" in kwargs else args[1]
    body, path = options.json_data, options.url.partition("?")[0]
    key = "messages" if path.endswith("/chat/completions") else "input" if path.endswith("/responses") else ""
    if isinstance(body, dict) and isinstance(body.get(key), list):
        options.json_data = {**body, key: view(body[key])}


request = ModelReader(_request, _cached_tokens, rewrite=_rewrite)
