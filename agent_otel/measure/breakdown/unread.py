"""The bytes of a payload that no model request contained. Hashes of the requests' passages show this.

If the delivery of a call's result was seen, the result is compared by length. The part that the model got is read, and
the rest is unread. Other texts are compared by passages. A long text is compared in part. If there are many texts, some
are compared. The rest counts like the compared texts around it.

Some values prove nothing because they cannot be recognised: numbers (except long arrays of them), constants, and texts
with only short passages. Values that may still be on their way to a model prove nothing either: the result of a call
after the last delivered result, and the last elements of an array if earlier elements were read.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from agent_otel.measure.breakdown.json_reader import unescaped
from agent_otel.measure.passages import LONGEST, MASK, SHORTEST, blocks, passages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from agent_otel.measure.breakdown.paths import Place, Scope

_SLICES: Final = (256, 1024)  # characters compared at a time; the second number if the first proves nothing
_STRIDE: Final = 8192  # characters from one slice to the next
_LEAST: Final = 256  # characters: precision of the search for the end of reading
_BATCH: Final = 256  # short texts of a column between two comparisons
_SAMPLED: Final = 8  # short texts compared at a time
_ALLOWANCE: Final = 32 * 1024  # characters compared in every payload
_SHARE: Final = 32  # beyond the allowance, one character in so many is compared
_COST: Final = 64  # characters added to the cost of each comparison
_READ: Final = 0.9  # least share of known passages in a read slice; unread slices have known keys and beginnings too
_PARTLY: Final = 0.05  # if a larger share of a text was read, the rest is no longer on its way
_MOST_PENDING: Final = 32  # texts at the end of an array that may be on their way
_NUMBERS: Final = 256  # from this length on, a model does not read an array of numbers
_ALIKE: Final = (0.9, 1.5)  # bytes of a result in a payload, with escapes, ÷ bytes that the tool produced
_CLEARLY: Final = 0.75
_MOST_ENTRIES: Final = 4096
_QUOTES: Final = 2
_NOISE: Final = 2 * _LEAST


_Spot: TypeAlias = "tuple[Place, Scope | None]"


class Delivery(NamedTuple):
    """Bytes of a result that its tool produced, and the most bytes of it that a model request contained."""

    produced: int
    delivered: int
    is_pending: bool = False


class Held(NamedTuple):
    """The passages and the results in the model requests of an execution.

    ``prints`` are hashes that ``modulus`` divides. An execution adds hashes to the array. The first ``length`` hashes
    were there when the payload was made. ``delivery`` returns None for a call that was not seen.
    """

    prints: Sequence[int]
    length: int
    modulus: int
    delivery: Callable[[str], Delivery | None]


class UnreadBytes(NamedTuple):
    """Bytes of a payload that no model request contained, by path. A result of a tool is one path.

    ``pending`` bytes may be on their way to a model. ``has_delivered`` is true if a request contained one of the
    payload's results.
    """

    paths: dict[str, int]
    pending: int
    has_delivered: bool


@dataclass(slots=True)
class _Entry:
    """Bytes of consecutive texts in one place and one result."""

    place: Place
    scope: Scope | None
    texts: int = 0
    read: int = 0
    unread: int = 0


@dataclass(slots=True)
class _Column:
    """Bytes of one place, without results. ``tail`` has the bytes of the unread texts after the last read text."""

    is_in_array: bool
    read: int = 0
    unread: int = 0
    tail: int = 0
    tail_texts: int = 0

    def add(self, texts: int, read: int, unread: int) -> None:
        """Add the bytes of the next texts."""
        self.read += read
        self.tail += unread
        self.tail_texts += texts
        if read > _PARTLY * (read + unread):
            self.unread += self.tail
            self.tail = self.tail_texts = 0

    def pending(self) -> int:
        """Return the bytes that may be on their way to a model."""
        return self.tail if self.is_in_array and self.read and self.tail_texts <= _MOST_PENDING else 0


class Unread:
    """Compares the texts of one payload with the texts of model requests."""

    def __init__(self, held: Held) -> None:
        self._delivery = held.delivery
        self._prints = frozenset(held.prints[: held.length])
        self._modulus = held.modulus
        self._credit = _ALLOWANCE
        self._entries: list[_Entry] = []
        self._columns: dict[Place, _Column] = {}
        self._shares: dict[Place, float] = {}  # read share of a place's latest text, for texts that are not compared

    def comparison(self) -> Comparison | None:
        """Begin the comparison of a text, or return None if enough has been compared."""
        return Comparison(self._is_read) if self._credit > 0 else None

    def add(self, spot: _Spot, text: Comparison | None, chars: int, written: int) -> None:
        """Add a text of ``chars`` characters and ``written`` bytes in the payload."""
        self._credit += chars // _SHARE
        if text is None:
            self._skip(spot, 1, written)
            return
        self._credit -= text.compared
        if _is_noise(text.unread, chars):
            text.unread = 0
        if text.unread == chars:
            self._enter(spot, 1, 0, written)
            return
        unread = (written - _QUOTES) * text.unread // max(1, chars)
        undecided = (written - _QUOTES) * text.undecided // max(1, chars)
        self._enter(spot, 1, written - unread - undecided, unread)

    def column(self, spot: _Spot, texts: Sequence[str], written: int) -> None:
        """Add short texts of one place, without the payload's escapes."""
        chars = sum(map(len, texts))
        self._credit += chars // _SHARE
        if self._credit <= 0:
            self._skip(spot, len(texts), written)
            return

        def is_read(at: int) -> bool | None:
            sample = "\n".join(texts[at : at + _SAMPLED])
            self._credit -= len(sample) + _COST
            return self._is_read(passages(sample))

        unread, undecided = _unread_in(len(texts), is_read, _BATCH, _SAMPLED)
        unread, undecided = written * unread // len(texts), written * undecided // len(texts)
        self._enter(spot, len(texts), written - unread - undecided, unread)

    def numbers(self, spot: _Spot, count: int, written: int) -> None:
        """Add the numbers of an array. A model does not read a long array, such as an embedding."""
        if count >= _NUMBERS and spot[0].path.endswith("[]"):
            self._enter(spot, count, 0, written)

    def _is_read(self, found: Iterable[str]) -> bool | None:
        """Return true if requests contained these passages, None if they prove nothing."""
        decided = read = 0
        for block in chain.from_iterable(map(blocks, found)):
            number = hash(block) & MASK
            if len(block) >= SHORTEST and not number % self._modulus:
                decided += len(block)
                read += len(block) * (number in self._prints)
        return read >= _READ * decided if decided else None

    def totals(self, results: Iterable[Scope]) -> UnreadBytes:
        """Return the unread bytes."""
        deliveries = {
            scope: delivery
            for scope in results
            if scope.call is not None and (delivery := self._delivery(scope.call)) is not None
        }
        read_in = dict.fromkeys((scope for scope in deliveries if _owner(scope, deliveries) is scope), 0)
        for entry in self._entries:
            owner = _owner(entry.scope, deliveries)
            if owner is None:
                self._column(entry.place).add(entry.texts, entry.read, entry.unread)
            else:
                read_in[owner] += entry.read
        found: dict[str, int] = defaultdict(int)
        pending = 0
        for scope, read_bytes in read_in.items():
            if deliveries[scope].is_pending:
                pending += scope.bytes
                continue
            found[scope.place.path] += _unread_of(scope, deliveries[scope], read_bytes)
        for place, column in self._columns.items():
            later = column.pending()
            pending += later
            found[place.path or "$"] += column.unread + column.tail - later
        paths = {path: unread for path, unread in found.items() if unread}
        return UnreadBytes(paths, pending, any(delivery.delivered for delivery in deliveries.values()))

    def _column(self, place: Place) -> _Column:
        column = self._columns.get(place)
        if column is None:
            column = self._columns[place] = _Column("[]." in place.path)
        return column

    def _skip(self, spot: _Spot, texts: int, written: int) -> None:
        """Add texts that are not compared. Use the read share of the place's latest text."""
        share = self._shares.get(spot[0])
        if share is not None:
            read = int(written * share)
            self._enter(spot, texts, read, written - read)

    def _enter(self, spot: _Spot, texts: int, read: int, unread: int) -> None:
        place, scope = spot
        if not read + unread:
            return
        self._shares[place] = read / (read + unread)
        last = self._entries[-1] if self._entries else None
        if last is None or last.place is not place or last.scope is not scope or (last.read > 0) != (read > 0):
            if len(self._entries) >= _MOST_ENTRIES:
                self._column(place).add(texts, read, unread)
                return
            last = _Entry(place, scope)
            self._entries.append(last)
        last.texts += texts
        last.read += read
        last.unread += unread


