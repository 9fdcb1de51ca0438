"""Detect documents that stop before their end: JSON, what Python writes of an object, and either behind a few words."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any, Final

from agent_otel._internal.patterns import pattern

_HEAD: Final = 256
_TAIL: Final = 320
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


def is_cut_document(text: str) -> bool:
    """Return True if a text that begins with a bracket is a document that stops, or one with such a text in it."""
    if text[-1] != _CLOSERS.get(text[0]):
        if text.startswith(_PYTHON_OPENINGS):
            return _is_cut_python(text)
        if _is_cut_json(text):
            return True
    if text[0] != "{" or text.find("\\", 1, _HEAD) < 0 or len(text) > _PARSED or not _ESCAPED.search(text, 0, _HEAD):
        return False
    try:
        known = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return type(known) is dict and is_cut_text_of(known)


def is_cut_text_of(known: dict[str, Any]) -> bool:
    """Return True if one of the first texts of an object is JSON that stops."""
    for value in islice(known.values(), _MOST_KEYS):
        if type(value) is str and value.startswith(_JSON_OPENINGS) and _is_cut_json(value):
            return True
    return False


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
    except json.JSONDecodeError as error:
        rest = prefix[error.pos :]
        return (
            error.msg.startswith("Unterminated string")
            or (error.msg.startswith("Invalid \\uXXXX") and len(rest) <= _LONGEST_ESCAPE)
            or _HALF_NUMBER.fullmatch(rest) is not None
            or any(literal.startswith(rest) for literal in _LITERALS)
        )
    except RecursionError:
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
