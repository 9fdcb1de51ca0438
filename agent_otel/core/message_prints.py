"""Prints of messages, by which a request is known to begin with the messages of an earlier one.

Messages are read by depth: their fields, the blocks in these, the fields of the blocks. The print of a depth is a hash
of its values; of a long text, of its length and its ends. It keeps which values are structures and which are long
texts, so that the next request's values are sorted and compared without a loop.
"""

from __future__ import annotations

from gc import get_referents
from itertools import chain, compress
from operator import add, itemgetter
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal.named_tuples import NamedTuple
from agent_otel.core.plain import fields

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONG: Final = 1_024  # characters of a text up to which all of it is hashed
_ENDS: Final = itemgetter(slice(64), slice(-64, None))
_TEXTS: Final = frozenset((str,))
_NUMBERS: Final = frozenset((int, bool, float, str))
_DEEPEST: Final = 16
_MOST_VALUES: Final = 100_000

# Sorts of values, and which of them a translated row of sorts selects. Empty texts are among the numbers: the hash of
# one is that of 0. Numbers are compared as they are written: -1 has the hash of -2, and 0 that of 2 ** 61 - 1.
_TEXT, _LONG_TEXT, _NUMBER, _STRUCTURE, _OBJECT = range(5)
_IS_TEXT, _IS_LONG_TEXT, _IS_NUMBER, _IS_OPENED = (
    bytes(each).ljust(256, b"\0") for each in ((1,), (0, 1), (0, 0, 1), (0, 0, 0, 1, 1))
)


class Values(NamedTuple):
    """The values at one depth by sort; None is among the short texts."""

    texts: tuple[Any, ...]
    long_texts: list[Any]
    numbers: tuple[Any, ...]
    opened: list[Any]


class Depth(NamedTuple):
    """The values at one depth as they are compared: their sorts, short texts and numbers, and the ends of long texts.

    ``lengths`` are those of the structures that hold the values, ``keys`` those of dictionaries among them that are
    within the first values of all. ``types`` are those of structures, or their ids where objects are among them: to
    hash a class may run code of its own.
    """

    sorts: bytes
    lengths: tuple[int, ...]
    keys: tuple[str, ...]
    types: tuple[type | int, ...]
    texts: tuple[Any, ...]
    long_lengths: tuple[int, ...]
    ends: tuple[tuple[str, str], ...]
    numbers: str


_NO_VALUES: Final = Depth(b"", (), (), (), (), (), (), "")


class Print(NamedTuple):
    """The part of a depth that is kept: the sorts of its values, and a hash of all that is compared."""

    sorts: bytes
    hash: int


def depths(values: list[Any], named: int = 0) -> list[Depth] | None:
    """Return the values of messages by depth; None where they are too many, or no plain data.

    Of the first values, as many as ``named``, keys of dictionaries are compared as well: properties of tools may differ
    by nothing else.
    """
    found: list[Depth] = []
    lengths: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()
    left = _MOST_VALUES
    while values:
        left -= len(values)
        if left < 0 or len(found) > _DEEPEST:
            return None
        sorts = bytes(map(_sort, values))
        by_sort = _by_sort(values, sorts)
        inner = _inner(by_sort.opened, sorts)
        if inner is None:
            return None
        try:
            found.append(_depth(sorts, lengths, keys, by_sort))
        except ValueError:  # more digits than Python writes
            return None
        lengths, values = tuple(map(len, inner)), get_referents(*inner)
        # A dictionary whose keys are all texts refers to its values only.
        if len(values) != sum(lengths):
            return None
        keys, named = _keys(inner, sorts, lengths, named) if named else ((), 0)
    return found


