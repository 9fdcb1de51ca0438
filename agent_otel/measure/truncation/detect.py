"""Detect truncated texts. A heuristic that costs a few microseconds at any size."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any, Final, NamedTuple

from agent_otel._internal import object_kinds
from agent_otel._internal.errors import attempt, ours
from agent_otel._internal.lazy import pattern
from agent_otel._internal.object_kinds import fields, shape_of
from agent_otel.measure.size import block_text
from agent_otel.measure.truncation.markers import (
    COMMON,
    EVIDENCE,
    KNOWN_CAPS,
    MARKER,
    OFFLOADED,
    RARER_STEMS,
    STEMS,
    WHOLE,
    Marker,
    is_notice,
    marker_of,
    patterns,
)

CUT_JSON: Final = "cut_json"
SUSPECTED: Final = "suspected"

# Characters looked at. Notices stand at the beginning or the end, and between equal halves; Python looks for the ten
# stems at 0.35 ns a character each, and the whole check has 5 µs.
_HEAD: Final = 256
_MIDDLE: Final = 96
_TAIL: Final = 320
_WINDOW: Final = _HEAD + _MIDDLE + _TAIL
STARTS: Final = "TECW{"

_REFUSED_STARTS: Final = frozenset("<4HECR{")

#: First characters of texts that may be cut by their shape, and the first of those that are half a character.
_SHAPED: Final = _REFUSED_STARTS | frozenset(STARTS) | frozenset("{[(")
_HALF: Final = "\ud800"

_AROUND: Final = 128  # characters by which a marker may reach out of them
_MOST_BEFORE: Final = 8  # line ends before a marker at the beginning
_MOST_BLOCKS: Final = 64
_LONGEST_WHOLE: Final = 64

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
    text = _block(after[0]) if type(after) is list and len(after) == 1 else after
    is_of_python = type(text) is str and text.startswith(_WRITTEN) and text[-1] == _CLOSERS[text[0]]
    return lost * 2 >= before_bytes or not is_of_python


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
    except ours(Exception):
        return None


def _text_cut(text: str, size_bytes: int | None = None) -> Cut | None:
    length = len(text)
    has_stem = False
    if length <= _WINDOW:
        window = text
        for stem in STEMS if COMMON in window else RARER_STEMS:
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
        whole = WHOLE.get(text.strip())
        if whole is not None:
            return Cut(whole.reason, whole.project)
        if not length:
            return None
    first, last = text[0], text[-1]
    # Python finds a single letter in a text at next to no cost, and most texts end here.
    if (
        first in _SHAPED
        or "[" in (text if length <= MOST_BYTES else window)
        or "{" in window
        or last >= _HALF
        or length in KNOWN_CAPS
        or size_bytes in KNOWN_CAPS
        or first.isspace()
    ):
        return _shape_cut(text, length, size_bytes)
    return None


def _has_stem(window: str) -> bool:
    """Return True if a window holds a word of a marker, in half the time of `in` where it has none."""
    last_place = window.rfind
    for stem in STEMS if last_place(COMMON) >= 0 else RARER_STEMS:  # noqa: SIM110 - in less time than a generator
        if last_place(stem) >= 0:
            return True
    return False


def _shape_cut(text: str, length: int, size_bytes: int | None) -> Cut | None:
    """Find a cut without a marker, by the shape of a text, its end or its length."""
    first = text[0]
    if length <= LONGEST and first in _REFUSED_STARTS and is_page(text):
        return Cut(MARKER, SOURCE)
    # Python finds a single letter in a text at next to no cost.
    may_be = (first in STARTS and text.startswith(OPENINGS)) or (_HEAD < length <= MOST_BYTES and "[" in text)
    if may_be and is_head_and_tail(text, length, size_bytes):
        return Cut(MARKER, "codex")
    if (first in "{[(" or first.isspace()) and is_cut_document(text):
        return Cut(CUT_JSON, None)
    if first in "{[":
        tail = text[-_TAIL:]
        if ("ct]" in tail or "ay]" in tail or "..." in tail) and is_cut_by_depth(text):
            return Cut(MARKER, "depth")
    elif (text.find("{", 1, _HEAD) > 0 or text.find("[", 1, _HEAD) > 0) and is_cut_behind_words(text):
        return Cut(CUT_JSON, None)
    last = text[-1]  # half a character, which decoders replace or leave, or exactly the length of a known cap
    is_half = last == "\ufffd" or "\ud800" <= last <= "\udfff"
    is_suspect = is_half or length in KNOWN_CAPS or size_bytes in KNOWN_CAPS
    return Cut(SUSPECTED, None) if is_suspect else None


def _confirmed(text: str, length: int) -> Cut | None:
    """Compare the surroundings of the stems with the markers."""
    known, habits = patterns()
    found = None
    seen: dict[str, Marker] = {}  # the same marker may stand there many times
    regions = [(0, length)]
    if length > _WINDOW:
        middle = (length - _MIDDLE) // 2
        regions = [(length - _TAIL, length), (0, _HEAD), (middle, middle + _MIDDLE)]
    for begin, end in regions:
        for match in known.finditer(text, max(begin - _AROUND, 0), end + _AROUND):
            notice, at = match.group(), match.start()
            is_first = at <= _MOST_BEFORE and not text[:at].strip()
            # A marker that leads has the rest of the result in the same line.
            if not (is_notice(text, *match.span()) or (is_first and marker_of(notice).leads)):
                continue
            marker = seen.get(notice) or seen.setdefault(notice, marker_of(notice))
            if marker.reason is OFFLOADED:
                return Cut(marker.reason, marker.project)
            if found is None or found.marker is None:
                found = Cut(marker.reason, marker.project)
        if found is None:
            habitual = habits.finditer(text, max(begin - _AROUND, 0), end + _AROUND)
            if any(is_notice(text, *match.span()) for match in habitual):
                found = Cut(MARKER, None)
    return found


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
    more, content = known.get("additional_kwargs"), known.get("content")
    cut = _evidence(known) or (_evidence(fields(more)) if type(more) is dict else None)
    if cut is not None:
        return cut
    if type(content) is str:
        return _text_cut(content, size_bytes)
    return _blocks_cut(content, size_bytes) if type(content) is list else None


def _inner_cut(known: dict[str, Any]) -> Cut | None:
    """Look at the blocks of a tool's result in the formats of Anthropic, Bedrock and MCP, and at JSON in texts."""
    if is_answer(known):
        return Cut(MARKER, SOURCE)
    result = known.get("toolResult")
    content = (fields(result) if type(result) is dict else known).get("content")
    if type(content) is list:
        return _blocks_cut(content)
    data = known.get("json")  # of Bedrock
    return Cut(CUT_JSON, None) if is_cut_text_of(fields(data) if type(data) is dict else known) else None


