"""Measure plain structures level by level: dictionaries, lists and tuples of texts, numbers and constants.

The values of a level are sorted by class, in whole columns if the level has rows. All values of a class are measured
together. If a program has imported orjson, msgspec or pydantic-core, the length of its output is the size. These
encoders call no code of plain data. Except for some floats, they refuse values that `json` would write differently.
"""

from __future__ import annotations

import sys
from array import array
from gc import get_referents
from itertools import chain, compress, repeat
from json.encoder import encode_basestring as _quote
from operator import is_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel._internal.errors import ours
from agent_otel._internal.object_kinds import LABEL, shape_of

if TYPE_CHECKING:
    from collections.abc import Callable


# Texts and numbers as they stand in compact JSON, many of them at once.

#: Characters up to which building the quoted string is cheaper than counting.
SHORT: Final = 256

_QUOTED_CHUNK: Final = 32 * 1024  # characters encoded at a time: at most 0.6 MB of transient memory
_BATCHED: Final = 4096  # characters of a string that is quoted together with others
_JOINED: Final = 256 * 1024  # characters of these together

_TWO_BYTE_ESCAPES: Final = b'"\\\b\f\n\r\t'
_ESCAPED: Final = bytes(range(0x20)) + b'"\\'
_ORDINARY: Final = bytes(code for code in range(0x100) if code not in _ESCAPED)


def quoted_bytes(text: str) -> int:
    """Return the length of a text as a JSON string in UTF-8 bytes, with quotes and escapes."""
    length = str.__len__(text)
    if length <= SHORT:
        quoted = _quote(text)
        return len(quoted) if quoted.isascii() else len(quoted.encode("utf-8", "surrogatepass"))
    if length <= _QUOTED_CHUNK:
        return 2 + _escaped_bytes(text)
    starts = range(0, length, _QUOTED_CHUNK)
    return 2 + sum(_escaped_bytes(str.__getitem__(text, slice(start, start + _QUOTED_CHUNK))) for start in starts)


def _escaped_bytes(text: str) -> int:
    data = str.encode(text, "utf-8", "surrogatepass")
    escaped = data.translate(None, _ORDINARY)
    if not escaped:
        return len(data)
    return len(data) + len(escaped) + 4 * len(escaped.translate(None, _TWO_BYTE_ESCAPES))


def texts_bytes(texts: list[Any], length: Callable[[Any], int] = len) -> int:
    """Return the length of texts as JSON strings together.

    ``length`` is that of one; with ``str.__len__`` no code of a class of its own runs. Raises TypeError where one is no
    text.
    """
    if sum(map(length, texts)) <= _JOINED:
        return _joined_bytes(texts)
    longest, total = max(map(length, texts)), 0
    if longest > _BATCHED:
        known: dict[int, int] = {}  # by id: one long string may stand in 2,000 places
        for text in texts:
            if length(text) > _BATCHED:
                total += known.get(id(text)) or known.setdefault(id(text), quoted_bytes(text))
        texts, longest = [text for text in texts if length(text) <= _BATCHED], _BATCHED
    step = _JOINED // longest
    return total + sum(_joined_bytes(texts[start : start + step]) for start in range(0, len(texts), step))


def _joined_bytes(texts: list[str]) -> int:
    """Return the length of texts as JSON strings; in one string they have all but one pair of their quotes less."""
    return quoted_bytes("".join(texts)) + 2 * len(texts) - 2


def floats_bytes(floats: list[float]) -> int:
    """Return the length of floats as JSON, from the text of their list, where each has two characters more."""
    if not floats:
        return 0
    text = repr(floats)
    return len(text) - 2 * len(floats) + 5 * text.count("inf")  # which json writes as Infinity


#: Largest structure that is encoded, in characters, so that the copy stays small.
MOST_CHARACTERS: Final = 2 * 1024 * 1024
#: Largest structure that is measured here, in characters.
_MOST_SIZED: Final = 32 * 1024 * 1024
#: Larger integers take an encoder quadratic time.
_LARGEST: Final = 1 << 64
#: Most characters beyond ASCII for orjson and msgspec: they ask Python for the UTF-8 of each such text. Python keeps it
#: as long as the program keeps the text.
_KEPT_CHARACTERS: Final = 32 * 1024
#: Most characters for each value if pydantic-core is to be faster, even when many characters are escaped.
_CHARACTERS_A_VALUE: Final = 256

#: Fewest values and rows for whole columns to be faster than single values.
_MANY, _ROWS = 192, 64
#: Values of a column that cost as much as a single one.
_COLUMN: Final = 64

# All encoders write floats from 1e-4 up to 1e16 alike. The bounds are for the squares of the floats.
_LEAST, _MOST = 1.000001e-8, 0.999999e32
_WORDS: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


class _Values(NamedTuple):
    """The values of a structure by class."""

    containers: list[Any]
    texts: list[str]
    ints: list[int]
    floats: list[float]
    constants: list[bool | None]
    labels: list[Any]


