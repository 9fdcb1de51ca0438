"""The messages of a request before they are read as parts, and prints of them, which take no reading.

A print is made of hashes of the texts at each depth of the messages; of a long text, of its length and its ends. The
print of the first messages is found in the values of all, so that a request is known to begin as an earlier one.
"""

from __future__ import annotations

from gc import get_referents
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel.core.execution_context import LONGEST_ID, id_or_none, text_or_none
from agent_otel.core.plain import fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agent_otel.core.types import RequestPart

_LONG: Final = 1_024  # characters of a text up to which all of it is hashed
_ENDS: Final = 64
_DEEPEST: Final = 16
_MOST_VALUES: Final = 100_000


def plain_part(part: RequestPart) -> RequestPart:
    """Return a part of a request whose ids are text."""
    _, _, call_id, name, message_id, _, _ = part
    if (
        (call_id is None or (type(call_id) is str and len(call_id) <= LONGEST_ID))
        and (name is None or type(name) is str)
        and (message_id is None or (type(message_id) is str and len(message_id) <= LONGEST_ID))
    ):
        return part
    return part._replace(call_id=id_or_none(call_id), name=text_or_none(name), message_id=id_or_none(message_id))


class Messages:
    """The parts of a request: those in front of its messages, and a function that returns the parts of a message.

    Of messages that are objects, ``values`` returns what ``read`` reads, as plain data, and ``id_of`` the id.
    """

    __slots__ = ("_levels", "head", "id_of", "items", "read", "values")

    def __init__(
        self,
        head: Sequence[RequestPart],
        items: Sequence[Any],
        read: Callable[[Any], Iterable[RequestPart]],
        values: Callable[[Any], Any] | None = None,
        id_of: Callable[[Any], object] | None = None,
    ) -> None:
        self.head = head
        self.items = items
        self.read = read
        self.values = values
        self.id_of = id_of
        self._levels: list[Level] | None = None

    def __bool__(self) -> bool:
        return bool(self.items or self.head)

    def __iter__(self) -> Iterator[RequestPart]:
        return map(plain_part, chain(self.head, chain.from_iterable(map(self.read, self.items))))

    @property
    def levels(self) -> list[Level] | None:
        """Return the values of the messages by depth; None where they are too many, or no plain data."""
        if self._levels is None:
            self._levels = _levels_of(self)
        return self._levels

    def between(self, first: int, end: int) -> list[RequestPart]:
        """Return the parts of some of the messages."""
        return [plain_part(part) for item in self.items[first:end] for part in self.read(item)]


def has_doubled_ids(parts: Iterable[RequestPart]) -> bool:
    """Return true when a request holds a message id twice; the SDK's own request does not have these ids."""
    if type(parts) is Messages and parts.id_of is not None:
        known = [each for each in map(parts.id_of, parts.items) if each is not None]
        if len(known) == len(set(known)):
            return False
    ids = [(part.message_id, part.part) for part in parts if part.message_id is not None]
    return len(ids) > len(set(ids))


class Level(NamedTuple):
    """The values at one depth: the lengths of the structures that hold them, texts in their places, and numbers."""

    lengths: list[int]
    texts: list[Any]
    numbers: list[Any]


class LevelPrint(NamedTuple):
    """The number of values at a depth by kind, and a hash of them."""

    lengths: int
    texts: int
    numbers: int
    print: int


def _levels_of(messages: Messages) -> list[Level] | None:
    items = messages.items if messages.values is None else map(messages.values, messages.items)
    values: list[Any] = [*(part.value for part in messages.head), *items]
    found: list[Level] = []
    lengths: list[int] = []
    left = _MOST_VALUES
    while values:
        left -= len(values)
        if left < 0 or len(found) > _DEEPEST:
            return None
        texts: list[Any] = []
        numbers: list[Any] = []
        cls = type(values[0])
        # The messages themselves, and blocks in their contents.
        inner = [value for value in values if type(value) is cls] if cls is dict or cls is list else []
        if len(inner) < len(values):
            others: list[Any] = []
            other = others.append
            texts = [
                (value if len(value) <= _LONG else (len(value), value[:_ENDS], value[-_ENDS:]))
                if type(value) is str
                else None
                if value is None
                else other(value)
                for value in values
            ]
            inner = [value for value in others if type(value) is list or type(value) is dict]
            if len(inner) < len(others) and not _open(others, inner, numbers):
                return None
        found.append(Level(lengths, texts, numbers))
        lengths = list(map(len, inner))
        # A dictionary whose keys are all texts refers to its values only.
        values = get_referents(*inner) if inner else []
        if len(values) != sum(lengths):
            return None
    return found


def _open(others: list[Any], inner: list[Any], numbers: list[Any]) -> bool:
    """Sort values into structures, objects by their fields, and numbers; return false for anything else."""
    inner.clear()
    for value in others:
        cls = type(value)
        if cls is dict or cls is list or cls is tuple:
            inner.append(value)
        elif cls is int or cls is bool or cls is float:
            numbers.append(value)
        else:
            known = fields(value)
            if not known:
                return False
            inner.append(known)
    return True


def prints(levels: Sequence[Level]) -> tuple[LevelPrint, ...]:
    """Return the print of all messages."""
    return tuple(
        LevelPrint(len(one.lengths), len(one.texts), len(one.numbers), _hash(one.lengths, one.texts, one.numbers))
        for one in levels
    )


def begins(levels: Sequence[Level], earlier: Sequence[LevelPrint]) -> bool:
    """Return true when messages begin as those with an earlier print did."""
    if len(levels) < len(earlier):
        return False
    for (lengths, texts, numbers), one in zip(levels, earlier, strict=False):
        if one.print != _hash(lengths[: one.lengths], texts[: one.texts], numbers[: one.numbers]):
            return False
    return True


def _hash(lengths: list[int], texts: list[Any], numbers: list[Any]) -> int:
    return hash((tuple(lengths), tuple(texts), tuple(numbers)))
