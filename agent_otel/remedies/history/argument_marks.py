"""Marks in the place of oversized arguments and errors; every copy of a value gets the same mark in every request."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from agent_otel._internal.errors import ours
from agent_otel.measure.size import json_size, text_bytes
from agent_otel.messages.fields import fields, is_list

SHORTEST: Final = 64
"""Bytes below which no value gets a mark. A mark is shorter, so that it is never marked again."""

FREE: Final = "input"
"""The name under which OpenAI has the text of a custom tool's call."""

_DEEPEST: Final = 8
_MOST_COPIES: Final = 1024
_BLANKS: Final = frozenset(" \n\t\r")
_decode: Final = json.JSONDecoder(strict=False).raw_decode  # models write line ends into strings
_encode: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

_copies: dict[tuple[int, int, int], str | None] = {}


class Marked(NamedTuple):
    """Arguments with marks, the number of UTF-8 bytes removed, and the removed values by their names."""

    arguments: Any
    removed_bytes: int
    values: dict[str, Any]


def marked(arguments: Any, above_bytes: int) -> Marked | None:
    """Return arguments of the same keys whose values have at most ``above_bytes``; None when nothing changes.

    ``arguments`` is a mapping, or the JSON text of one, of which all other characters stay. A text above the limit
    becomes a mark. In a list or mapping above the limit, texts become marks; if it is still above, it becomes a mark
    itself.
    """
    if type(arguments) is str:
        return _marked_text(arguments, above_bytes) if text_bytes(arguments) > above_bytes else None
    if not issubclass(type(arguments), dict):
        return None
    made, removed, values = {}, 0, {}
    for key, value in fields(arguments).items():
        made[key], less = _value(value, above_bytes)
        if less:
            removed += less
            values[key] = value
    return Marked(made, removed, values) if removed else None


def marked_copy(arguments: Any, above_bytes: int) -> Any:
    """Return a copy of arguments as `marked` returns them; None when nothing changes.

    JSON text is parsed once in a process: every request of a run holds the same copies again.
    """
    if type(arguments) is not str:
        new = marked(arguments, above_bytes)
        return None if new is None else new.arguments
    key = (hash(arguments), len(arguments), above_bytes)
    try:
        return _copies[key]
    except ours(KeyError):
        new = marked(arguments, above_bytes)
        if len(_copies) >= _MOST_COPIES:
            _copies.clear()
        made = _copies[key] = None if new is None else new.arguments
        return made


def marked_free(text: Any, above_bytes: int) -> Marked | None:
    """Return the same as `marked` for arguments that are one text."""
    if type(text) is not str:
        return None
    made, removed = _value(text, above_bytes)
    return Marked(made, removed, {FREE: text}) if removed else None


def parsed(arguments: Any) -> Any:
    """Return the arguments as a mapping; None when they are not one."""
    if type(arguments) is str:
        try:
            arguments = json.loads(arguments, strict=False)
        except ours(ValueError, RecursionError):
            return None
    return arguments if issubclass(type(arguments), dict) else None


def _value(value: Any, above: int) -> tuple[Any, int]:
    """Return a value or its mark, and the number of bytes removed."""
    if type(value) is str:
        size = text_bytes(value) if len(value) > above // 4 else 0
        return (value, 0) if size <= above else _mark(size)
    if not (type(value) is dict or is_list(value)):
        return value, 0
    nodes = above // 2 + 1  # a node has at least a byte and a comma: more nodes are above the limit
    size, exact = json_size(value, nodes)
    if size <= above:
        return value, 0
    if exact:
        inner, removed = _inside(value, above, _DEEPEST)
        if removed and json_size(inner, nodes).bytes <= above:
            return inner, removed
    return _mark(size, exact=exact)


def mark(size_bytes: int, *, exact: bool = True) -> str:
    """Return the mark for a value; a size that is not exact is a lower bound."""
    return f"[argument removed: {size_bytes}{'' if exact else '+'} bytes]"


def _mark(size: int, *, exact: bool = True) -> tuple[str, int]:
    put = mark(size, exact=exact)
    return put, size - len(put)


def _inside(value: Any, above: int, deep: int) -> tuple[Any, int]:
    """Return a list or mapping with marks in the place of its large texts, and the number of bytes removed."""
    if type(value) is str:
        return _value(value, above)
    if not deep or not (type(value) is dict or is_list(value)):
        return value, 0
    pairs = [_inside(one, above, deep - 1) for one in (value.values() if type(value) is dict else value)]
    removed = sum(less for _, less in pairs)
    if not removed:
        return value, 0
    made = [one for one, _ in pairs]
    return (dict(zip(value, made, strict=True)) if type(value) is dict else made), removed


def _marked_text(text: str, above: int) -> Marked | None:
    pieces: list[str] = []
    values: dict[str, Any] = {}
    done = removed = 0
    try:
        for name, begin, end, value in _spans(text):
            new, less = _value(value, above) if end - begin > above // 4 else (value, 0)
            if less:
                pieces += (text[done:begin], _written(new))
                done, removed, values[name] = end, removed + less, value
    except ours(ValueError, IndexError, RecursionError):  # not JSON: the text stays
        return None
    return Marked("".join((*pieces, text[done:])), removed, values) if removed else None


def _spans(text: str) -> list[tuple[str, int, int, Any]]:
    """Return name, begin, end and value of each value of a JSON object, parsed by the decoder in C."""
    found = []
    at = _expect(text, 0, "{")
    while text[at] != "}":
        if text[at] != '"':
            raise ValueError(at)
        name, end = _decode(text, at)
        begin = _expect(text, end, ":")
        value, end = _decode(text, begin)
        found.append((name, begin, end, value))
        at = _skip(text, end)
        if text[at] != "}":
            at = _expect(text, at, ",")
            if text[at] == "}":
                raise ValueError(at)
    if _skip(text, at + 1) != len(text):
        raise ValueError(at)
    return found


def _expect(text: str, at: int, sign: str) -> int:
    """Return the position after a sign and the blanks around it; ValueError without the sign."""
    at = _skip(text, at)
    if text[at] != sign:
        raise ValueError(at)
    return _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in _BLANKS:
        at += 1
    return at


def _written(value: Any) -> str:
    written = _encode(value)
    return written if written.isascii() or _is_unicode(written) else json.dumps(value)


def _is_unicode(text: str) -> bool:
    """Return True for a text without lone surrogates, which JSON can only hold as escapes."""
    try:
        text.encode()
    except ours(UnicodeEncodeError):
        return False
    return True