def _evidence(known: dict[str, Any]) -> Cut | None:
    for key, marker in EVIDENCE.items():
        said = known.get(key)
        if said is True or (type(said) is int and said > 0) or (type(said) is str and key == "lc_evicted_to"):
            return Cut(marker.reason, marker.project)
    return None


_HEADERS: Final = ("Total output lines: ", "Exit code: ", "Chunk ID: ", "Wall time: ")
_TOTAL: Final = "Total output lines: "
_ENVELOPES: Final = ('{"output":"', '{"output": "')
OPENINGS: Final = (*_HEADERS, *_ENVELOPES)
_ENVELOPE_END: Final = '"metadata":'

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

# Detect the cuts of Codex: a head and a tail of lines with a notice between them, which is not in the middle. Codex
# keeps 128 lines, at most 5,120 bytes, of the head, and 128 lines of the tail, 10,240 bytes in all. Other versions
# keep equal numbers of bytes below a header.


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
    return lines in {_HALF_LINES - 1, _HALF_LINES} or is_full


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


SOURCE: Final = "HTTP 413"

LONGEST: Final = 1024

# Detect the pages that servers and proxies send in place of a body that was too large for them.

"""Characters of the longest page. Longer ones are documentation."""

_PHRASE: Final = r"(?:Request Entity|Payload|Content) Too Large"
_PAGE: Final = pattern(
    rf"(?:<!DOCTYPE[^>]*>\s*)?<html[^>]*>\s*<head>\s*<title>\s*413 {_PHRASE}\s*</title>.*|"
    rf"(?:HTTP(?:/[\d.]+)? |Error: )?413:? {_PHRASE}\.?|"
    rf"413 Client Error: {_PHRASE} for url: \S+|"
    rf"Client error '413 {_PHRASE}' for url '[^']*'(?:\nFor more information check: \S+)?|"
    r"Request failed with status code 413\.?|"
    rf"{_PHRASE}\s+FUNCTION_(?:PAYLOAD|RESPONSE_PAYLOAD)_TOO_LARGE\b.*",
    re.DOTALL,
)
_MESSAGE: Final = pattern(rf"Request Too Long|{_PHRASE}|Response payload size exceeded maximum allowed payload size .*")
_MESSAGES: Final = ("message", "errorMessage", "error", "title")
_CODES: Final = ("statusCode", "status_code", "status", "code")
_REFUSED_STEMS: Final = ("413", "Too L", "TooLarge")
_TOO_LARGE: Final = 413
_LONGEST_PHRASE: Final = 128
_MOST_ALONE: Final = 2  # keys of an answer without a status


