"""Detect truncated texts. A heuristic that costs a few microseconds at any size."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal.named_tuples import NamedTuple
from agent_otel.measure import object_kinds
from agent_otel.measure.object_kinds import fields, shape_of
from agent_otel.measure.size import block_text
from agent_otel.measure.truncation import head_and_tail, markers, too_large
from agent_otel.measure.truncation.documents import (
    is_cut_behind_words,
    is_cut_by_depth,
    is_cut_document,
    is_cut_text_of,
)
from agent_otel.measure.truncation.quoting import is_notice

if TYPE_CHECKING:
    import re

CUT_JSON: Final = "cut_json"
SUSPECTED: Final = "suspected"

# Characters looked at. Notices stand at the beginning or the end, and between equal halves; Python looks for the ten
# stems at 0.35 ns a character each, and the whole check has 5 µs.
_HEAD: Final = 256
_MIDDLE: Final = 96
_TAIL: Final = 320
_WINDOW: Final = _HEAD + _MIDDLE + _TAIL

#: First characters of texts that may be cut by their shape, and the first of those that are half a character.
_SHAPED: Final = too_large.STARTS | frozenset(head_and_tail.STARTS) | frozenset("{[(")
_HALF: Final = "\ud800"
_STEMS: Final = markers.STEMS
_COMMON: Final = markers.COMMON
_RARER_STEMS: Final = markers.RARER_STEMS
_KNOWN_CAPS: Final = markers.KNOWN_CAPS

_AROUND: Final = 128  # characters by which a marker may reach out of them
_MOST_BEFORE: Final = 8  # line ends before a marker at the beginning
_MOST_BLOCKS: Final = 64
_LONGEST_WHOLE: Final = 64

_CLOSERS: Final = {"{": "}", "[": "]"}

_WRITTEN: Final = ("{'", "[{'", "['")
_SHRUNK_BYTES: Final = 256
_SHRUNK_SHARE: Final = 0.01


class Cut(NamedTuple):
    """The reason why a result counts as cut, and the project (or projects) that write the marker, if it has one.

    ``reason`` is ``marker``, ``cut_json``, ``offloaded``, ``cleared`` or ``suspected``.
    """

    reason: str
    marker: str | None


def has_shrunk(before_bytes: int, after_bytes: int, after: object = None) -> bool:
    """Return True if a result lost more than 256 bytes and 1 % between two stages; a smaller loss is reformatting.

    ``after`` is the remaining result. Python's ``str()`` of an object with many quotes is shorter than its JSON, by
    less than half, and does not count as truncated.
    """
    lost = before_bytes - after_bytes
    if lost <= _SHRUNK_BYTES or lost <= before_bytes * _SHRUNK_SHARE:
        return False
    return lost * 2 >= before_bytes or not _is_written_by_python(after)


def _is_written_by_python(value: object) -> bool:
    """Return True if a text, or the only block's text, is what ``str()`` makes of a dictionary or of such a list."""
    text = value if type(value) is str else None
    if type(value) is list and len(value) == 1:
        text = _block(value[0])
    if text is None:
        return False
    return text.startswith(_WRITTEN) and text[-1] == _CLOSERS[text[0]]


def find_cut(value: Any, size_bytes: int | None = None) -> Cut | None:
    """Return the sign that a tool result was cut; None if there is none.

    Reads a text, the first and last text of a message or of a list of content blocks, and the keys by which a
    structured result marks itself as cut. Of a text it reads the first 256, middle 96 and last 320 characters.
    ``size_bytes`` is its length in UTF-8 bytes, to be compared with silent caps that count bytes; it is not measured
    here. Never raises and never runs code of the value.
    """
    try:
        if type(value) is str:
            return _text_cut(value, size_bytes)
        if type(value) is list:
            return _blocks_cut(value, size_bytes)
        return _object_cut(value, size_bytes)
    except Exception:
        return None


def _text_cut(text: str, size_bytes: int | None = None) -> Cut | None:
    length = len(text)
    has_stem = False
    if length <= _WINDOW:
        window = text
        for stem in _STEMS if _COMMON in window else _RARER_STEMS:
            if stem in window:
                has_stem = True
                break
    else:
        middle = (length - _MIDDLE) // 2
        window = "".join((text[:_HEAD], text[middle : middle + _MIDDLE], text[-_TAIL:]))
        has_stem = _has_stem(window)
    if has_stem:
        cut = _confirmed(text, length)
        if cut is not None:
            return cut
    if length <= _LONGEST_WHOLE:
        whole = markers.WHOLE.get(text.strip())
        if whole is not None:
            return Cut(whole.reason, whole.project)
        if not length:
            return None
    first, last = text[0], text[-1]
    # Python finds a single letter in a text at next to no cost, and most texts end here.
    if (
        first in _SHAPED
        or "[" in (text if length <= head_and_tail.MOST_BYTES else window)
        or "{" in window
        or last >= _HALF
        or length in _KNOWN_CAPS
        or size_bytes in _KNOWN_CAPS
        or first.isspace()
    ):
        return _shape_cut(text, length, size_bytes)
    return None


def _has_stem(window: str) -> bool:
    """Return True if a window holds a word of a marker, in half the time of `in` where it has none."""
    last_place = window.rfind
    for stem in _STEMS if last_place(_COMMON) >= 0 else _RARER_STEMS:  # noqa: SIM110 - in less time than a generator
        if last_place(stem) >= 0:
            return True
    return False


