"""Detect truncated texts. A heuristic that costs a few microseconds at any size."""

from __future__ import annotations

import json
import re
from itertools import islice, product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel._internal import object_kinds
from agent_otel._internal.errors import attempt, ours
from agent_otel._internal.lazy import pattern
from agent_otel._internal.object_kinds import fields, shape_of
from agent_otel.measure.size import block_text
from agent_otel.measure.truncation import notices
from agent_otel.measure.truncation.notices import (
    CLEARED,
    ENGLISH,
    LANGUAGES,
    LONGEST_CLEARED,
    MARKER,
    OFFLOADED,
    OWN_KEYS,
    PAGED_KEYS,
    is_cleared,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

CUT_JSON: Final = "cut_json"
SUSPECTED: Final = "suspected"

# Characters read from each part of a text. A short text is read whole. Searching for a stem costs 0.15 ns a character.
_HEAD: Final = 128
_FRONT: Final = 256
_TAIL: Final = 288
_MIDDLE: Final = 48
_SHORT: Final = 1_024
#: Stems that are searched in the whole text, the commonest first, as many as the budget of 5 µs allows.
_WIDE: Final = ("truncated", "omitted", "elided", "clipped>", "\n[...", "\n...")
_MORE_CHARACTERS: Final = 240_000
_SINGLE: Final = ("略", "략", "截")  # a single letter is found in a text at next to no cost
_MANY_CHARACTERS: Final = 9_200
_FEW_CHARACTERS: Final = 23_000
_BUDGETED: Final = 16 * 1024
_LONGEST_WIDE: Final = 96 * 1024
#: Longer texts are searched around these shares of their length.
_SHARES: Final = (0.0, 0.1, 0.2, 0.25, 0.33, 0.5, 0.67, 0.75, 0.8, 0.9, 1.0)
_AT_SHARE: Final = 1_536
_STEMS: Final = ENGLISH.stems
#: Rarer stems are searched when a text has dots or other letters, or when its first or last line may be a notice.
_RARER: Final = (*ENGLISH.rarer, *(stem for words in LANGUAGES.values() for stem in words.stems if stem.isascii()))
_FOREIGN: Final = tuple(stem for words in LANGUAGES.values() for stem in words.stems if not stem.isascii())
_DATA: Final = ('{"', "[{", '["', "[[", "{\n", "[\n", "{'", "['")
_DATA_ENDS: Final = ("}", "}\n", "}]", "}]\n", '"]', '"]\n', "\n]", "\n]\n", "]]")
_BEGINNINGS: Final = (
    *("…", "Tool ", "Error: ", "[Message", "│", "The result", "Response", "Content", "File ", "Log ", "Search"),
    *("Only ", "only ", "Listed ", "Displaying ", "WARNING", "Warning", "Note", "Full ", "Job", "IMPORTANT"),
    *("The complete ", "The full ", "Skipping ", "There are more", "Output ", "Result", "Mostrando ", "Exibindo "),
    *("Affichage ", "Se muestran ", "Die ", "La ", "Le ", "El ", "Show"),
)
_YEARS: Final = ("201", "202")  # of a log
_FRAMES: Final = "[(<123456789"
_FRAMED: Final = pattern(
    r"[\[(]\S*[^\s\])] [^\n]*[\])]\W*$|<(?:result|persisted|system|warning|notice|error)|[\[(]?\d[\d,.]*\+? [^\d\W]",
    re.MULTILINE,
)
_ENDINGS: Final = ("]", ")", ">", "...", "…", "]\n", ")\n", ">\n", "...\n")
_ENDING: Final = pattern(
    r"(?:\[\w\S* \S+ [^\n]*|\[[A-Z ]{8,}|(?:^|[^\w)'\"=])[\[(<](?:[^\s()<>]+ [^\n]*|\w+))[\])>]\W*$|(?:\.{3}|…)\W*$|"
    r"</(?:error|note|NOTE|notice|warning|result|system-reminder|elided_chars)>\W*$"
)
_REFUSED_STARTS: Final = frozenset("<4HECR{")

#: First characters of texts that may be cut by their shape, and the first character that is half a character.
_SHAPED: Final = _REFUSED_STARTS | frozenset("{[(")
_HALF: Final = "\ud800"

_MOST_BLOCKS: Final = 64

_WRITTEN: Final = ("{'", "[{'", "['")
_SHRUNK_BYTES: Final = 256
_SHRUNK_SHARE: Final = 0.01


class Cut(NamedTuple):
    """The reason why a result counts as cut: ``marker``, ``cut_json``, ``offloaded``, ``cleared`` or ``suspected``."""

    reason: str


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

    Reads a text, the first and last text of a message or of a list of content blocks, and the keys that mark a
    structured result as cut. A text of up to 96 KiB is searched whole, a longer one in parts.
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
    if length <= LONGEST_CLEARED:
        if not length:
            return None
        if "ed" in text and is_cleared(text):
            return Cut(CLEARED)
    reason = _noticed(text, length)
    if reason is not None:
        return Cut(reason)
    first, last = text[0], text[-1]
    # Python finds a single letter in a text at next to no cost, and most texts end here.
    if (
        first in _SHAPED
        or last in "]>\ufffd"
        or last >= _HALF
        or length in KNOWN_CAPS
        or size_bytes in KNOWN_CAPS
        or first.isspace()
        or text.find('":', 0, _FRONT) >= 0
    ):
        return _shape_cut(text, size_bytes)
    return None


def _noticed(text: str, length: int) -> str | None:
    """Return the reason of a notice; one that says where the result is stored comes first."""
    if length <= _SHORT:
        stems = _stems_in(text)
        return _read(text, stems, ((0, length),)) if stems else None
    middle = length // 2
    stems = _stems_in(text[:_HEAD] + text[middle - _MIDDLE : middle + _MIDDLE] + text[-_TAIL:])
    if length > _LONGEST_WIDE:
        middles = [int(share * length) for share in _SHARES]
        parts = [(max(at - _AT_SHARE, 0), at + _AT_SHARE) for at in middles]
        wide = list(_WIDE[:4])
    else:
        few = max(_MANY_CHARACTERS // length, min(_FEW_CHARACTERS // length, 2))
        most = few if length <= _BUDGETED else _MORE_CHARACTERS // length
        begin = 0 if most > 1 else length // 5 - _MIDDLE
        end = length - begin
        parts = [(begin, end)]
        wide = [stem for stem in _WIDE[:most] if text.rfind(stem, begin, end) >= 0]
        if not text.isascii():
            wide += [stem for stem in _SINGLE if text.rfind(stem, begin, end) >= 0]
    found = None
    if stems:
        ends = ((length - _TAIL, length), (0, _HEAD), (middle - _MIDDLE, middle + _MIDDLE))
        found = _read(text, stems, ends)
    return found or (_read(text, wide, parts) if wide else None)


def _read(text: str, stems: Iterable[str], parts: Iterable[tuple[int, int]]) -> str | None:
    """Return the reason of a notice near a stem in parts of a text."""
    found = None
    seen: set[int] = set()
    for stem, (begin, end) in product(stems, parts):
        reason = notices.read(text, stem, begin, end, seen)
        if reason is OFFLOADED:
            return reason
        found = found or reason
    return found


def _stems_in(window: str) -> list[str]:
    """Return the stems in a text. Search the rarer ones only where the first or the last line may be a notice."""
    last_place = window.rfind
    stems = [stem for stem in _STEMS if last_place(stem) >= 0]
    line = last_place("\n", 0, -2) + 1
    is_closed = window.endswith(_DATA_ENDS)
    if is_closed and last_place("elided") >= 0:
        stems.append("elided")
    if not (is_closed and window.startswith(_DATA)) and (
        last_place("...") >= 0
        or (window.endswith(_ENDINGS) and _ENDING.search(window, line) is not None)
        or window.startswith(_BEGINNINGS)
        or window.startswith(_BEGINNINGS, line)
        or (window[0] in _FRAMES and not window.startswith(_YEARS) and _FRAMED.match(window) is not None)
        or (window[line] in _FRAMES and not window.startswith(_YEARS, line) and _FRAMED.match(window, line) is not None)
    ):
        stems += [stem for stem in _RARER if last_place(stem) >= 0]
    if not window.isascii():
        stems += [stem for stem in _FOREIGN if last_place(stem) >= 0]
    return stems


def _shape_cut(text: str, size_bytes: int | None) -> Cut | None:
    """Find a cut without a marker, by the shape of a text, its end or its length."""
    first, length = text[0], len(text)
    if length <= LONGEST and first in _REFUSED_STARTS and is_page(text):
        return Cut(MARKER)
    if (first in "{[(" or first.isspace()) and is_cut_document(text):
        return Cut(CUT_JSON)
    if first in "{[":
        if is_cut_inside(text):
            return Cut(MARKER)
    elif (text.find("{", 1, _FRONT) > 0 or text.find("[", 1, _FRONT) > 0) and is_cut_behind_words(text):
        return Cut(CUT_JSON)
    is_elided = text.endswith("</output_tail>") and "<elided_chars>" in text  # mini-swe-agent
    if is_elided or (text.endswith(" columns]") and _DOTTED_ROW.search(text[-_TAIL:])):
        return Cut(MARKER)
    last = text[-1]  # half a character, which decoders replace or leave, or exactly the length of a known cap
    is_half = last == "\ufffd" or "\ud800" <= last <= "\udfff"
    is_suspect = is_half or length in KNOWN_CAPS or size_bytes in KNOWN_CAPS
    return Cut(SUSPECTED) if is_suspect else None


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
        return Cut(MARKER)
    result = known.get("toolResult")
    content = (fields(result) if type(result) is dict else known).get("content")
    if type(content) is list:
        return _blocks_cut(content)
    data = known.get("json")  # of Bedrock
    return Cut(CUT_JSON) if is_cut_text_of(fields(data) if type(data) is dict else known) else None


def _evidence(known: dict[str, Any]) -> Cut | None:
    """Return the cut that a key of an object reports."""
    for key in islice(known, _MOST_KEYS):
        if type(key) is str and any(own in key for own in OWN_KEYS) and key not in PAGED_KEYS:
            said = known[key]
            if key == "lc_evicted_to" and type(said) is str:
                return Cut(OFFLOADED)
            if said is True or (type(said) is int and said > 0):
                return Cut(MARKER)
    return None


#: Lengths, in characters or bytes, at which projects cut without a word, and at which transports end a body:
#: mcp-server-fetch 5,000; ag2 8,192; DSPy and mini-swe-agent 10,000; OpenHands' editor and Agno 16,000; smolagents
#: 20,000; OpenHands' terminal 30,000; Gemini CLI 40,000; Claude Code and OpenHands 50,000; n8n 64 KiB; CrewAI and
#: traces of the OpenAI Agents SDK 100,000; FastMCP 1,000,000; buffers and proxies 128 KiB and 1 MiB.
KNOWN_CAPS: Final = frozenset((
    5_000, 8_192, 10_000, 16_000, 20_000, 30_000, 40_000, 50_000, 65_536, 100_000, 131_072, 1_000_000, 1_048_576,
    4_194_304,  # gRPC, the default of a received message
    4_500_000, 4_718_592,  # Vercel, 4.5 MB for a function's response
    6_000_000, 6_291_456, 6_291_556,  # AWS Lambda, 6 MB for a synchronous response; the last one is its own number
    10_000_000, 10_485_760,  # Amazon API Gateway, Google Cloud Functions (1st gen)
))  # fmt: skip
#: The row or column of dots that pandas prints for missing ones.
_DOTTED_ROW: Final = pattern(r"\n\.\.\.? +\.\.\.|^[^\n]* \.\.\. ", re.MULTILINE)

# Pages that servers and proxies send instead of a body that was too large. Longer texts are documentation.
LONGEST: Final = 1024
_PHRASE: Final = r"(?:Request Entity|Payload|Content) Too Large"
_PAGE: Final = pattern(
    rf"(?:<!DOCTYPE[^>]*>\s*)?<html[^>]*>\s*<head>\s*<title>\s*413 {_PHRASE}\s*</title>.*|"
    rf"(?:HTTP(?:/[\d.]+)? |Error: )?413:? {_PHRASE}\.?|"
    rf"413 Client Error: {_PHRASE} for url: \S+|"
    rf"Client error '413 {_PHRASE}' for url '[^']*'(?:\nFor more information check: \S+)?|"
    r"Request failed with status code 413\.?|"
    r"<tool_output_masked>.*|"
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

#: JSON is parsed whole in texts of up to so many characters.
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
#: Python puts a blank after each comma and colon, and `pprint` a line end.
_ITEMS: Final = pattern(rf"(?:{_ITEM}(?:,\s+|: ))+", re.DOTALL)
#: A text without its end, or the rest of a name or a number.
_BROKEN: Final = pattern(
    rf"{_NAMED}(?:{_OPENER})*{_NAMED}(?:[bru]{{0,2}}['\"].*|[\w.+-]*[,:]?|{_ITEM}[,:]?)", re.DOTALL
)
_QUOTED: Final = pattern(_TEXT, re.DOTALL)


_PLACEHOLDERS: Final = ("...", "…", "ct]", "ay]", "depth", "DEPTH")
#: Placeholders for nested or long values: `[Object]` of Node.js, `{...}` of Python, `max depth` of serialisers.
_DEEP: Final = pattern(
    r"(?:[\w'\"\]]: ?|\[ ?|, ?|\n\s*)(?:\"\[(?:Object|Array|object Object)\]\"|\[(?:Object|Array)\])(?=\s*[,}\]])|"
    r"['\"]: ?(?:\{\.\.\.\}|\[\.\.\.\])(?=\s*[,}\]])|"
    r"\"[<\[(]?max(?:imum)? depth[^\"\n]{0,40}\"|(?:[:,]\s*)\"(?:\.\.\.|…)\"(?=\s*[,}\]])|"
    r",\s*\"(?:\.\.\.|…) ?\(?(?:and )?\d+ (?:more|items|elements|rows|keys|omitted|truncated)[^\"\n]{0,40}\"\s*\]|"
    r"['\"]\.\.\. \d+ more (?:characters?|items?)(?=\s*[,}\]])",
    re.IGNORECASE,
)

# Detect documents that stop before their end: JSON, Python's text of an object, and either after a few words.


def is_cut_document(text: str) -> bool:
    """Return True if a text that begins with a bracket is a document that stops, or one with such a text in it."""
    if text[-1] != _CLOSERS.get(text[0]):
        if text.startswith(_PYTHON_OPENINGS):
            return _is_cut_python(text)
        if _is_cut_json(text):
            return True
    if text[0] != "{" or text.find("\\", 1, _FRONT) < 0 or len(text) > _PARSED or not _ESCAPED.search(text, 0, _FRONT):
        return False
    known = attempt(json.loads, text)
    return type(known) is dict and is_cut_text_of(known)


def is_cut_text_of(known: dict[str, Any]) -> bool:
    """Return True if one of the first texts of an object is JSON that stops."""
    texts = (value for value in islice(known.values(), _MOST_KEYS) if type(value) is str)
    return any(text.startswith(_JSON_OPENINGS) and _is_cut_json(text) for text in texts)


def is_cut_behind_words(text: str) -> bool:
    """Return True if JSON that begins on a separate line, after a few words, stops with the text.

    A short text is parsed to its end. In a longer one the last line decides: prose may follow an example.
    """
    begin = _BEHIND_WORDS.search(text, 0, _FRONT)
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


def is_cut_inside(text: str) -> bool:
    """Return True if a text between brackets has a placeholder for a nested or long value near its ends."""
    ends = f"{text[:_FRONT]}\n{text[-_TAIL:]}"
    if max(map(ends.rfind, _PLACEHOLDERS)) < 0 or ends[-_BLANK_EDGE:].rstrip()[-1:] != _CLOSERS[text[0]]:
        return False
    return _DEEP.search(ends) is not None