def is_page(text: str) -> bool:
    """Return True if a short text is such a page, the exception of an HTTP client about it, or such an object."""
    if text[0] != "{":
        return _PAGE.fullmatch(text.rstrip()) is not None
    if not any(stem in text for stem in _REFUSED_STEMS):
        return False
    answer = attempt(json.loads, text)
    return type(answer) is dict and is_answer(answer)


def is_answer(known: dict[str, Any]) -> bool:
    """Return True if an object is such an answer: the phrase alone, or beside the status."""
    for name in _MESSAGES:
        message = known.get(name)
        if type(message) is str and len(message) <= _LONGEST_PHRASE and _MESSAGE.fullmatch(message):
            return len(known) <= _MOST_ALONE or any(type(c) is int and c == _TOO_LARGE for c in map(known.get, _CODES))
    return False


_CLOSERS: Final = {"{": "}", "[": "]", "(": ")"}
_JSON_PREFIX: Final = 1024
_BLANK_EDGE: Final = 64
_LONGEST_LINE: Final = 64 * 1024
_HALF_NUMBER: Final = pattern(r"\s*(?:[.eE][+-]?)?")  # or nothing at all
_LONGEST_ESCAPE: Final = 6
_PYTHON_OPENINGS: Final = ("{'", "[{'", "['", "[('", "('", "({'", "[(")
_AFTER_OPENER: Final = '"[{-0123456789tfn'  # and "", when nothing is left
_LITERALS: Final = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_ALONE: Final = pattern(r"\n[}\]]\r?\n(?!\s*[{\[])")
_CLOSED: Final = pattern(r"\n[}\]]\s*\n|[}\]]\n\s*\n")
_decode = json.JSONDecoder().raw_decode

#: Characters of a text in which JSON is parsed whole.
_PARSED: Final = 16 * 1024
_MOST_KEYS: Final = 16
_BEHIND_WORDS: Final = pattern(r"\n([{\[])(?=\s*[\"{\[])")
_FENCE: Final = "```"
_INNER_LINE: Final = pattern(r"\n\s+(?:[\"{}\[\]\dtfn-][^\n]*)?$")
_INNER: Final = pattern(r"[\]}\"\d] ?[,:] ?[\"{\[\d]")
_JSON_OPENINGS: Final = ('{"', '[{"', '["')
_ESCAPED: Final = pattern(r'"(?:\{|\[\{|\[)\\"')


_OPENER: Final = r"(?:[A-Za-z_][\w.]*)?[\[{(]"
_TEXT: Final = r"(?:[bru]{1,2})?(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_VALUE: Final = rf"(?:{_TEXT}|-?\d[\w.+-]*|None|True|False|<[^<>\n]{{1,200}}>|[A-Za-z_][\w.]*(?=[,\])}}]))"
_NAMED: Final = r"(?:[A-Za-z_]\w*=)?"
_ITEM: Final = rf"{_NAMED}(?:{_OPENER})*{_NAMED}(?:{_VALUE})?[\]}})]*"
#: Python puts a blank behind each comma and colon, and `pprint` a line end.
_ITEMS: Final = pattern(rf"(?:{_ITEM}(?:,\s+|: ))+", re.DOTALL)
#: A text without its end, or what is left of a name or a number.
_BROKEN: Final = pattern(
    rf"{_NAMED}(?:{_OPENER})*{_NAMED}(?:[bru]{{0,2}}['\"].*|[\w.+-]*[,:]?|{_ITEM}[,:]?)", re.DOTALL
)
_QUOTED: Final = pattern(_TEXT, re.DOTALL)


_DEEP: Final = pattern(
    r"(?:[\w'\"\]]: ?|\[ ?|, ?|\n\s*)(?:\"\[(?:Object|Array|object Object)\]\"|\[(?:Object|Array)\])(?=\s*[,}\]])|"
    r"['\"]: ?(?:\{\.\.\.\}|\[\.\.\.\])(?=\s*[,}\]])"
)

# Detect documents that stop before their end: JSON, what Python writes of an object, and either behind a few words.


def is_cut_document(text: str) -> bool:
    """Return True if a text that begins with a bracket is a document that stops, or one with such a text in it."""
    if text[-1] != _CLOSERS.get(text[0]):
        if text.startswith(_PYTHON_OPENINGS):
            return _is_cut_python(text)
        if _is_cut_json(text):
            return True
    if text[0] != "{" or text.find("\\", 1, _HEAD) < 0 or len(text) > _PARSED or not _ESCAPED.search(text, 0, _HEAD):
        return False
    known = attempt(json.loads, text)
    return type(known) is dict and is_cut_text_of(known)


