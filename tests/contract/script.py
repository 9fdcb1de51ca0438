"""A model that does what the prompt says: the prompt is the script, as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_otel.testing.servers.openai import Json, Reply, ToolCall, tool_results

if TYPE_CHECKING:
    from collections.abc import Sequence

#: How a prompt begins.
BEGIN = '{"calls":'
_OBSERVED = "\nObservation:"


def prompt(*calls: tuple[str, str, dict[str, Any]]) -> str:
    """Ask for these calls in one turn, each an id, a tool's name and its arguments."""
    return json.dumps({"calls": calls}, ensure_ascii=False, separators=(",", ":"))


def decide(request: Json) -> Reply:
    """Ask for the calls of the last prompt that have no result yet; say so when there are none left."""
    calls = calls_of(request.get("messages") or request.get("input") or ())
    answered = tool_results(request)
    left = [ToolCall(id_, name, _compact(arguments)) for id_, name, arguments in calls if id_ not in answered]
    return left or "done"


def decide_one(request: Json) -> Reply:
    """Ask for the first of them."""
    left = decide(request)
    return left if isinstance(left, str) else left[:1]


def _compact(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def decide_in_text(request: Json) -> Reply:
    """Do the same without tool calls, for agents that read what to do in the model's text."""
    answered = observations(request)
    for id_, name, arguments in calls_of(request["messages"]):
        if id_ not in answered:
            return f"Thought: I look it up.\nAction: {name}\nAction Input: {_compact(arguments)}"
    return "Thought: I know.\nFinal Answer: done"


def observations(request: Json) -> dict[str, str]:
    """Results by call id, where an agent writes them into its own messages, in the order of the calls."""
    said = [text_of(message) for message in request["messages"] if message["role"] == "assistant"]
    found = [text.partition(_OBSERVED)[2].removeprefix(" ") for text in said if _OBSERVED in text]
    return dict(zip((id_ for id_, _, _ in calls_of(request["messages"])), found, strict=False))


def calls_of(messages: Sequence[Json] | str) -> list[Any]:
    """Return the calls of the last prompt, which an agent may have put into words of its own."""
    if not isinstance(messages, str):
        said = [text_of(message) for message in messages if message.get("role") == "user"]
        messages = [text for text in said if BEGIN in text][-1]
    calls: list[Any] = json.JSONDecoder().raw_decode(messages, messages.index(BEGIN))[0]["calls"]
    return calls


def text_of(message: Json) -> str:
    """Return the text of a message."""
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())
