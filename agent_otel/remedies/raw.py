"""The bytes of a whole result, as it is measured against a ceiling and as it is stored."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from agent_otel.measure.size import block_text

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
BINARY = "application/octet-stream"


class Raw(NamedTuple):
    """A result as bytes. ``text`` is what a model could read of it; None for binary data."""

    data: bytes
    content_type: str
    text: str | None

    @property
    def content(self) -> str | bytes:
        """The text, or where there is none the bytes."""
        return self.data if self.text is None else self.text


def raw_of(value: object) -> Raw:
    """Return the bytes of a result: a text's own, the joined text of text blocks, else compact JSON.

    Unlike measuring, this runs the code of a value's own classes where JSON needs it, because a remedy was asked for;
    raises what that code raises. What has no JSON, because of its keys or because it holds itself, is its ``str``.
    """
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return Raw(bytes(value), BINARY, None)
    if isinstance(value, list):
        texts = [block if isinstance(block, str) else block_text(block) for block in value]
        if texts and all(text is not None for text in texts) and not all(isinstance(one, str) for one in value):
            return _text("".join(text for text in texts if text is not None))
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
    except (TypeError, ValueError):
        return _text(str(value))
    return Raw(text.encode("utf-8", "surrogatepass"), JSON, text)


def _text(text: str) -> Raw:
    return Raw(text.encode("utf-8", "surrogatepass"), TEXT, text)


def _plain(value: Any) -> Any:
    """What JSON has for an object: its fields, its items, else its text."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    fields = getattr(value, "__dict__", None)
    return dict(fields) if fields else str(value)
