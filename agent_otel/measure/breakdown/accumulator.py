"""Adds up a payload: bytes by path, texts with their copies, and what is a tool's result."""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import chain
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel.measure.breakdown.duplicates import Copies, Fingerprint
from agent_otel.measure.breakdown.json_window import PLAIN
from agent_otel.measure.breakdown.passages import SHORTEST as SHORTEST_PASSAGE
from agent_otel.measure.breakdown.paths import ANY, SHORTEST, Paths, Place, Scope
from agent_otel.measure.breakdown.tool_results import (
    ARGUMENTS,
    KEPT,
    RESULTS,
    TELLING,
    Results,
    beginning_of,
    call_of,
    may_be_call,
    name_of,
    says_outcome,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from agent_otel.measure.breakdown.unread import Unread

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
        """Begin a container."""
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
        queue: deque[tuple[Spot, Sequence[Any]]] = deque([(spot, values)])
        while queue:
            spot, values = queue.popleft()
            for kind, some in self._by_kind(values):
                if kind is str:
                    self._texts(spot, some)
                elif kind is dict:
                    self._objects(spot, some, queue)
                elif kind is list:
                    flat = self._flat(some)
                    self.size += 2 * len(some) + (len(flat) - sum(map(bool, some))) * (1 + self._gap)
                    if flat:
                        queue.append((self.element(spot), flat))
                else:
                    written = self._scalars(kind, some)
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
            size, place = self._simple(value), self.paths.member(spot.place, key)
            if size is None:
                self.values(Spot(place, spot.scope), (value,))
            else:
                place.bytes += size
                if size >= SHORTEST_PASSAGE and self.unread is not None and type(value) is str:
                    self.unread.short(place, spot.scope, value, size)
            if key in TELLING:
                fields.note(key, value)
        if rest:
            self.values(Spot(self.paths.member(spot.place, ANY), spot.scope), rest)

    def text(self, spot: Spot, pieces: Iterable[str], written: Callable[[], int]) -> None:
        """Add a text that is given as it is written."""
        if self.unread is None:
            self._text(spot, Fingerprint(pieces), written())
            return
        comparison = self.unread.comparison(is_written=True)
        fingerprint = Fingerprint(comparison.watch(pieces) if comparison is not None else pieces)
        size = written()
        self._text(spot, fingerprint, size)
        self.unread.add(spot, comparison, fingerprint.chars, size)

    def after(self, spot: Spot, fields: Fields, key: str, value: Any, written: int) -> None:
        """Keep a member's value if it shows what the object is."""
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

    def _by_kind(self, values: Sequence[Any]) -> Iterable[tuple[type, Sequence[Any]]]:
        kinds = set(map(type, values))
        if len(kinds) == 1:
            return ((kinds.pop(), values),)
        kinds_in_order = dict.fromkeys(map(type, values))
        return ((kind, [value for value in values if type(value) is kind]) for kind in kinds_in_order)

    def _flat(self, lists: Sequence[list[Any]]) -> list[Any]:
        return list(chain.from_iterable(lists))

    def _scalars(self, kind: type, values: Sequence[Any]) -> int:
        """Bytes of numbers, which were decoded to their length, and of constants."""
        return sum(values) if kind is int else 4 * len(values) + values.count(False) * (kind is bool)

    def _fingerprint(self, text: str) -> tuple[Fingerprint, int]:
        """Return what is kept of a text, as it is written, and its bytes in the payload."""
        quoted = self.form.quote(text)
        return Fingerprint((quoted[1:-1],)), self.form.written(quoted)

    def _add(self, spot: Spot, size: int) -> None:
        spot.place.bytes += size
        self.size += size

    def _simple(self, value: Any) -> int | None:
        """Bytes of a short text, a number or a constant; the short way for what comes singly."""
        kind = type(value)
        if kind is str:
            return self._short(value) if len(value) < SHORTEST else None
        if kind is int:
            return int(value)
        return 4 + (value is False) if value is None or kind is bool else None

    def _short(self, text: str) -> int:
        quoted = encode_basestring(text) if text.isascii() else self.form.quote(text)
        return len(quoted) if quoted.isascii() and not self.form.around else self.form.written(quoted)

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
        fingerprint, written = self._fingerprint(text)
        self._text(spot, fingerprint, written)
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
            keys = self._joined(list(chain.from_iterable(objects)))
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
            size, place = self._simple(value), members(spot.place, key)
            if size is None:
                queue.append((Spot(place, spot.scope), (value,)))
            else:
                place.bytes += size
                total += size
                if size >= SHORTEST_PASSAGE and self.unread is not None and type(value) is str:
                    self.unread.short(place, spot.scope, value, size)
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
                scope.head = beginning_of(value)
            self.results.add(scope)

    def _joined(self, texts: Sequence[str]) -> int:
        return sum(self.form.texts(texts[start : start + _JOINED]) for start in range(0, len(texts), _JOINED))


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