def recognised(values: list[Any], prints: Sequence[Print], named: int = 0) -> list[Depth] | None:
    """Return the values of messages by depth where they have these prints, else None; ``named`` as for `depths`."""
    taken = []
    for one in prints:
        if len(values) != len(one.sorts):
            return None
        texts, long_texts, numbers, opened = by_sort = _by_sort(values, one.sorts)
        # An instance of a class that Python wrote refers to the class, which refers to itself, and so has no end.
        # Without one, no code of a value's class runs when values are hashed. A weak proxy has the length and slices of
        # its object, and does not refer to it.
        inner = None if get_referents(*texts, *long_texts, *numbers) else _inner(opened, one.sorts)
        if inner is None or not (_TEXTS.issuperset(map(type, long_texts)) and _NUMBERS.issuperset(map(type, numbers))):
            return None
        taken.append((one, by_sort, inner))
        values = get_referents(*inner)
    if values:
        return None
    found: list[Depth] = []
    lengths: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()
    counts = [*(len(one.sorts) for one in prints[1:]), 0]
    try:
        for (one, by_sort, inner), count in zip(taken, counts, strict=True):
            depth = _depth(one.sorts, lengths, keys, by_sort)
            # More values than are counted are keys that are no texts.
            if hash(depth) != one.hash or count != sum(lengths := tuple(map(len, inner))):
                return None
            found.append(depth)
            keys, named = _keys(inner, one.sorts, lengths, named) if named else ((), 0)
    except (TypeError, LookupError, ValueError):  # something else in the place of a text; as in `depths`
        return None
    return found


def prints(found: Sequence[Depth]) -> tuple[Print, ...]:
    """Return the prints of messages."""
    return tuple(Print(one.sorts, hash(one)) for one in found)


def joined(first: Sequence[Depth], more: Sequence[Depth]) -> list[Depth]:
    """Return the values of messages and of those behind them."""
    count = max(len(first), len(more))
    padded = ([*each, *[_NO_VALUES] * (count - len(each))] for each in (first, more))
    return [_joined(one, other) for one, other in zip(*padded, strict=True)]


def _joined(one: Depth, other: Depth) -> Depth:
    """Return the values of a depth and of more; where objects are among one of them, the ids of all types."""
    if (_OBJECT in one.sorts) != (_OBJECT in other.sorts):
        one, other = map(_with_ids, (one, other))
    return Depth(*map(add, one, other))


def _with_ids(one: Depth) -> Depth:
    return one if _OBJECT in one.sorts else one._replace(types=tuple(map(id, one.types)))


def _sort(value: Any) -> int:
    cls = type(value)
    if cls is str:
        return _LONG_TEXT if len(value) > _LONG else _TEXT if value else _NUMBER
    if cls is dict or cls is list or cls is tuple:
        return _STRUCTURE
    if value is None:
        return _TEXT
    return _NUMBER if cls is int or cls is bool or cls is float else _OBJECT


def _by_sort(values: list[Any], sorts: bytes) -> Values:
    has_texts, has_others = _TEXT in sorts, _STRUCTURE in sorts or _OBJECT in sorts
    has_long_texts, has_numbers = _LONG_TEXT in sorts, _NUMBER in sorts
    if has_others and not (has_texts or has_long_texts or has_numbers):
        return Values((), [], (), values)
    if has_texts and not (has_others or has_long_texts or has_numbers):
        return Values(tuple(values), [], (), [])
    return Values(
        tuple(compress(values, sorts.translate(_IS_TEXT))),
        list(compress(values, sorts.translate(_IS_LONG_TEXT))) if has_long_texts else [],
        tuple(compress(values, sorts.translate(_IS_NUMBER))) if has_numbers else (),
        list(compress(values, sorts.translate(_IS_OPENED))) if has_others else [],
    )


def _inner(opened: list[Any], sorts: bytes) -> list[Any] | None:
    """Return structures, and the fields of objects; None where an object has none."""
    if _OBJECT not in sorts:
        return opened
    inner = [one if _sort(one) == _STRUCTURE else fields(one) for one in opened]
    return inner if all(has or has is one for has, one in zip(inner, opened, strict=True)) else None


def _keys(inner: Sequence[Any], sorts: bytes, lengths: tuple[int, ...], named: int) -> tuple[tuple[str, ...], int]:
    """Return the keys of dictionaries among the first values of a depth, and how many values those hold."""
    count = sum(map(sorts[:named].count, (_STRUCTURE, _OBJECT)))
    keys = chain.from_iterable([one for one in inner[:count] if type(one) is dict])
    return tuple(keys), sum(lengths[:count])


def _depth(sorts: bytes, lengths: tuple[int, ...], keys: tuple[str, ...], values: Values) -> Depth:
    texts, long_texts, numbers, opened = values
    types: Any = map(type, opened)
    types = tuple(map(id, types) if _OBJECT in sorts else types)
    sizes, ends = tuple(map(len, long_texts)), tuple(map(_ENDS, long_texts))
    written = f"{repr([*numbers])[1:-1]}, " if numbers else ""
    return Depth(sorts, lengths, keys, types, texts, sizes, ends, written)
