"""Gemini's contents: calls and responses are parts, and either may lack an id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_otel.messages.fields import fields, listed, text
from agent_otel.messages.types import AnsweredCall, RequestedCall, Transcript

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROLES: Final = ("user", "model", "function", "tool", None)
_CALLS: Final = ("function_call", "functionCall")
_RESPONSES: Final = ("function_response", "functionResponse")


def read(content: Mapping[str, Any]) -> Transcript | None:
    """Return a content's calls and responses, or None if the fields are not a content."""
    if "parts" not in content:
        return None
    parts, role = listed(content["parts"]), content.get("role")
    if not parts or not (role is None or type(role) is str) or role not in _ROLES:
        return None
    asked, answered, recognised = [], [], False
    for place, part in enumerate(map(fields, parts)):
        recognised = recognised or "text" in part or "inline_data" in part or "inlineData" in part
        for key in _CALLS:
            call = fields(part.get(key))
            if call:
                path = ("parts", place, key, "args")
                asked.append(RequestedCall(path, text(call.get("id")), text(call.get("name")), call.get("args")))
        for key in _RESPONSES:
            answer = fields(part.get(key))
            if answer:
                path = ("parts", place, key, "response")
                response = answer.get("response")
                failed = True if type(response) is dict and response.keys() == {"error"} else None
                answered.append(AnsweredCall(path, text(answer.get("id")), text(answer.get("name")), response, failed))
    if not (asked or answered or recognised):
        return None
    return Transcript(tuple(asked), tuple(answered), role == "user")
