"""Adds up a payload: bytes by path, texts with their copies, and what is a tool's result."""

from __future__ import annotations

from array import array
from collections import defaultdict, deque
from itertools import chain
from json.encoder import encode_basestring
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel.measure.breakdown.json_reader import PLAIN
from agent_otel.measure.breakdown.passages import SHORTEST as SHORTEST_PASSAGE
from agent_otel.measure.breakdown.paths import ANY, HEAD, SHORTEST, Paths, Place, Scope
from agent_otel.measure.breakdown.tool_results import (
    ARGUMENTS,
    KEPT,
    RESULTS,
    TELLING,
    Results,
    call_of,
    may_be_call,
    name_of,
    says_outcome,
)
from agent_otel.measure.preview import preview

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from agent_otel.measure.breakdown.unread import Unread


# The same text in two places, also where one of them was cut, recognised without keeping either.

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

    def blocks(self) -> tuple[bytes, int]:
        """Return the hashes of the full blocks, and a hash of the whole text."""
        blocks = self._blocks.tobytes()
        return blocks, hash((self.chars, blocks, self._rest))


class Copy:
    """A text of which there may be another copy."""

    __slots__ = ("blocks", "bytes", "chars", "group", "key", "place", "scope")

    def __init__(self, place: Place, text: Fingerprint, written: int, scope: Scope | None) -> None:
        self.place = place
        self.chars = text.chars
        self.blocks, self.key = text.blocks()
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
        other = self._whole.get(copy.key)
        if other is None:  # the text with which this one has most in common, if one of the two begins the other
            candidates = self._starts.get(copy.blocks[:_BLOCK_BYTES], ())
            other = max((one for one in candidates if _is_beginning(one, copy)), key=_length, default=None)
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


_length = attrgetter("chars")


