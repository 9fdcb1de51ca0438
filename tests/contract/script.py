"""A model that does what the prompt says: the prompt is the script, as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.servers.model import Json, Reply, ToolCall, tool_results

if TYPE_CHECKING:
    from collections.abc import Sequence


def prompt(*calls: tuple[str, str, dict[str, Any]]) -> str:
    """Ask for these calls in one turn, each an id, a tool's name and its arguments."""
    return json.dumps({"calls": calls}, ensure_ascii=False, separators=(",", ":"))


def decide(request: Json) -> Reply:
    """Ask for the calls of the last prompt that have no result yet; say so when there are none left."""
    calls = _calls(request.get("messages") or request.get("input") or ())
    answered = tool_results(request)
    left = [ToolCall(id_, name, _compact(arguments)) for id_, name, arguments in calls if id_ not in answered]
    return left or "done"


def _compact(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def _calls(messages: Sequence[Json] | str) -> list[Any]:
    if not isinstance(messages, str):
        messages = [_text(message) for message in messages if message.get("role") == "user"][-1]
    calls: list[Any] = json.loads(messages)["calls"]
    return calls


def _text(message: Json) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
