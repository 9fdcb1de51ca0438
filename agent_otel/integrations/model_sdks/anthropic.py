"""Anthropic's SDK: messages and their beta, sync, async, streamed, parsed and raw, on every platform of its clients.

Read at ``request`` of the base clients, which every call style passes exactly once, before HTTP. Up to 1.0 the body is
plain data there; since then it is what the program gave, models of the SDK's own among it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core.types import ModelReader, Part, Request
from agent_otel.semconv import ASSISTANT, SYSTEM, TOOL_CALL_ARGUMENTS, TOOL_RESULTS, TOOLS, USER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_ROLES = {"user": USER, "assistant": ASSISTANT, "system": SYSTEM}


def _request(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Request | None:
    options = kwargs["options"] if "options" in kwargs else args[1]
    body = options.json_data
    if not isinstance(body, dict) or not options.url.partition("?")[0].endswith("/v1/messages"):
        return None
    thread = body.get("thread")
    return Request(messages(body), continued=isinstance(thread, dict) and thread.get("type") == "continue")


def _list(value: Any) -> list[Any]:
    """Return a list, or an empty one for sentinels of omitted keys and for iterators, which the SDK consumes."""
    return list(value) if isinstance(value, list | tuple) else []


def _get(block: Any, name: str) -> Any:
    """Return a field of a block, which is a dictionary or one of the SDK's models."""
    return block.get(name) if isinstance(block, dict) else getattr(block, "__dict__", {}).get(name)


def messages(body: Mapping[str, Any]) -> Iterator[Part]:
    """Read the body of a request for messages, which other platforms have as well."""
    tools = _list(body.get("tools"))
    if tools:
        yield Part(TOOLS, tools)
    system = body.get("system")
    if isinstance(system, str | list | tuple):
        yield Part(SYSTEM, system if isinstance(system, str) else list(system))
    for message in _list(body.get("messages")):
        part, content = _ROLES.get(_get(message, "role"), USER), _get(message, "content")
        if isinstance(content, str):
            yield Part(part, content)
        else:
            yield from _blocks(part, _list(content))


def _blocks(part: str, blocks: list[Any]) -> Iterator[Part]:
    said = []
    for block in blocks:
        kind = _get(block, "type")
        if not isinstance(kind, str):
            said.append(block)
        elif kind == "tool_result":
            yield _result(block)
        elif kind.endswith("tool_result"):
            # The provider ran this tool, so no call of it was measured here.
            yield Part(TOOL_RESULTS, _get(block, "content"))
        elif kind.endswith("tool_use"):
            yield Part(TOOL_CALL_ARGUMENTS, _get(block, "input"))
        else:
            said.append(block)
    if said:
        yield Part(part, said)


def _result(block: Any) -> Part:
    content, call_id = _get(block, "content"), _get(block, "tool_use_id")
    if content is None:
        content = ""
    elif isinstance(content, list | tuple):
        # The text of a single block, as it is when it is no block, so that its length is known at once.
        text = _get(content[0], "text") if len(content) == 1 and _get(content[0], "type") == "text" else None
        content = text if isinstance(text, str) else list(content)
    elif not isinstance(content, str):
        call_id = None  # not iterated, so its size is unknown
    return Part(TOOL_RESULTS, content, call_id if isinstance(call_id, str) else None)


def _cached_tokens(response: Any) -> int | None:
    """Return the cached tokens of a whole response; a stream has no usage yet."""
    tokens = getattr(getattr(response, "usage", None), "cache_read_input_tokens", None)
    return tokens if isinstance(tokens, int) else None


def _rewrite(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], view: Callable[[Any], Any]) -> None:
    options = kwargs["options"] if "options" in kwargs else args[1]
    body = options.json_data
    if isinstance(body, dict) and isinstance(body.get("messages"), list):
        options.json_data = {**body, "messages": view(body["messages"])}


request = ModelReader(_request, _cached_tokens, rewrite=_rewrite)
