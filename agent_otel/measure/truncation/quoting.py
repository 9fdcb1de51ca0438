"""The distinction between a marker that reports a cut and one that is only quoted in a text.

Agents read source code, documentation, diffs and logs that are full of markers. The place distinguishes a notice from a
quotation: a notice is a line of its own, or the end of the text, or it stands between two equal halves; a key is one of
the outermost object. This module reads at most a few hundred characters on each side of the marker.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

from agent_otel._internal.lazy import pattern

if TYPE_CHECKING:
    import re

_AROUND: Final = 448  # characters looked at on each side
_OFF_CENTER: Final = 3
_HEAD: Final = 256
_NEAR: Final = 128
_LONGEST_LINE: Final = 64 * 1024
_LONGEST_REST: Final = 120  # of a marker that is known by its beginning

_BRACKETS: Final = {"[": "]", "(": ")"}
_LEAD: Final = pattern(r"(?:[.…(\[][.…(\[ ]*)?")
_TRAIL: Final = pattern(r"[ \t.…)\]>_*-]{0,64}")
_END_TAG: Final = pattern(r"(?:</[\w:.-]{1,64}>)?[ \t\r]{0,64}")
_REMARK: Final = pattern(r"(?:[^<>\n]{0,200}(?:/>|</[\w:.-]{1,64}>)){0,4}")
_ITEM: Final = pattern(r"\s*[-+>|#*/;%]+\s*")  # of a list, a diff, a mail, a table, a comment
_QUOTES: Final = "\"'`\u2018\u2019\u201c\u201d\xab\xbb"
_LITERALS: Final = ('"""', "'''")
_FENCES: Final = ("```", "~~~", *_LITERALS)
_STRING: Final = pattern(r'"(?:[^"\\]|\\.)*"')


def is_notice(text: str, begin: int, end: int) -> bool:
    """Return True if the marker at ``text[begin:end]`` reports a truncation of this text and is no quotation."""
    first = text[begin]
    if first == '"':
        return is_own_key(text, begin, end)
    is_bracket = first in ".…" or first in _BRACKETS
    before = text[max(begin - _AROUND, 0) : begin]
    at = before.rfind("\n") + 1
    before, knows_line = before[at:], at > 0 or begin <= _AROUND
    if first == "<":
        close = _last(text, end, _REMARK)
    else:
        close = _closed(text, begin, end) if is_bracket else _end_of_line(text, end)
    last = _last(text, close)
    if knows_line and _LEAD.fullmatch(before) and text[last : last + 1] in ("", "\n"):
        return not _is_fenced(text, begin, close)
    if not is_bracket and first != "<":
        return False
    if len(text) - last < _AROUND and not text[last:].strip():
        return _ITEM.fullmatch(before) is None
    off = begin + len(text[begin:close].rstrip()) + begin - len(text)
    return abs(off) <= _OFF_CENTER and not _is_mentioned(before, text[close - 1 : close + 2])


def _is_mentioned(before: str, after: str) -> bool:
    """Return True if a marker is part of its line: in quotes, in a tag, between blanks, or an item of a list."""
    if not before.strip() or _LEAD.fullmatch(before) or _ITEM.fullmatch(before):
        return True
    is_quoted = before[-1] in _QUOTES or before[-2:] == "\\n" or after[1:2] in _QUOTES or after[1:] == "</"
    return is_quoted or (before[-1].isspace() and (after[0].isspace() or after[1:2].isspace()))


def _closed(text: str, begin: int, end: int) -> int:
    """Return the end of a marker in brackets, including the dots behind it."""
    found = text[begin:end]
    for opener, closer in _BRACKETS.items():
        if found.count(opener) > found.count(closer):
            at = text.find(closer, end, min(_end_of_line(text, end), end + _LONGEST_REST))
            end = at + 1 or end
    return _last(text, end, _TRAIL)


def _last(text: str, end: int, pattern: re.Pattern[str] = _END_TAG) -> int:
    match = pattern.match(text, end)
    return match.end() if match else end


def _end_of_line(text: str, begin: int) -> int:
    at = text.find("\n", begin, begin + _AROUND)
    return at if at >= 0 else min(len(text), begin + _AROUND)


def _is_fenced(text: str, begin: int, end: int) -> bool:
    """Return True if an example, or a literal of a program, opens before a line and closes behind it.

    A result that is one fence from its beginning to its end is no example.
    """
    before, after = text[max(begin - _AROUND, 0) : begin], text[end : end + _AROUND]
    knows_all_before, knows_all_after = begin <= _AROUND, len(text) - end <= _AROUND
    for fence in _FENCES:
        opened, closed = before.count(fence), after.count(fence)
        if not opened + closed:
            continue
        # Where not all of a side is known, the other one decides.
        is_open = opened % 2 == 1 or (knows_all_after and not knows_all_before)
        is_closed = closed % 2 == 1 or (knows_all_before and not knows_all_after)
        is_near = fence in before[-_NEAR:] and fence in after[:_NEAR]
        if (is_open and is_closed) or (is_near and not (knows_all_before or knows_all_after)):
            is_whole = text.startswith(fence) or (len(text) > _AROUND and fence in text[:_HEAD])
            return fence in _LITERALS or not (is_whole and text[-_HEAD:].rstrip().endswith(fence))
    return False


def is_own_key(text: str, begin: int, end: int) -> bool:
    """Return True if a key is one of the outermost object: one that begins the text, or one that ends it.

    If a text has several lines with an object each, these are not the outermost.
    """
    is_object = text[:_AROUND].lstrip()[:1] == "{"
    if is_object and begin <= _AROUND:
        return _depths(text[:begin].lstrip())[-1] == 1 and 0 not in _depths(text[:begin].lstrip())
    line = text.rfind("\n", max(begin - _LONGEST_LINE, 0), begin) + 1
    if len(text) - end > _AROUND or (is_object and line and text[line] == "{"):
        return False
    after = text[end:].rstrip()
    return after[-1:] == "}" and -1 not in _depths(after)[:-1] and _depths(after)[-1] == -1


def _depths(text: str) -> list[int]:
    """Return the number of open objects and arrays after each bracket of the text."""
    steps = [1 if letter in "{[" else -1 for letter in _STRING.sub("", text) if letter in "{}[]"]
    return list(accumulate(steps)) or [0]