class Comparison:
    """The comparison of a text as it is written. It counts ``unread`` and ``undecided`` characters."""

    def __init__(self, compare: Callable[[Iterable[str]], bool | None]) -> None:
        self._compare = compare
        self._is_read: bool | None = None
        self._start: int | None = 0  # offset of the piece in the text's first passage; None after that passage
        self.compared = 0
        self.undecided = 0
        self.unread = 0

    def feed(self, piece: str) -> None:
        """Compare the next piece."""
        is_one = "\\" not in piece

        def is_read(at: int) -> bool | None:
            for length in _SLICES:
                part = piece[at : at + length]
                self.compared += len(part) + _COST
                found = passages(unescaped(part))
                offset = None if self._start is None else self._start + at
                if offset is not None and (is_one or not at):
                    found[0] = found[0][-offset % LONGEST :]
                else:
                    found[0] = ""  # the passage began before the slice
                rest = found.pop()  # the passage may continue after the slice
                found += [block for block in blocks(rest) if len(block) == LONGEST]
                verdict = self._compare(found)
                if verdict is not None:
                    self._is_read = verdict
                    return verdict
            return self._is_read

        unread, undecided = _unread_in(len(piece), is_read, _STRIDE, _LEAST)
        if self.undecided and self._is_read is not None:
            self.unread += 0 if self._is_read else self.undecided
            self.undecided = 0
        self.unread += unread
        self.undecided += undecided
        self._start = self._start + len(piece) if is_one and self._start is not None else None