def _is_beginning(one: Copy, other: Copy) -> bool:
    """Return True if the shorter begins the longer, except for a marker in its last block or after it."""
    short, long = (one, other) if one.chars <= other.chars else (other, one)
    needed = max(_LEAST_BLOCKS, short.chars // _BLOCK - 1) * _BLOCK_BYTES
    return len(short.blocks) >= needed and long.blocks.startswith(short.blocks[:needed])


_WIDE: Final = 128  # members of an object that is a table of data
_JOINED: Final = 1024  # short texts measured together
_LONG: Final = 1024  # bytes of an object that may have been cut elsewhere
_NULL: Final = 4


class Spot(NamedTuple):
    """A place, and the result that it is part of."""

    place: Place
    scope: Scope | None


class Fields:
    """The state of an object while it is read."""

    __slots__ = ("called", "outcome", "results", "scope", "texts")

    def __init__(self, scope: Scope | None) -> None:
        self.scope = scope
        self.texts: dict[str, str] = {}
        self.results: list[Scope] = []
        self.called = False  # whether it has arguments
        self.outcome = False  # whether it has what only calls have

    def note(self, key: str, value: Any) -> None:
        """Keep the value of a member that may name a call; a long value comes as its own fields, or is missing."""
        if key in KEPT:
            if type(value) is str:
                self.texts[key] = value
            return
        self.outcome = self.outcome or says_outcome((key,))
        if key in ARGUMENTS:
            self.called = True
            name = name_of(value.texts if type(value) is Fields else value) if key == "function" else None
            if name is not None:
                self.texts.setdefault("name", name)


class Tally:
    """Adds up a payload. Values of one path are looked at together, a column at a time: a tenth of the cost."""

    def __init__(
        self,
        tool_of: Callable[[str], str | None],
        is_tool: Callable[[str], bool],
        gap: int = 0,
        unread: Unread | None = None,
    ) -> None:
        self.form = PLAIN
        self.unread = unread
        self.paths = Paths()
        self.copies = Copies()
        self.complete = True
        self.size = 0
        """Bytes of what was decoded; its punctuation is estimated, with so many blanks after each sign."""
        self.root = Spot(self.paths.root, None)
        self._gap = gap
        self.results = Results(tool_of, is_tool)

    # The methods of the visitor, which the reader calls.

    def fields(self, spot: Spot) -> Fields:
        """Begin a container; `close` ends an object."""
        return Fields(spot.scope)

    def member(self, spot: Spot, fields: Fields, key: str, beginning: str) -> Spot:
        """Return the spot of a member; if it may be a result, the scope is its own."""
        place = self.paths.member(spot.place, key)
        if key in RESULTS and _is_open(fields.scope):
            return Spot(place, Scope(place, fields.scope, beginning))
        return Spot(place, spot.scope)

    def element(self, spot: Spot) -> Spot:
        """Return the spot of an array's elements."""
        return Spot(self.paths.element(spot.place), spot.scope)

    def values(self, spot: Spot, values: Sequence[Any]) -> None:
        """Add decoded values, all of one spot."""
        if len(values) == 1 and (size := self._simple(spot.place, spot.scope, values[0])) is not None:
            self.size += size
            return
        queue: deque[tuple[Spot, Sequence[Any]]] = deque([(spot, values)])
        while queue:
            spot, values = queue.popleft()
            kinds = dict.fromkeys(map(type, values))
            for kind in kinds:
                some: Sequence[Any] = values if len(kinds) == 1 else [value for value in values if type(value) is kind]
                if kind is str:
                    self._texts(spot, some)
                elif kind is dict:
                    self._objects(spot, some, queue)
                elif kind is list:
                    flat = list(chain.from_iterable(some))
                    self.size += 2 * len(some) + (len(flat) - sum(map(bool, some))) * (1 + self._gap)
                    if flat:
                        queue.append((self.element(spot), flat))
                else:
                    # Numbers were decoded to their length.
                    written = sum(some) if kind is int else 4 * len(some) + some.count(False) * (kind is bool)
                    self._add(spot, written)
                    if self.unread is not None and (kind is int or kind is float):
                        self.unread.numbers(spot, len(some), written)

    def members(self, spot: Spot, fields: Fields, members: dict[str, Any]) -> None:
        """Add some members of an object."""
        is_table = len(members) > _WIDE
        rest = []
        for key, value in members.items():
            if key in RESULTS:
                before, member = self.size, self.member(spot, fields, key, "")
                self.values(member, (value,))
                self.after(member, fields, key, value, self.size - before)
                continue
            if is_table and key not in TELLING and key not in spot.place.members:
                rest.append(value)
                continue
            place = self.paths.member(spot.place, key)
            if self._simple(place, spot.scope, value) is None:
                self.values(Spot(place, spot.scope), (value,))
            if key in TELLING:
                fields.note(key, value)
        if rest:
            self.values(Spot(self.paths.member(spot.place, ANY), spot.scope), rest)

    def text(self, spot: Spot, pieces: Iterable[str], written: Callable[[], int]) -> None:
        """Add a text that is given as it is written; its bytes are known after the last piece."""
        if self.unread is None:
            self._text(spot, Fingerprint(pieces), written())
            return
        comparison = self.unread.comparison(is_written=True)
        fingerprint = Fingerprint(comparison.watch(pieces) if comparison is not None else pieces)
        size = written()
        self._text(spot, fingerprint, size)
        self.unread.add(spot, comparison, fingerprint.chars, size)

    def after(self, spot: Spot, fields: Fields, key: str, value: Any, written: int) -> None:
        """Keep a member's decoded value, or its fields, if it shows what the object is."""
        if spot.scope is not None and spot.scope is not fields.scope and written > _NULL:
            spot.scope.bytes = written
            fields.results.append(spot.scope)
        if key in TELLING:
            fields.note(key, value)

    def close(self, fields: Fields) -> None:
        """Decide what an object was."""
        call, certain = call_of(fields.texts)
        if call is None or not (fields.results or fields.called):
            return
        name = name_of(fields.texts, plainly=certain or fields.outcome)
        self.results.note(call, name)
        for scope in fields.results:
            scope.call, scope.name, scope.certain = call, name, certain
            self.results.add(scope)

    def partly(self) -> None:
        """Note that something was not read."""
        self.complete = False

    # Decoded values.

    def _add(self, spot: Spot, size: int) -> None:
        spot.place.bytes += size
        self.size += size

    def _simple(self, place: Place, scope: Scope | None, value: Any) -> int | None:
        """Add a short text, a number or a constant, and return its bytes; None for any other value."""
        kind = type(value)
        if kind is str:
            if len(value) >= SHORTEST:
                return None
            quoted = encode_basestring(value) if value.isascii() else self.form.quote(value)
            size = len(quoted) if quoted.isascii() and not self.form.around else self.form.written(quoted)
            if size >= SHORTEST_PASSAGE and self.unread is not None:
                self.unread.short(place, scope, value, size)
        elif kind is int:
            size = value
        elif value is None or kind is bool:
            size = 4 + (value is False)
        else:
            return None
        place.bytes += size
        return size

    def _texts(self, spot: Spot, texts: Sequence[str]) -> None:
        short = texts
        if max(map(len, texts)) >= SHORTEST:
            for text in texts:
                if len(text) >= SHORTEST:
                    self._long(spot, text)
            short = [text for text in texts if len(text) < SHORTEST]
        for start in range(0, len(short), _JOINED):
            some = short[start : start + _JOINED]
            written = self.form.texts(some)
            self._add(spot, written)
            if self.unread is not None:
                self.unread.column(spot, some, written)

    def _long(self, spot: Spot, text: str) -> None:
        quoted = self.form.quote(text)
        written = self.form.written(quoted)
        self._text(spot, Fingerprint((quoted[1:-1],)), written)
        if self.unread is not None:
            comparison = self.unread.comparison(is_written=False)
            if comparison is not None:
                comparison.feed(text)
            self.unread.add(spot, comparison, len(text), written)

    def _text(self, spot: Spot, text: Fingerprint, written: int) -> None:
        self._add(spot, written)
        if text.chars >= SHORTEST:
            self.copies.add(spot.place, text, written, spot.scope)
        if spot.scope is not None:
            spot.scope.hold(text.head, written)

    def _objects(self, spot: Spot, objects: Sequence[dict[str, Any]], queue: deque[tuple[Spot, Sequence[Any]]]) -> None:
        first, is_open = list(objects[0]), _is_open(spot.scope)
        if len(objects) == 1 and len(first) <= _WIDE:
            self._object(spot, objects[0], queue)
            return
        columns: Mapping[str, Sequence[Any]]
        if len(first) <= _WIDE and list(chain.from_iterable(objects)) == first * len(objects):
            columns = dict(zip(first, zip(*map(dict.values, objects), strict=True), strict=False))
            calls = objects if is_open and may_be_call(first) else ()
            if calls:
                columns = {key: column for key, column in columns.items() if key not in RESULTS}
            keys = self.form.texts(first) * len(objects) if first else 0
            members, filled = len(first) * len(objects), len(objects) * bool(first)
        else:
            calls = [one for one in objects if is_open and may_be_call(one)]
            columns = _columns(objects, spot.place, RESULTS if calls else frozenset())
            names = list(chain.from_iterable(objects))
            keys = sum(self.form.texts(names[at : at + _JOINED]) for at in range(0, len(names), _JOINED))
            members, filled = sum(map(len, objects)), sum(map(bool, objects))
        self.size += keys + 2 * len(objects) + (2 * members - filled) * (1 + self._gap)
        for key, column in columns.items():
            queue.append((Spot(self.paths.member(spot.place, key), spot.scope), column))
        for one in calls:
            self._call(spot, one)

    def _object(self, spot: Spot, one: dict[str, Any], queue: deque[tuple[Spot, Sequence[Any]]]) -> None:
        is_call = _is_open(spot.scope) and may_be_call(one)
        members = self.paths.member
        total = (self.form.texts(one) + (2 * len(one) - 1) * (1 + self._gap) if one else 0) + 2
        for key, value in one.items():
            if is_call and key in RESULTS:
                continue
            place = members(spot.place, key)
            size = self._simple(place, spot.scope, value)
            if size is None:
                queue.append((Spot(place, spot.scope), (value,)))
            else:
                total += size
        self.size += total
        if is_call:
            self._call(spot, one)

    def _call(self, spot: Spot, one: dict[str, Any]) -> None:
        """Add the results in an object that may be a tool's message or the record of a call."""
        call, certain = call_of(one)
        name = name_of(one, plainly=certain or says_outcome(one)) or name_of(one.get("function"))
        if call is not None:
            self.results.note(call, name)
        for key in [key for key in one if key in RESULTS]:
            place, value = self.paths.member(spot.place, key), one[key]
            if call is None or value is None:
                self.values(Spot(place, spot.scope), (value,))
                continue
            before = self.size
            scope = Scope(place, spot.scope)
            scope.call, scope.name, scope.certain = call, name, certain
            self.values(Spot(place, scope), (value,))
            scope.bytes = self.size - before
            if not scope.head and scope.bytes >= _LONG:
                scope.head = preview(value, HEAD)
            self.results.add(scope)


def _is_open(scope: Scope | None) -> bool:
    """Return True if results may be in this container: it is not inside a result."""
    return scope is None or scope.call is None


def _columns(objects: Sequence[dict[str, Any]], place: Place, without: frozenset[str]) -> dict[str, list[Any]]:
    """Sort the members of unlike objects by key; the keys of tables and of wide objects are data (``ANY``)."""
    columns: dict[str, list[Any]] = defaultdict(list)
    for one in objects:
        skip = without if without and may_be_call(one) else ()
        is_table = len(one) > _WIDE
        for key, value in one.items():
            if key not in skip:
                is_data = (is_table or len(columns) > _WIDE) and key not in columns and key not in place.members
                columns[ANY if is_data else key].append(value)
    return columns