def is_cut_text_of(known: dict[str, Any]) -> bool:
    """Return True if one of the first texts of an object is JSON that stops."""
    texts = (value for value in islice(known.values(), _MOST_KEYS) if type(value) is str)
    return any(text.startswith(_JSON_OPENINGS) and _is_cut_json(text) for text in texts)


def is_cut_behind_words(text: str) -> bool:
    """Return True if JSON that begins on a line of its own, behind a few words, stops with the text.

    A short text is parsed to its end. Of a longer one the last line decides: prose may follow an example.
    """
    begin = _BEHIND_WORDS.search(text, 0, _HEAD)
    if begin is None:
        return False
    at = begin.start(1)
    if len(text) - at > _PARSED:
        start, tail = text[at : at + _JSON_PREFIX], text[-_TAIL:]
        is_open = _INNER_LINE.search(tail) if "\n" in start else "\n" not in tail and _INNER.search(tail)
        return bool(is_open) and tail.rstrip()[-1:] != _CLOSERS[begin[1]] and _runs_out(start)
    rest = text[at:].rstrip()
    return _runs_out(rest.removesuffix(_FENCE).rstrip() if text[:at].rstrip().endswith(("```json", _FENCE)) else rest)


def _is_cut_json(text: str) -> bool:
    """Return True if a JSON object or array stops before its end.

    Only a missing closer makes it worth parsing, and only the first 1,024 characters: if a parser runs to their end,
    the end is the only error. A log line, a link or a template has an error earlier.
    """
    closer = _CLOSERS.get(text[:_BLANK_EDGE].lstrip()[:1])
    if closer is None or text[-1] == closer or text[-_BLANK_EDGE:].rstrip()[-1:] == closer:
        return False
    prefix = text[: _JSON_PREFIX + _BLANK_EDGE].lstrip()[:_JSON_PREFIX]
    if prefix[1:].lstrip()[:1] not in _AFTER_OPENER:
        return False
    return _runs_out(prefix) and not _has_ended(text, closer, is_one_line="\n" not in prefix)


def _runs_out(prefix: str) -> bool:
    """Return True if the end of a text is the only error that a parser finds."""
    try:
        _decode(prefix)
    except ours(json.JSONDecodeError) as error:
        rest = prefix[error.pos :]
        return (
            error.msg.startswith("Unterminated string")
            or (error.msg.startswith("Invalid \\uXXXX") and len(rest) <= _LONGEST_ESCAPE)
            or _HALF_NUMBER.fullmatch(rest) is not None
            or any(literal.startswith(rest) for literal in _LITERALS)
        )
    except ours(RecursionError):
        return False
    return False


def _has_ended(text: str, closer: str, *, is_one_line: bool) -> bool:
    """Return True if the JSON ends before the text does: a remark or more JSON follows."""
    tail = max(len(text) - _TAIL, 0)
    if not is_one_line:
        # Also far from the end: a long remark may follow, and not another document, which is the one that may be cut.
        end = _CLOSED.search(text, tail) or _ALONE.search(text, _JSON_PREFIX, _LONGEST_LINE)
        return end is not None
    # JSON of one line ends where its line does: the first one's end if it is not too far, or one near the text's.
    ends = (text.find("\n", _JSON_PREFIX, _LONGEST_LINE), text.find("\n", tail))
    return any(text[max(end - _BLANK_EDGE, 0) : end].rstrip()[-1:] == closer for end in ends if end > 0)


def _is_cut_python(text: str) -> bool:
    """Return True if what ``str()`` or ``repr()`` makes of an object stops before its end.

    Only a missing closer makes it worth reading, and only the first 1,024 characters.
    """
    closer = _CLOSERS[text[0]]
    if text[-_BLANK_EDGE:].rstrip()[-1:] == closer:
        return False
    prefix = text[:_JSON_PREFIX]
    items = _ITEMS.match(prefix)
    if items is None or _BROKEN.fullmatch(prefix, items.end()) is None:
        return False
    rest = _QUOTED.sub("", prefix)
    end = min(at for at in (rest.find("'"), rest.find('"'), len(rest)) if at >= 0)
    depth = sum((letter in "{[(") - (letter in "}])") for letter in rest[:end])
    return depth > 0 and not _has_ended(text, closer, is_one_line="\n" not in prefix)


def is_cut_by_depth(text: str) -> bool:
    """Return True if an object has a placeholder for what is nested too deep: `[Object]` of Node.js, `{...}` of Python.

    Looks at the beginning and the end of a text that begins and ends with a bracket.
    """
    if text[-_BLANK_EDGE:].rstrip()[-1:] != _CLOSERS[text[0]]:
        return False
    return _DEEP.search(text[:_HEAD]) is not None or _DEEP.search(text[-_TAIL:]) is not None
