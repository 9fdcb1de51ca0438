"""Cutting a text to so many bytes where a reader would: between lines or JSON values, never inside a character."""

from __future__ import annotations

import re
from typing import Final

#: A string, to the end of the text where it is cut, or what stands between values.
_MARK: Final = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[,\[\]{}]', re.DOTALL)
#: A boundary this early would cost more than a value that is cut in two: an eighth of the view.
_LATEST: Final = 8


def head(text: str, limit_bytes: int) -> str:
    """Return the beginning of a text, at most ``limit_bytes`` UTF-8 bytes.

    JSON ends after a whole element, lines after a whole line, anything else between two characters. The boundary is
    looked for in the last seven eighths of what fits; where there is none, the text ends where the bytes do.
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
    """Where the last whole element ends: before the last comma, or after the last closing bracket."""
    end = -1
    for match in _MARK.finditer(kept):
        part = match[0]
        if part == ",":
            end = match.start()
        elif part in "]}":
            end = match.end()
    return end