def _shape_cut(text: str, length: int, size_bytes: int | None) -> Cut | None:
    """Find a cut without a marker, by the shape of a text, its end or its length."""
    first = text[0]
    if length <= too_large.LONGEST and first in too_large.STARTS and too_large.is_page(text):
        return Cut(markers.MARKER, too_large.SOURCE)
    # Python finds a single letter in a text at next to no cost.
    may_be = (first in head_and_tail.STARTS and text.startswith(head_and_tail.OPENINGS)) or (
        _HEAD < length <= head_and_tail.MOST_BYTES and "[" in text
    )
    if may_be and head_and_tail.is_head_and_tail(text, length, size_bytes):
        return Cut(markers.MARKER, "codex")
    if (first in "{[(" or first.isspace()) and is_cut_document(text):
        return Cut(CUT_JSON, None)
    if first in "{[":
        tail = text[-_TAIL:]
        if ("ct]" in tail or "ay]" in tail or "..." in tail) and is_cut_by_depth(text):
            return Cut(markers.MARKER, "depth")
    elif (text.find("{", 1, _HEAD) > 0 or text.find("[", 1, _HEAD) > 0) and is_cut_behind_words(text):
        return Cut(CUT_JSON, None)
    last = text[-1]  # half a character, which decoders replace or leave, or exactly the length of a known cap
    is_half = last == "\ufffd" or "\ud800" <= last <= "\udfff"
    is_suspect = is_half or length in markers.KNOWN_CAPS or size_bytes in markers.KNOWN_CAPS
    return Cut(SUSPECTED, None) if is_suspect else None


def _confirmed(text: str, length: int) -> Cut | None:
    """Compare the surroundings of the stems with the markers."""
    known, habits = markers.patterns()
    found = None
    seen: dict[str, markers.Marker] = {}  # the same marker may stand there many times
    for begin, end in _regions(length):
        for match in known.finditer(text, max(begin - _AROUND, 0), end + _AROUND):
            if not (is_notice(text, *match.span()) or _leads(text, match)):
                continue
            notice = match.group()
            marker = seen.get(notice) or seen.setdefault(notice, markers.marker_of(notice))
            if marker.reason is markers.OFFLOADED:
                return Cut(marker.reason, marker.project)
            if found is None or found.marker is None:
                found = Cut(marker.reason, marker.project)
        if found is None:
            habitual = habits.finditer(text, max(begin - _AROUND, 0), end + _AROUND)
            if any(is_notice(text, *match.span()) for match in habitual):
                found = Cut(markers.MARKER, None)
    return found


def _leads(text: str, match: re.Match[str]) -> bool:
    """Return True for a marker at the beginning of a text that has the rest of the result in the same line."""
    return (
        match.start() <= _MOST_BEFORE and not text[: match.start()].strip() and markers.marker_of(match.group()).leads
    )


def _regions(length: int) -> tuple[tuple[int, int], ...]:
    if length <= _WINDOW:
        return ((0, length),)
    middle = (length - _MIDDLE) // 2
    return (length - _TAIL, length), (0, _HEAD), (middle, middle + _MIDDLE)


def _blocks_cut(blocks: list[Any], size_bytes: int | None = None) -> Cut | None:
    """Look at the last and the first text of a list of content blocks; ``size_bytes`` is the size of all of them."""
    last = next(filter(None, map(_block, islice(reversed(blocks), _MOST_BLOCKS))), None)
    first = next(filter(None, map(_block, islice(blocks, _MOST_BLOCKS))), None)
    cut = _text_cut(last, size_bytes if len(blocks) == 1 else None) if last else None
    if cut is None and first is not last and first:
        cut = _text_cut(first)
    if last is None and blocks and type(blocks[-1]) is dict and len(blocks[-1]) == 1:
        return _inner_cut(fields(blocks[-1]))
    return cut


def _block(block: Any) -> str | None:
    return block if type(block) is str else block_text(block)


def _object_cut(value: Any, size_bytes: int | None) -> Cut | None:
    shape = shape_of(type(value))
    if shape.kind is object_kinds.TEXT:
        return _text_cut(str.__getitem__(value, slice(None)), size_bytes)
    if shape.kind is object_kinds.MAPPING:
        known = fields(value)
        return _evidence(known) or _inner_cut(known)
    if shape.namespace is None:
        return None
    known = fields(value)
    more = known.get("additional_kwargs")
    cut = _evidence(known) or (_evidence(fields(more)) if type(more) is dict else None)
    if cut is not None:
        return cut
    content = known.get("content")
    if type(content) is str:
        return _text_cut(content, size_bytes)
    return _blocks_cut(content, size_bytes) if type(content) is list else None


def _inner_cut(known: dict[str, Any]) -> Cut | None:
    """Look at the blocks of a tool's result in the formats of Anthropic, Bedrock and MCP, and at JSON in texts."""
    if too_large.is_answer(known):
        return Cut(markers.MARKER, too_large.SOURCE)
    result = known.get("toolResult")
    content = (fields(result) if type(result) is dict else known).get("content")
    if type(content) is list:
        return _blocks_cut(content)
    data = known.get("json")  # of Bedrock
    return Cut(CUT_JSON, None) if is_cut_text_of(fields(data) if type(data) is dict else known) else None


def _evidence(known: dict[str, Any]) -> Cut | None:
    for key, marker in markers.EVIDENCE.items():
        said = known.get(key)
        if said is True or (type(said) is int and said > 0) or (type(said) is str and key == "lc_evicted_to"):
            return Cut(marker.reason, marker.project)
    return None
