"""Ollama's client: chat and generate, sync, async and streamed.

Read at ``_request`` of both clients. The protocol has no call ids: a result has the tool's name, or nothing at all, and
then it answers the calls of the message before it in their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core.types import ModelReader, Part, Request
from agent_otel.integrations.model_sdks.openai import fields, listed, text
from agent_otel.semconv import ASSISTANT, SYSTEM, TOOL_CALL_ARGUMENTS, TOOL_RESULTS, TOOLS, USER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ROLES = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT, "tool": TOOL_RESULTS}


def _request(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Request | None:
    body = kwargs.get("json")
    if not isinstance(body, dict):
        return None
    if "/api/chat" in args:
        return Request(_chat(body))
    return Request(_generate(body), continued=bool(body.get("context"))) if "/api/generate" in args else None


def _chat(body: Mapping[str, Any]) -> Iterator[Part]:
    if listed(body.get("tools")):
        yield Part(TOOLS, body["tools"])
    unanswered: list[str | None] = []
    for message in map(fields, listed(body.get("messages"))):
        part, content = _ROLES.get(message.get("role", ""), USER), message.get("content")
        name = None
        if part == TOOL_RESULTS:
            in_order = unanswered.pop(0) if unanswered else None
            name = text(message.get("tool_name")) or in_order
        if isinstance(content, str):
            yield Part(part, content, name=name)
        # The model's thinking, and images, are sent again with every request.
        for more in filter(None, (message.get("thinking"), message.get("images"))):
            yield Part(USER if part == TOOL_RESULTS else part, more)
        calls = [fields(fields(call).get("function")) for call in listed(message.get("tool_calls"))]
        for asked in calls:
            yield Part(TOOL_CALL_ARGUMENTS, asked.get("arguments") or {})
        if calls:
            unanswered = [text(asked.get("name")) for asked in calls]


def _generate(body: Mapping[str, Any]) -> Iterator[Part]:
    for part, key in ((SYSTEM, "system"), (USER, "prompt"), (USER, "images")):
        if body.get(key):
            yield Part(part, body[key])


request = ModelReader(_request)
