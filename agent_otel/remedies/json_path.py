"""Look-up of one value in a JSON text by its path.

Libraries such as jmespath need `json.loads` first, which would block every other thread for 0.2 s and take 74 MB for 19
MB of text; their expressions may also cost what a caller likes. This reader stops at the value, reads in steps of
microseconds without memory of its own, and returns the value's text unchanged.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from json.decoder import scanstring  # type: ignore[attr-defined]  # the decoder's own scanner, in C
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,9})\]")
_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_SCALAR: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|NaN|-?Infinity")
#: A bracket, or the quotation mark of a text, in which brackets are content.
_BRACKET: Final = re.compile(r'["\[\]{}]')
_KINDS: Final = {"t": "bool", "f": "bool", "n": "NoneType", '"': "str"}
_SHOWN_KEYS: Final = 20


class _NotJsonError(ValueError):
    def __init__(self) -> None:
        super().__init__("The result is no JSON; use lines or grep.")


def at_path(text: str, path: str) -> str:
    """Return the value at a path such as ``items[3].body``: a text without its quotes, anything else as JSON.

    Raises ValueError, with a sentence for the model, when the path leads to no value.
    """
    start = _after_blanks(text, 0)
    if text[start : start + 1] not in ("{", "["):
        _end_of(text, start)
    position = 1 if path.startswith("$") else 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise ValueError(f"{path!r} is no path such as items[3].body.")
        position = step.end()
        inner = _member(text, start, step[1]) if step[1] is not None else _element(text, start, int(step[2]))
        if inner is None:
            raise ValueError(f"There is nothing at {path[:position]}; {_what_there_is(text, start)}.")
        if inner >= len(text):  # it was cut off
            raise _NotJsonError
        start = inner
    end = _end_of(text, start)
    return str(json.loads(text[start:end], strict=False)) if text[start] == '"' else text[start:end]


def _member(text: str, start: int, wanted: str) -> int | None:
    """Return the position of a key's value; None when this is no object or has no such key."""
    if text[start] != "{":
        return None
    return next((at for key, at in _members(text, start) if key == wanted), None)


def _element(text: str, start: int, index: int) -> int | None:
    """Return the position of a list element; None when this is no list or is shorter."""
    return next(islice(_elements(text, start), index, None), None) if text[start] == "[" else None


def _members(text: str, start: int) -> Iterator[tuple[str, int]]:
    """Yield the keys of the object that begins here, each with the position of its value."""
    at = _after_blanks(text, start + 1)
    while text[at : at + 1] == '"':
        key, at = _string(text, at)
        at = _after_blanks(text, at)
        if text[at : at + 1] != ":":
            raise _NotJsonError
        at = _after_blanks(text, at + 1)
        yield key, at
        at = _after_blanks(text, _end_of(text, at))
        if text[at : at + 1] == "}":
            return
        at = _after_comma(text, at)
    if text[at : at + 1] != "}":
        raise _NotJsonError


def _elements(text: str, start: int) -> Iterator[int]:
    """Yield the positions of the elements of the list that begins here."""
    at = _after_blanks(text, start + 1)
    while text[at : at + 1] != "]":
        yield at
        at = _after_blanks(text, _end_of(text, at))
        if text[at : at + 1] != "]":
            at = _after_comma(text, at)


def _end_of(text: str, start: int) -> int:
    """Return the end position of the value that begins here."""
    first = text[start : start + 1]
    if first == '"':
        return _string(text, start)[1]
    if first not in ("{", "[") or not first:
        scalar = _SCALAR.match(text, start)
        if scalar is None:
            raise _NotJsonError
        return scalar.end()
    depth, at = 0, start
    while True:
        bracket = _BRACKET.search(text, at)
        if bracket is None:
            raise _NotJsonError
        if bracket[0] == '"':
            at = _string(text, bracket.start())[1]
            continue
        at = bracket.end()
        depth += 1 if bracket[0] in "{[" else -1
        if not depth:
            return at


def _string(text: str, start: int) -> tuple[str, int]:
    """Return the text that begins with this quotation mark, and its end position."""
    try:
        value, end = scanstring(text, start + 1, False)
    except ValueError:
        raise _NotJsonError from None
    return str(value), int(end)


def _after_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return at if blanks is None else blanks.end()


def _after_comma(text: str, at: int) -> int:
    if text[at : at + 1] != ",":
        raise _NotJsonError
    return _after_blanks(text, at + 1)


def _what_there_is(text: str, start: int) -> str:
    """Describe the value at a position where a step of the path leads nowhere."""
    if text[start] == "{":
        return f"there are the keys {', '.join(key for key, _ in islice(_members(text, start), _SHOWN_KEYS))}"
    if text[start] == "[":
        return f"there is a list of {sum(1 for _ in _elements(text, start))}"
    number = text[start : _end_of(text, start)]
    return f"there is a {_KINDS.get(number[0]) or ('int' if number.lstrip('-').isdigit() else 'float')}"