def _unread_in(length: int, is_read: Callable[[int], bool | None], stride: int, least: int) -> tuple[int, int]:
    """Return the unread and the undecided part of a length, by a sample at each stride and between two that differ."""
    before, last, unread, undecided = 0, is_read(0), 0, 0
    places = range(stride, length, stride)
    for at in (*places, max(0, length - least)) if length > least else ():
        now = is_read(at)
        if last is None:
            last = now
        low, high = before, at
        while now is not None and now is not last and high - low > least:
            middle = (low + high) // 2
            if is_read(middle) is last:
                low = middle
            else:
                high = middle
        unread += 0 if last is not False else high - before
        unread += 0 if now is not False else at - high
        undecided += at - before if last is None else 0
        before, last = at, last if now is None else now
    if last is None:
        return unread, length - unread
    return unread + (0 if last else length - before), undecided


def _owner(scope: Scope | None, deliveries: dict[Scope, Delivery]) -> Scope | None:
    """Return the outermost delivered result around a text."""
    found = None
    while scope is not None:
        if scope in deliveries:
            found = scope
        scope = scope.parent
    return found


def _is_noise(unread: int, size: int) -> bool:
    """Return true for so few unread bytes that they may come from comparing the notice of a cut with the text."""
    return unread <= _NOISE and unread * 10 <= size


def _unread_of(scope: Scope, delivery: Delivery, read: int) -> int:
    """Return the unread bytes of a result. In its texts, ``read`` bytes were recognised."""
    is_text = scope.text_bytes * 5 >= scope.bytes * 4
    size = scope.bytes - (_QUOTES if is_text else 0)
    produced, delivered = delivery.produced, min(delivery.delivered, delivery.produced)
    least, most = _ALIKE
    if produced and least * produced <= size <= most * produced:
        by_length = size * (produced - delivered) // produced
    else:
        by_length = max(0, size - delivery.delivered)
    by_passages = max(0, size - read)
    if _is_noise(by_passages, size):
        return 0
    return by_passages if by_passages < _CLEARLY * by_length else by_length