def plain_size(root: Any, budget: int) -> int:
    """Return the length as compact JSON of a plain structure of at most ``budget`` values; -1 for any other value.

    Of rows, whose values are measured in whole columns, there may be 64 times as many.
    """
    try:
        values = values_of([root], _COLUMN * budget, single=_COLUMN - 1)
        if type(values) is not _Values or values.labels:
            return -1
        ints = values.ints
        if sum(map(len, values.texts)) > _MOST_SIZED or (ints and not -_LARGEST < min(ints) <= max(ints) < _LARGEST):
            return -1
        encode = _encoder(values)
        if encode is None:
            return _size(values)
        # `json` writes exponents in another way, and words for NaN and the infinities.
        odd = [one for one in values.floats if not _LEAST <= one * one < _MOST and one != 0]
        return len(encode(root)) + sum(len(_WORDS.get(repr(one), repr(one))) - len(encode(one)) for one in odd)
    except ours(Exception):  # large numbers, lone surrogates, too deep
        return -1


def _encoder(values: _Values) -> Callable[[Any], bytes] | None:
    """Return the function of an encoder that the program has imported, where it takes the least time."""
    characters = sum(map(len, values.texts))
    if characters > MOST_CHARACTERS:
        return None
    modules = sys.modules
    is_kept = characters <= _KEPT_CHARACTERS or all(map(str.isascii, values.texts))
    if is_kept or sum(len(text) for text in values.texts if not text.isascii()) <= _KEPT_CHARACTERS:
        if (encoder := modules.get("orjson")) is not None:
            return encoder.dumps  # type: ignore[no-any-return]
        if (encoder := modules.get("msgspec")) is not None:
            return encoder.json.encode  # type: ignore[no-any-return]
    if (encoder := modules.get("pydantic_core")) is not None:
        count = sum(map(len, values))
        return encoder.to_json if characters <= count * _CHARACTERS_A_VALUE else None
    return None


def _size(values: _Values) -> int:
    containers, texts, ints, floats, constants, _ = values
    lengths = list(map(len, containers))
    kinds = list(map(type, containers))
    dicts = containers
    if kinds.count(dict) < len(containers):
        dicts = list(compress(containers, map(is_, kinds, repeat(dict))))
    keys = list(chain.from_iterable(dicts))
    # Two brackets for a container, a comma for each value but the first of one, colons.
    total = sum(lengths) + lengths.count(0) + len(containers) + len(keys)
    total += 4 * len(constants) + constants.count(False)
    if ints:
        array("q", ints)  # OverflowError above 64 bits: the text of a large one takes quadratic time
        total += len(repr(ints)) - 2 * len(ints)
    return total + floats_bytes(floats) + (texts_bytes(texts + keys) if texts or keys else 0)


def values_of(  # noqa: C901, PLR0912 - one loop: a call a value would double its cost
    level: list[Any], budget: int, levels: int = sys.maxsize, single: int = 0
) -> _Values | int:
    """Return the values of a level and of all levels below it by class, else the number of values that were read.

    The number is negative if there are more than ``levels`` levels or if a value is not plain data. It is positive if
    there are more than ``budget`` values. A value outside whole columns counts ``single`` times more.
    """
    found = _, texts, ints, floats, constants, labels = _Values([], [], [], [], [], [])
    values, left, around = level, budget - len(level), list[Any]()
    while True:
        level, values = _columns(around, values, found) if len(values) >= _MANY else ([], values)
        if (left := left - single * len(values)) < 0:
            return budget - left
        for value in values:
            cls = type(value)
            if cls is str:
                texts.append(value)
            elif cls is int:
                ints.append(value)
            elif cls is dict or cls is list or cls is tuple:
                level.append(value)
            elif value is None or cls is bool:
                constants.append(value)
            elif cls is float:
                floats.append(value)
            elif shape_of(cls).kind is LABEL:
                labels.append(value)
            else:
                return left - budget
        if not level:
            return found
        levels -= 1
        found.containers.extend(level)
        count = sum(map(len, level))
        if (left := left - count) < 0:
            return budget - left - count
        # A dictionary with only text keys refers to its values only.
        values, around = get_referents(*level), level
        if len(values) != count or not levels:
            return left - budget


def _columns(level: list[Any], values: list[Any], found: _Values) -> tuple[list[Any], list[Any]]:
    """Add the values of each column with one class. Return the containers among them, and the values of mixed columns.

    Rows have one column for each key. Lists share one column.
    """
    containers: list[Any] = []
    width = (len(level[0]) if level and type(level[0]) is dict else 0) or 1
    is_table = width == 1 or (len(level) >= _ROWS and width * len(level) == len(values))
    if not is_table or not all(map(is_, map(type, values[:width]), map(type, values[-width:]))):
        return containers, values
    classes = list(map(type, values))
    if get_referents(*classes):  # made by Python code, which may run where they are compared
        return containers, values
    places: dict[type, list[Any]] = {str: found.texts, int: found.ints, float: found.floats, bool: found.constants}
    places |= {type(None): found.constants, dict: containers, list: containers, tuple: containers}
    others: list[Any] = []
    are_alike = classes == classes[:width] * (len(values) // width)
    for place in range(width):
        cls, column = classes[place], values[place::width]
        is_alike = are_alike or classes[place::width].count(cls) == len(column)
        (places.get(cls, others) if is_alike else others).extend(column)
    return containers, others
