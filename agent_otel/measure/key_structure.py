"""The key structure of a result: the names of the keys of its objects, by the objects' paths; no value is kept.

A result is a dictionary, a list, an object with fields, or a JSON text. Of a list a few elements are read, of a text
its beginning.
"""

from __future__ import annotations

import json
import re
from collections import deque
from typing import Any, Final, TypeAlias

from agent_otel._internal.errors import attempt
from agent_otel._internal.lazy import pattern
from agent_otel._internal.object_kinds import fields, sole
from agent_otel.measure.size import block_text

#: The keys of objects by path; the flag is false for an object of which only the beginning was read.
KeyStructure: TypeAlias = "dict[tuple[str, bool], frozenset[str]]"

#: A key that is data, and the rest of the keys or paths where there are too many.
ANY: Final = "*"
OTHER: Final = "_other"
#: Characters that a JSON text begins with.
BEGINNINGS: Final = ("{", "[")
#: Characters that are read of a JSON text.
HEAD: Final = 16 * 1024
#: Keys of an object up to which its keys are names; an object with more is a table of data.
MOST_KEYS: Final = 128
_MOST_VISITED: Final = 1_024
_DEEPEST: Final = 4
_FEW: Final = 4
_DEEPEST_TEXT: Final = 32
#: By identity: to look a class up runs the code of its metaclass.
_SCALARS: Final = frozenset(map(id, (str, bytes, int, float, bool, type(None))))
_TOKEN: Final = pattern(r'"[^"\\]*(?:\\.[^"\\]*)*"|["\[\]{},]', re.DOTALL)
_LONGEST_KEY: Final = 64
_NUMBERED: Final = pattern(r"(?:.*[-_:])?\d+")
_ID_PART: Final = pattern(r"(?=[A-Za-z]*\d)[0-9A-Za-z]{12,}")
_NAME: Final = pattern(r"[\w$@:-]+")
_MANY_DIGITS: Final = 6
_DIGIT: Final = pattern(r"\d")
_BETWEEN_PARTS: Final = pattern(r"[-_:]")
_MARK: Final = "\ue000"  # a key of objects of which only the beginning was read
_CLOSING: Final = {"{": f',"{_MARK}":0}}', "[": "]"}
_decode: Final = json.JSONDecoder(parse_int=len, parse_float=len, parse_constant=len).raw_decode


def key_structure(value: Any, structured: Any = None) -> KeyStructure:
    """Return the key structure of a result, or of its structured copy, which is not parsed anew."""
    if type(structured) is dict or type(structured) is list:
        inner = sole("result", structured)
        if type(inner) is not str:
            return _structure(inner)
    if type(value) is list and value and (text := block_text(value[0])) is not None:
        value = text
    if type(value) is str and value.startswith(BEGINNINGS):
        value = attempt(_decode, value if len(value) <= HEAD else _closed(value[:HEAD]), default=(None,))[0]
    return _structure(value)


def _structure(value: Any) -> KeyStructure:
    """Read objects level by level, so that a large result loses its deepest objects first."""
    found: dict[tuple[str, bool], frozenset[str]] = {}
    waiting = deque([(value, "", 0)])
    visited = 0
    while waiting and visited < _MOST_VISITED:
        value, path, depth = waiting.popleft()
        visited += 1
        if type(value) is list:
            # The first and the last element and two between them: not each record has all fields.
            most = len(value)
            some = value if most <= _FEW else [value[most * part // 3 - (part > 0)] for part in range(_FEW)]
            waiting += ((item, f"{path}[]", depth) for item in some if id(type(item)) not in _SCALARS)
        elif depth < _DEEPEST and len(known := value if type(value) is dict else fields(value)) <= MOST_KEYS and known:
            is_whole, names = True, {}
            for key, member in known.items():
                if type(key) is str and key == _MARK:
                    is_whole = False
                else:
                    names[fold(key) if type(key) is str else ANY] = member
            visited += len(names)
            place = path, is_whole
            found[place] = found.get(place, frozenset()) | names.keys()
            waiting += (
                (member, f"{path}.{name}" if path else name, depth + 1)
                for name, member in names.items()
                if id(type(member)) not in _SCALARS
            )
    # The last element of a list that was cut has not all of the keys that the elements before it have.
    return {place: keys for place, keys in found.items() if place[1] or (place[0], True) not in found}


def _closed(head: str) -> str:
    """Return the beginning of a JSON text up to its last whole member, with its objects and arrays closed."""
    ends: list[str] = []
    end, closing = 0, ends
    for token in _TOKEN.finditer(head):
        mark = token[0]
        if mark in _CLOSING:
            ends.append(_CLOSING[mark])
        elif mark == ",":
            end, closing = token.start(), ends[::-1]
        elif mark == '"' or not ends or len(ends) > _DEEPEST_TEXT:
            break
        elif mark in {"}", "]"}:
            ends.pop()
    return head[:end] + "".join(closing)


def fold(key: str) -> str:
    """Return the key, or ``*`` where it is data: a number, an id, a file name, a sentence."""
    is_data = len(key) > _LONGEST_KEY or not _NAME.fullmatch(key) or _NUMBERED.fullmatch(key)
    has_id = is_data or any(map(_ID_PART.fullmatch, _BETWEEN_PARTS.split(key)))
    return ANY if has_id or len(_DIGIT.findall(key)) >= _MANY_DIGITS else key
