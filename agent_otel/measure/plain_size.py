"""Measure plain structures by a fast encoder: dictionaries, lists and tuples of texts, numbers and constants.

Where a program has imported orjson, msgspec or pydantic-core, the length of its bytes is the size. These encoders call
nothing of plain data. They refuse what they do not write as `json` does, but for some floats. So everything else than
plain data is found first, and these floats are; nothing is encoded that is not known to be short.
"""

from __future__ import annotations

import sys
from gc import get_referents
from operator import is_
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

#: Characters up to which a structure is encoded, so that the copy stays small.
MOST_CHARACTERS: Final = 2 * 1024 * 1024
#: Characters for each value up to which pydantic-core takes less time than a walk, also where many are escaped.
_CHARACTERS_A_VALUE: Final = 256

#: Values and rows from which a look at whole columns takes less time than one at each value.
_MANY, _ROWS = 192, 64
_CONTAINERS: Final = frozenset({dict, list, tuple})
_CONSTANTS: Final = frozenset({int, bool, type(None)})

# Floats whose squares are within these bounds are written alike: those from 1e-4 up to 1e16 are.
_LEAST, _MOST = 1.000001e-8, 0.999999e32
_WORDS: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def plain_size(root: Any, budget: int) -> int:
    """Return the length as compact JSON of a plain structure of at most ``budget`` values.

    Return -1 for any other value, and where the program has imported no fast encoder.
    """
    modules = sys.modules
    try:
        if (encoder := modules.get("orjson")) is not None:
            encode, is_fast = encoder.dumps, True
        elif (encoder := modules.get("msgspec")) is not None:
            encode, is_fast = encoder.json.encode, True
        elif (encoder := modules.get("pydantic_core")) is not None:
            encode, is_fast = encoder.to_json, False
        else:
            return -1
        floats = _floats(root, budget, is_fast=is_fast)
        if floats is None:
            return -1
        total = len(encode(root))
        return total + sum(_difference(one, encode) for one in floats) if floats else total
    except Exception:  # large numbers, lone surrogates, too deep
        return -1


def _floats(root: Any, budget: int, *, is_fast: bool) -> list[float] | None:
    """Return the floats that may be written otherwise; None where the structure is not plain or not short."""
    level, left, characters = [root], budget - 1, 0
    floats: list[float] = []
    while level and characters <= MOST_CHARACTERS:
        count = sum(map(len, level))
        left -= count
        # A dictionary whose keys are all texts refers to its values only.
        values = get_referents(*level) if left >= 0 else []
        if len(values) != count:
            return None
        if count >= _MANY:
            texts, more, level, values = _columns(level, values)
            characters += sum(map(len, texts))
            floats += more
        else:
            level = []
        for value in values:
            cls = type(value)
            if cls is str:
                characters += len(value)
            elif cls is int or value is None or cls is bool:
                continue
            elif cls is dict or cls is list or cls is tuple:
                level.append(value)
            elif cls is not float:
                return None
            elif not _LEAST <= value * value < _MOST and value != 0:
                floats.append(value)
    is_short = characters <= MOST_CHARACTERS and (is_fast or characters <= (budget - left) * _CHARACTERS_A_VALUE)
    return floats if is_short else None


def _columns(level: list[Any], values: list[Any]) -> tuple[list[str], list[float], list[Any], list[Any]]:
    """Return the texts, floats and containers of columns that have one class, and the values of other columns.

    Rows have a column for each key, lists have one together. Constants, integers and floats that are written alike are
    left out.
    """
    texts: list[str] = []
    floats: list[float] = []
    containers: list[Any] = []
    width = (len(level[0]) if type(level[0]) is dict else 0) or 1
    is_table = width == 1 or (len(level) >= _ROWS and width * len(level) == len(values))
    if not is_table or not all(map(is_, map(type, values[:width]), map(type, values[-width:]))):
        return texts, floats, containers, values
    classes = list(map(type, values))
    if get_referents(*classes):  # made by Python code, which may run where they are compared
        return texts, floats, containers, values
    others: list[Any] = []
    are_alike = classes == classes[:width] * (len(values) // width)
    for place in range(width):
        cls, column = classes[place], values[place::width]
        if not are_alike and classes[place::width].count(cls) != len(column):
            others += column
        elif cls is str:
            texts += column
        elif cls is float:
            floats += [value for value in column if not _LEAST <= value * value < _MOST and value != 0]
        elif cls in _CONTAINERS:
            containers += column
        elif cls not in _CONSTANTS:
            others += column
    return texts, floats, containers, others


def _difference(number: float, encode: Callable[[float], bytes]) -> int:
    """Return how many bytes longer `json` writes a float: exponents, and words for NaN and the infinities."""
    written = float.__repr__(number)
    return len(_WORDS.get(written, written)) - len(encode(number))
