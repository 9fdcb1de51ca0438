"""Mistral's SDK: chat and agents' completions and conversations, sync, async, streamed and parsed.

Read where the base SDK builds each request, from the models that it is about to serialise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core.types import ModelReader, Part, Request
from agent_otel.integrations.model_sdks.openai import chat, fields, listed, text
from agent_otel.semconv import ASSISTANT, SYSTEM, TOOL_CALL_ARGUMENTS, TOOL_RESULTS, TOOLS, USER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_COMPLETIONS = ("/v1/chat/completions", "/v1/agents/completions")
_CONVERSATIONS = "/v1/conversations"


def _request(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Request | None:
    # In the signature's order: method, path, base_url, url_variables, request.
    path = kwargs.get("path") or args[1]
    body = kwargs.get("request") or (args[4] if len(args) > 4 else None)  # noqa: PLR2004
    path = path.partition("#")[0]
    if body is None or (kwargs.get("method") or args[0]) != "POST":
        return None
    if path in _COMPLETIONS:
        return Request(_completion(body))
    return _conversation(body) if path.startswith(_CONVERSATIONS) else None


def _completion(body: Any) -> Iterator[Part]:
    for part in chat(body):
        yield part._replace(value=_plain(listed(part.value))) if part.part == TOOLS else part


def _conversation(body: Any) -> Request | None:
    """Read a conversation request; one with a conversation id has its fields in a nested request."""
    given = fields(body)
    if given.get("conversation_id") is None:
        return Request(_entries(given))
    more = next((value for name, value in given.items() if name.endswith("_request")), None)
    return None if more is None else Request(_entries(fields(more)), continued=True)


def _entries(given: Mapping[str, Any]) -> Iterator[Part]:
    if listed(given.get("tools")):
        yield Part(TOOLS, _plain(listed(given["tools"])))
    instructions, inputs = given.get("instructions"), given.get("inputs")
    if isinstance(instructions, str):
        yield Part(SYSTEM, instructions)
    if isinstance(inputs, str):
        yield Part(USER, inputs)
    for entry in map(fields, listed(inputs)):
        kind, content = entry.get("type"), entry.get("content")
        if kind == "function.result":
            yield Part(TOOL_RESULTS, entry.get("result") or "", text(entry.get("tool_call_id")))
        elif kind == "function.call":
            yield Part(TOOL_CALL_ARGUMENTS, entry.get("arguments") or "")
        elif isinstance(content, str | list):
            yield Part(ASSISTANT if entry.get("role") == "assistant" else USER, content)


def _plain(tools: list[Any]) -> list[Any]:
    """Return the tools' definitions as the SDK sends them: without unset fields."""
    return [
        tool.model_dump(mode="json", exclude_unset=True, by_alias=True) if hasattr(tool, "model_dump") else tool
        for tool in tools
    ]


request = ModelReader(_request)
