"""Copies of arguments and results on a span, for programs that ask for content."""

from __future__ import annotations

import json
from typing import Any

from agent_otel import semconv
from agent_otel.measure.preview import preview


def capture(before: dict[str, Any] | None, attribute: str, value: object, limit_bytes: int) -> dict[str, Any]:
    """Return the attributes of copies with one more, of at most ``limit_bytes``; it is named where it is shortened."""
    whole = preview(value, limit_bytes + 4)  # more than the limit where there is more, whatever the last character
    kept = preview(whole, limit_bytes)
    found = {**(before or {}), attribute: kept}
    if kept != whole:
        found[semconv.CONTENT_TRUNCATED] = (*found.get(semconv.CONTENT_TRUNCATED, ()), attribute)
    return found


#: Shorter values, such as a tenant's name, are words that a result may have by itself.
_SHORTEST_HIDDEN = 8
_HIDDEN = "[injected]"


def without(text: str, injected: dict[str, Any]) -> str:
    """Return a text without the values that a policy has injected: a tool or a framework may repeat them."""
    for value in injected.values():
        if type(value) is str and len(value) >= _SHORTEST_HIDDEN:
            text = text.replace(value, _HIDDEN).replace(json.dumps(value)[1:-1], _HIDDEN)
    return text


def hidden(captured: dict[str, Any], injected: dict[str, Any]) -> dict[str, Any]:
    """Return copies of content without injected values."""
    return {name: without(value, injected) if type(value) is str else value for name, value in captured.items()}
