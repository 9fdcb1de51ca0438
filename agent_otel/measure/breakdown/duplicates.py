"""The same text in two places, also where one of them was cut, recognised without keeping either."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

from agent_otel.measure.breakdown.paths import HEAD, SHORTEST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.measure.breakdown.paths import Place, Scope


_BLOCK: Final = 1024  # characters under one hash: longer than the markers that a cut leaves at the end
_HASHED: Final = 8  # blocks that are hashed as a whole; of later ones a sample, because hashing costs more than reading
_SAMPLE: Final = 128
_BLOCK_BYTES: Final = 8
_LEAST_BLOCKS: Final = 2  # that a cut copy has in common with the whole text; licences and letterheads are shorter
_MOST_COPIES: Final = 2048  # texts remembered, at about 300 bytes each
_MOST_STARTS: Final = 8  # different texts that begin alike
_MOST_MEMBERS: Final = 4096


class Fingerprint:
    """The kept data of a text: its length, its beginning, and a hash for every 1,024 characters. It comes in pieces."""

    __slots__ = ("_blocks", "_rest", "chars", "head")

    def __init__(self, pieces: Iterable[str] = ()) -> None:
        self.chars = 0
        self.head = ""
        self._rest = ""
        self._blocks = array("q")
        for piece in pieces:
            self.feed(piece)

    def feed(self, text: str) -> None:
        """Take the next piece."""
        if not self.chars:
            self.head = text[:HEAD]
        self.chars += len(text)
        if self._rest:
            text = self._rest + text
        whole = len(text) - len(text) % _BLOCK
        starts = range(0, whole, _BLOCK)
        first = max(0, _HASHED - len(self._blocks))
        self._blocks.extend([hash(text[start : start + _BLOCK]) for start in starts[:first]])
        self._blocks.extend([hash(text[start : start + _SAMPLE]) for start in starts[first:]])
        self._rest = text[whole:]

    def blocks(self) -> bytes:
        """Return the hashes of the full blocks."""
        return self._blocks.tobytes()

    def key(self) -> int:
        """Return a hash of the whole text."""
        return hash((self.chars, self.blocks(), self._rest))


class Copy:
    """A text of which there may be another copy."""

    __slots__ = ("blocks", "bytes", "chars", "group", "key", "place", "scope")

    def __init__(self, place: Place, text: Fingerprint, written: int, scope: Scope | None) -> None:
        self.place = place
        self.chars = text.chars
        self.blocks = text.blocks()
        self.key = text.key()
        self.bytes = written
        self.scope = scope
        self.group: list[tuple[Scope | None, int]] | None = None


class Copies:
    """The texts of one payload; at most 2,048, the longest of them."""

    def __init__(self) -> None:
        self.complete = True
        self.found: dict[tuple[str, str], int] = {}
        """Bytes of the smaller copies, by the paths of the first and the second of each pair."""
        self.groups: list[list[tuple[Scope | None, int]]] = []
        """For each text with copies, where they stand and how many bytes they have there."""
        self._whole: dict[int, Copy] = {}
        self._starts: dict[bytes, list[Copy]] = {}
        self._members = 0
        self._least = SHORTEST
        self._full = False

    def add(self, place: Place, text: Fingerprint, written: int, scope: Scope | None) -> None:
        """Compare a text with those before it and remember it; ``written`` is its size in the payload in bytes."""
        copy = Copy(place, text, written, scope)
        other = self._whole.get(copy.key) or self._cut_copy(copy)
        if other is not None:
            self._match(other, copy)
        if other is None or other.chars != copy.chars:
            self._remember(copy)

    def same(self, first: str, second: str, written: int) -> None:
        """Note that so many bytes stand in a second place."""
        self.found[first, second] = self.found.get((first, second), 0) + written

    def _match(self, other: Copy, copy: Copy) -> None:
        smaller = min(other.bytes, copy.bytes)
        self.same(other.place.path, copy.place.path, smaller)
        if copy.scope is not None:
            copy.scope.matched += smaller
        if other.group is None:
            other.group = [(other.scope, other.bytes)]
            self.groups.append(other.group)
        copy.group = other.group
        self._members += 1
        if self._members <= _MOST_MEMBERS:
            other.group.append((copy.scope, copy.bytes))
        else:
            self.complete = False

    def _cut_copy(self, copy: Copy) -> Copy | None:
        """Find the text with which this one has most in common, if one of the two is the other's beginning."""
        candidates = self._starts.get(copy.blocks[:_BLOCK_BYTES], ())
        return max((other for other in candidates if _is_beginning(other, copy)), key=_length, default=None)

    def _remember(self, copy: Copy) -> None:
        if copy.chars < self._least or (len(self._whole) >= _MOST_COPIES and not self._forget_short_ones()):
            self.complete = False
            return
        self._whole[copy.key] = copy
        if len(copy.blocks) >= _LEAST_BLOCKS * _BLOCK_BYTES:
            alike = self._starts.setdefault(copy.blocks[:_BLOCK_BYTES], [])
            alike.append(copy)
            if len(alike) > _MOST_STARTS:
                alike.remove(min(alike, key=_length))

    def _forget_short_ones(self) -> bool:
        """Make room for longer texts, if there are shorter ones to be forgotten."""
        if self._full:
            return False
        self.complete = False
        self._least = sorted(map(_length, self._whole.values()))[_MOST_COPIES // 2]
        self._whole = {key: copy for key, copy in self._whole.items() if copy.chars >= self._least}
        for start, alike in list(self._starts.items()):
            alike[:] = [copy for copy in alike if copy.chars >= self._least]
            if not alike:
                del self._starts[start]
        self._full = len(self._whole) >= _MOST_COPIES
        return not self._full


def _length(copy: Copy) -> int:
    return copy.chars


def _is_beginning(one: Copy, other: Copy) -> bool:
    """Return True if the shorter begins the longer, except for a marker in its last block or after it."""
    short, long = (one, other) if one.chars <= other.chars else (other, one)
    needed = max(_LEAST_BLOCKS, short.chars // _BLOCK - 1) * _BLOCK_BYTES
    return len(short.blocks) >= needed and long.blocks.startswith(short.blocks[:needed])
