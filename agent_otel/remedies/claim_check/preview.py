"""Truncation of a text to a number of bytes: between lines or JSON values, never inside a character."""

from __future__ import annotations

import re
from typing import Final

#: A string, up to the text's end if it is truncated, or a character between values.
_MARK: Final = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[,\[\]{}]', re.DOTALL)
#: Boundaries in the first eighth are ignored: they would lose more than a value that is split.
_LATEST: Final = 8


def head(text: str, limit_bytes: int) -> str:
    """Return the beginning of a text, at most ``limit_bytes`` UTF-8 bytes.

    JSON ends after a whole element, lines after a whole line, other text between two characters. The boundary is
    searched in the last seven eighths of the limit; without one, the text ends at the limit.
    """
    encoded = text[:limit_bytes].encode("utf-8", "replace")
    if len(encoded) <= limit_bytes and len(text) <= limit_bytes:
        return text
    kept = encoded[:limit_bytes].decode("utf-8", "ignore")
    earliest = len(kept) // _LATEST
    end = _json_end(kept) if text.lstrip()[:1] in ("{", "[") else -1
    if end < earliest:
        end = kept.rfind("\n") + 1
    return kept[:end] if end >= max(earliest, 1) else kept


def _json_end(kept: str) -> int:
    """Return the end of the last whole element: before the last comma, or after the last closing bracket."""
    end = -1
    for match in _MARK.finditer(kept):
        part = match[0]
        if part == ",":
            end = match.start()
        elif part in "]}":
            end = match.end()
    return end
