"""Copies of arguments and results on a span, for programs that ask for content."""

from __future__ import annotations

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
