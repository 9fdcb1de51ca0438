"""Detect the cuts of Codex: a head and a tail of lines with a notice between them, which is not in the middle.

Codex keeps 128 lines, at most 5,120 bytes, of the head, and 128 lines of the tail, 10,240 bytes in all. Other versions
keep equal numbers of bytes below a header.
"""

from __future__ import annotations

import re
from typing import Final

from agent_otel._internal.patterns import pattern

_HEADERS: Final = ("Total output lines: ", "Exit code: ", "Chunk ID: ", "Wall time: ")
_TOTAL: Final = "Total output lines: "
_ENVELOPES: Final = ('{"output":"', '{"output": "')
OPENINGS: Final = (*_HEADERS, *_ENVELOPES)
STARTS: Final = "TECW{"
_ENVELOPE_END: Final = '"metadata":'
_HEAD: Final = 256

_HALF_LINES: Final = 128
MOST_BYTES: Final = 10_240
_SPLIT: Final = 6  # bytes that a character at a border, and the line end before the notice, take of a half
_NEWLINES: Final = range(2 * _HALF_LINES, 2 * _HALF_LINES + 5)  # with those around the notice
_LONGEST_CONTENT: Final = 256 * 1024

_OPENING: Final = "[... o"
_FEW_BRACKETS: Final = 4
_NOTICES: Final = ("[... omitted ", "[... output truncated to fit ", " tokens truncated…", " chars truncated…")
_NOTICE: Final = pattern(
    r"(?:^|\\n)\[\.\.\. (?:omitted \d+ of \d+ lines|output truncated to fit \d+ bytes) \.\.\.\](?:$|\\n)|"
    r"…\d+ (?:tokens|chars) truncated…",
    re.MULTILINE,
)


def is_head_and_tail(text: str, length: int, size_bytes: int | None) -> bool:
    """Return True if Codex kept a head and a tail of a text; ``length`` is the number of characters.

    Below a header a notice at any place counts. Without one, either the number of lines or the number of bytes is that
    of a cut, and the notice stands where the head ends.
    """
    if text.startswith(_HEADERS):
        return _TOTAL in text[:_HEAD] and _notice(text) is not None
    if text.startswith(_ENVELOPES):
        return _ENVELOPE_END in text[-_HEAD:] and _notice(text) is not None
    if text[0] in "{[" or not _may_have_notice(text):
        return False
    notice = _notice(text)
    if notice is None:
        return False
    cut_bytes = length if size_bytes is None else size_bytes
    if cut_bytes < MOST_BYTES - _SPLIT and text.count("\n") not in _NEWLINES:
        return False
    head = text[: notice.start()]
    lines = head.count("\n") - 1
    is_full = MOST_BYTES // 2 - _SPLIT <= len(head.encode("utf-8", "replace")) <= MOST_BYTES // 2 + _SPLIT
    return lines == _HALF_LINES or lines + 1 == _HALF_LINES or is_full


def _may_have_notice(text: str) -> bool:
    """Return False if a short search for brackets finds none that opens a notice: Python finds single letters fast."""
    at = 0
    for _ in range(_FEW_BRACKETS):
        at = text.find("[", at + 1)
        if at < 0:
            return False
        if text.startswith(_OPENING, at):
            return True
    return _OPENING in text


def _notice(text: str) -> re.Match[str] | None:
    """Return the notice, if it stands on a line of its own, or within a line where the bytes were counted."""
    for stem in _NOTICES:
        at = text.find(stem, 0, _LONGEST_CONTENT)
        if at >= 0:
            return _NOTICE.search(text, max(at - _HALF_LINES, 0))
    return None
