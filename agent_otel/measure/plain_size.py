"""Measure plain structures by a fast encoder: dictionaries, lists and tuples of texts, numbers and constants.

Where a program has imported orjson, msgspec or pydantic-core, the length of its bytes is the size. These encoders call
nothing of plain data. They refuse what they do not write as `json` does, but for some floats. So everything else than
plain data is found first, and these floats are; nothing is encoded that is not known to be short.
"""

from __future__ import annotations

import sys
from gc import get_referents
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

#: Characters up to which a structure is encoded, so that the copy stays small.
MOST_CHARACTERS: Final = 2 * 1024 * 1024
#: Characters for each value up to which pydantic-core takes less time than a walk.
_CHARACTERS_A_VALUE: Final = 64

# Floats within these bounds are written alike.
_LEAST, _MOST = 1e-4, 1e16
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
    while level:
        count = sum(map(len, level))
        left -= count
        # A dictionary whose keys are all texts refers to its values only.
        values = get_referents(*level) if left >= 0 else ()
        if len(values) != count:
            return None
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
            elif not _LEAST <= abs(value) < _MOST and value != 0:
                floats.append(value)
        if characters > MOST_CHARACTERS:
            return None
    return floats if is_fast or characters <= (budget - left) * _CHARACTERS_A_VALUE else None


def _difference(number: float, encode: Callable[[float], bytes]) -> int:
    """Return how many bytes longer `json` writes a float: exponents, and words for NaN and the infinities."""
    written = float.__repr__(number)
    return len(_WORDS.get(written, written)) - len(encode(number))
