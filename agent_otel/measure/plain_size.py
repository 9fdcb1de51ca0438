"""Measure plain structures by a fast encoder: dictionaries, lists and tuples of texts, numbers and constants.

Where a program has imported orjson, the length of its bytes is the size. With these options the encoder calls nothing
of a value, but for enums, and it refuses what it does not write as `json` does, but for some floats. So enums and these
floats are found first, and nothing is encoded that is not known to be short.
"""

from __future__ import annotations

import sys
from gc import get_referents
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

#: Characters up to which a structure is encoded, so that the copy stays small.
MOST_CHARACTERS: Final = 2 * 1024 * 1024

# Floats within these bounds are written alike.
_LEAST, _MOST = 1e-4, 1e16
_WORDS: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def plain_size(root: Any, budget: int) -> int:
    """Return the length as compact JSON of a plain structure of at most ``budget`` values.

    Return -1 for any other value, and where the program has imported no fast encoder.
    """
    encoder = sys.modules.get("orjson")
    if encoder is None:
        return -1
    floats = _floats(root, budget)
    if floats is None:
        return -1
    try:
        options = encoder.OPT_PASSTHROUGH_SUBCLASS | encoder.OPT_PASSTHROUGH_DATACLASS
        total = len(encoder.dumps(root, None, options | encoder.OPT_PASSTHROUGH_DATETIME))
        return total + sum(_difference(one, encoder.dumps) for one in floats) if floats else total
    except Exception:  # large numbers, lone surrogates, keys that are no texts, too deep
        return -1


def _floats(root: Any, budget: int) -> list[float] | None:
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
    return floats


def _difference(number: float, dumps: Callable[[float], bytes]) -> int:
    """Return how many bytes longer `json` writes a float: exponents, and words for NaN and the infinities."""
    written = float.__repr__(number)
    return len(_WORDS.get(written, written)) - len(dumps(number))
