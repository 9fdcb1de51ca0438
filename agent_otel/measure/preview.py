"""The first bytes of a value as text, for the opt-in content attributes. Never raises."""

from __future__ import annotations

from typing import Final

from agent_otel._internal.errors import ours
from agent_otel._internal.object_kinds import plain_text
from agent_otel.measure.json_pieces import CALLER_STEPS, pieces

#: Characters of a name on an attribute.
LONGEST_NAME: Final = 256


def preview(value: object, limit_bytes: int, steps: int = CALLER_STEPS) -> str:
    """Return at most ``limit_bytes`` UTF-8 bytes: text as it is, else compact JSON, type names for what has none."""
    text = plain_text(value)
    if text is not None:
        return _cut(text[:limit_bytes], limit_bytes)
    found: list[str] = []
    length = 0
    try:
        for piece in pieces(value, steps, names_objects=True):
            found.append(piece[:limit_bytes])
            length += len(piece)
            if length >= limit_bytes:
                break
    except ours(Exception):  # what was read so far is the preview
        pass
    return _cut("".join(found), limit_bytes)


def clean(name: str, limit: int = LONGEST_NAME) -> str:
    """Return a name fit for an attribute: no lone surrogates, which would lose a whole OTLP batch, and not endless."""
    if len(name) <= limit and name.isascii():
        return name
    return name[:limit].encode("utf-8", "replace").decode()


def _cut(text: str, limit_bytes: int) -> str:
    return text.encode("utf-8", "replace")[:limit_bytes].decode("utf-8", "ignore")
