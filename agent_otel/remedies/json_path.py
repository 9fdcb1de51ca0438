"""Look-up of one value in a JSON text by its path.

Libraries such as jmespath need `json.loads` first, which would block every other thread for 0.2 s and take 74 MB for 19
MB of text; their expressions may also cost what a caller likes. This reader stops at the value, reads in steps of
microseconds without memory of its own, and returns the value's text unchanged. Its steps are limited: they take a
second at most.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_STEPS: Final = 1_000_000
#: Steps that take the time of a key.
_KEY_STEPS: Final = 4
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,9})\]")
_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_SCALAR: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|NaN|-?Infinity")
#: What is between brackets, up to 64 texts, in which brackets are content.
_BETWEEN: Final = re.compile(
    r'[^"\[\]{}]{0,65536}(?:"[^"\\]{0,1024}(?:\\.[^"\\]{0,1024}){0,32}"[^"\[\]{}]{0,1024}){0,64}', re.DOTALL
)
#: So many numbers or short texts of a list are read in one step.
_MANY: Final = 256
_ELEMENTS: Final = re.compile(rf'(?:(?:"[^"\\]{{0,1024}}"|[^,"\[\]{{}}]{{1,64}})[ \t\n\r]*,[ \t\n\r]*){{{_MANY}}}')
_KINDS: Final = {"t": "bool", "f": "bool", "n": "NoneType", '"': "str"}
_SHOWN_KEYS: Final = 20


class _NotJsonError(ValueError):
    def __init__(self) -> None:
        super().__init__("The result is no JSON; use lines or grep.")


def at_path(text: str, path: str) -> str:
    """Return the value at a path such as ``items[3].body``: a text without its quotes, anything else as JSON.

    Raises ValueError, with a sentence for the model, when the path leads to no value, or further than the steps.
    """
    reader = _Reader(text)
    start = reader.after_blanks(0)
    if text[start : start + 1] not in ("{", "["):
        reader.end_of(start)
    position = 1 if path.startswith("$") else 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise ValueError(f"{path!r} is no path such as items[3].body.")
        position = step.end()
        inner = reader.member(start, step[1]) if step[1] is not None else reader.element(start, int(step[2]))
        if isinstance(inner, str):
            raise ValueError(  # noqa: TRY004 - a sentence for the model
                f"There is nothing at {path[:position]}; {inner}."
            )
        if inner >= len(text):  # it was cut off
            raise _NotJsonError
        start = inner
    end = reader.end_of(start)
    return str(json.loads(text[start:end], strict=False)) if text[start] == '"' else text[start:end]


class _Reader:
    """A JSON text, and the steps that are left to read it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._left = _MOST_STEPS

    def member(self, start: int, wanted: str) -> int | str:
        """Return the position of a key's value; without it, what there is."""
        if self._text[start] != "{":
            return self._described(start)
        keys = []
        for key, at in self._members(start):
            if key == wanted:
                return at
            keys.append(key)
        return f"there are the keys {', '.join(keys[:_SHOWN_KEYS])}"

    def element(self, start: int, index: int) -> int | str:
        """Return the position of a list element; without it, what there is."""
        text = self._text
        if text[start] != "[":
            return self._described(start)
        at, count, alone = self.after_blanks(start + 1), 0, 0
        while text[at : at + 1] != "]":
            many = _ELEMENTS.match(text, at) if alone == 0 and index - count >= _MANY else None
            if many is not None:
                self._step()
                at, count = many.end(), count + _MANY
                continue
            if count == index:
                return at
            at, count, alone = self._after_value(at, "]"), count + 1, (alone or _MANY) - 1
        return f"there is a list of {count}"

    def end_of(self, start: int) -> int:
        """Return the end position of the value that begins here."""
        text = self._text
        first = text[start : start + 1]
        if first == '"':
            return self._end_of_text(start)
        if first not in ("{", "[") or not first:
            scalar = _SCALAR.match(text, start)
            if scalar is None:
                raise _NotJsonError
            return scalar.end()
        depth, at = 1, start + 1
        while depth:
            self._step()
            between = _BETWEEN.match(text, at)
            at = at if between is None else between.end()
            sign = text[at : at + 1]
            if not sign:
                raise _NotJsonError
            if sign == '"':
                at = self._end_of_text(at)
            elif sign in "{}[]":
                at += 1
                depth += 1 if sign in "{[" else -1
        return at

    def after_blanks(self, at: int) -> int:
        """Return the position of the next sign."""
        blanks = _BLANKS.match(self._text, at)
        return at if blanks is None else blanks.end()

    def _members(self, start: int) -> Iterator[tuple[str, int]]:
        """Yield the keys of the object that begins here, each with the position of its value."""
        text = self._text
        at = self.after_blanks(start + 1)
        while text[at : at + 1] != "}":
            if text[at : at + 1] != '"':
                raise _NotJsonError
            self._step(_KEY_STEPS)
            end = self._end_of_text(at)
            key = str(json.loads(text[at:end], strict=False))
            at = self.after_blanks(end)
            if text[at : at + 1] != ":":
                raise _NotJsonError
            at = self.after_blanks(at + 1)
            yield key, at
            at = self._after_value(at, "}")

    def _after_value(self, at: int, closing: str) -> int:
        """Return the position of the next member, or of the bracket that closes the container."""
        at = self.after_blanks(self.end_of(at))
        if self._text[at : at + 1] == closing:
            return at
        if self._text[at : at + 1] != ",":
            raise _NotJsonError
        return self.after_blanks(at + 1)

    def _end_of_text(self, start: int) -> int:
        """Return the end position of the text that begins with this quotation mark."""
        at = start
        while True:
            self._step()
            before, at = at + 1, self._text.find('"', at + 1)
            if at < 0:
                raise _NotJsonError
            within = self._text[before:at]
            if not (len(within) - len(within.rstrip("\\"))) % 2:
                return at + 1

    def _step(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            raise ValueError("The result is too large to search by path; use lines or grep, or read it by its cursor.")

    def _described(self, start: int) -> str:
        """Describe the value at a position where a step of the path leads nowhere."""
        text = self._text
        if text[start] == "{":
            keys = (key for (key, _), _ in zip(self._members(start), range(_SHOWN_KEYS), strict=False))
            return f"there are the keys {', '.join(keys)}"
        if text[start] == "[":
            return "there is a list"
        number = text[start : self.end_of(start)]
        return f"there is a {_KINDS.get(number[0]) or ('int' if number.lstrip('-').isdigit() else 'float')}"
