"""The breakdown of a payload: bytes by JSON path, by tool and by call, and the texts that stand in it twice."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal import object_kinds
from agent_otel._internal.errors import ours
from agent_otel._internal.object_kinds import shape_of
from agent_otel.measure.breakdown.accumulator import Spot, Tally
from agent_otel.measure.breakdown.json_reader import MALFORMED, STEPS, Reader, Window, chunks_of
from agent_otel.measure.breakdown.paths import OTHER, largest
from agent_otel.measure.breakdown.unread import Unread
from agent_otel.measure.size import json_size, text_bytes

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agent_otel.measure.breakdown.unread import Held, UnreadBytes


_MOST_PATHS: Final = 256
_MOST_DUPLICATES: Final = 32
_HEAD: Final = 4096  # characters in which the serialiser shows whether it puts blanks behind its signs


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Bytes at one path that stand at another path too: those of the smaller copy of each pair."""

    path: str
    other_path: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The composition of a payload, in UTF-8 bytes as they stand in it; dictionaries and tuples have the largest first.

    ``paths`` are the leaves, with the quotes and escapes of texts; keys and punctuation are the rest of
    ``total_bytes``. List indexes are ``[]``, keys that are data are ``*``, a payload that is a single value is ``$``,
    and what exceeds 256 paths is ``_other``.

    ``tools`` counts results wherever they stand, so a result that stands twice counts twice. ``calls`` counts one copy
    of each result, the largest.

    ``unread`` are bytes that no model request held, None where that is unknown.

    If it is not ``exact``, a part was not read or not kept, or is a live object that has no JSON of its own. Of a key
    that an object has twice only one value is counted, and of texts beyond 8 Ki characters samples of 128 in 1,024 are
    compared.
    """

    total_bytes: int
    paths: dict[str, int]
    largest_path: str
    largest_path_bytes: int
    tools: dict[str, int]
    unattributed_bytes: int
    calls: dict[str, int]
    duplicates: tuple[Duplicate, ...]
    duplicate_bytes: int
    exact: bool
    unread: UnreadBytes | None = None


def breakdown_text(
    data: bytes | bytearray | memoryview | str,
    tool_of: Callable[[str], str | None],
    is_tool: Callable[[str], bool] = bool,
    held: Held | None = None,
) -> Breakdown | None:
    """Return what a serialised payload is made of, or None if it is not JSON.

    Also JSON whose content is JSON in a string, a list of such arguments, and one JSON text after another. Cut-off
    JSON is analysed as far as it goes. ``tool_of`` knows the tool of a call id, ``is_tool`` which names in
    the payload are tools', ``held`` what model requests held. Takes less than 1 MB beside the payload, and other
    threads run meanwhile. No text makes it raise.
    """
    if isinstance(data, memoryview):
        data = data.cast("B")
    total = text_bytes(data) if isinstance(data, str) else len(data)
    return breakdown_chunks(chunks_of(data), total, tool_of, is_tool=is_tool, held=held)


def breakdown_chunks(  # noqa: PLR0913 - those of breakdown_text, and the steps
    chunks: Iterator[str],
    total: int,
    tool_of: Callable[[str], str | None],
    *,
    is_tool: Callable[[str], bool] = bool,
    held: Held | None = None,
    steps: int = STEPS,
) -> Breakdown | None:
    """Return the same of a text that is given in chunks, of ``total`` bytes, and read in at most so many ``steps``."""
    window = Window(chunks)
    if not window.peek():
        return None
    gap = 1 if '": ' in window.text[:_HEAD] else 0
    tally = Tally(tool_of, is_tool, gap, Unread(held) if held is not None else None)
    reason = Reader(window, tally, steps=steps).read(tally.root)
    read = window.read()
    if reason is not None and (not tally.paths.sizes(1) or (reason is MALFORMED and read * 2 <= total)):
        return None
    return _breakdown(tally, total, whole=reason is None and read == total)


def breakdown_object(
    value: object,
    tool_of: Callable[[str], str | None],
    is_tool: Callable[[str], bool] = bool,
    held: Held | None = None,
) -> Breakdown | None:
    """Return what a live object would be made of as compact UTF-8 JSON, or None if it has none.

    Takes no more than 50,000 steps: a value is one, and a long text is more. Never runs code of the value.
    """
    tally = LiveTally(tool_of, is_tool, Unread(held) if held is not None else None)
    try:
        tally.values(tally.root, (value,))
    except ours(RuntimeError, ValueError):  # changed by another thread meanwhile
        tally.partly()
    return _breakdown(tally, tally.size, whole=True) if tally.size else None


def _breakdown(tally: Tally, total: int, *, whole: bool) -> Breakdown:
    paths = tally.paths.sizes(_MOST_PATHS)
    largest_path = next((path for path in paths if path != OTHER), "")
    tools = tally.results.tools(tally.copies.groups)
    for one, other, size in tally.results.pairs():
        tally.copies.same(one.place.path, other.place.path, size)
    unread = tally.unread.totals(tally.results.scopes()) if tally.unread is not None else None
    duplicates = sorted(tally.copies.found.items(), key=lambda item: -item[1])
    return Breakdown(
        total_bytes=total,
        paths=paths,
        largest_path=largest_path,
        largest_path_bytes=paths.get(largest_path, 0),
        tools=tools,
        unattributed_bytes=max(0, total - sum(tools.values())),
        calls=tally.results.calls(),
        duplicates=tuple(Duplicate(one, other, size) for (one, other), size in duplicates[:_MOST_DUPLICATES]),
        duplicate_bytes=sum(size for _, size in duplicates),
        exact=whole and tally.complete and tally.copies.complete and tally.results.complete,
        unread=unread._replace(paths=largest(unread.paths, _MOST_PATHS)) if unread is not None else None,
    )


# Live objects, added up without running any of their code.

NODE_BUDGET: Final = 50_000
"""Steps in a live object, at most 20 ms at 0.4 µs each: a value is one, and what costs more is more of them."""
_COLUMN: Final = 12  # steps for values of one place that are looked at together
_MEMBER: Final = 4  # steps for a member of an object that is alone in its place
_STEP_CHARACTERS: Final = 256  # of a text, for one step
_STEP_BITS: Final = 64  # of an integer
_BITS_PER_DIGIT: Final = 3.3219

_PLAIN_INT: Final = 10**18
#: By id: to hash a class would run code of its metaclass.
_JSON: Final = frozenset(map(id, (str, int, float, bool, type(None), list)))
_NOTHING: Final = object
_CONSTANTS: Final = {True: "true", False: "false", None: "null"}


class LiveTally(Tally):
    """Adds up a live object: values of any class, seen no more often than the budget allows."""

    def __init__(
        self, tool_of: Callable[[str], str | None], is_tool: Callable[[str], bool], unread: Unread | None = None
    ) -> None:
        super().__init__(tool_of, is_tool, unread=unread)
        self._left = NODE_BUDGET
        self._room = NODE_BUDGET  # keys, and elements that have to be copied: the same may be seen many times

    def _by_kind(self, values: Sequence[Any]) -> Iterable[tuple[type, Sequence[Any]]]:
        self._take(_COLUMN)
        if len(values) > self._left:
            values = values[: self._left]
            self.partly()
        self._left -= len(values)
        kinds: dict[type, list[Any]] = {}
        for value in values:
            kind, plain = type(value), value
            if id(kind) not in _JSON:
                kind, plain = self._plain(kind, value)
            if kind is not _NOTHING:
                kinds.setdefault(kind, []).append(plain)
        return kinds.items()

    def _plain(self, cls: type, value: Any) -> tuple[type, Any]:
        """Return the value as one of json's own classes, or the length of binary data, and that class."""
        if id(cls) in _JSON:
            return cls, value
        if cls is tuple:
            return list, value
        if cls is dict:
            return dict, self._members_of(value)
        return self._uncommon(shape_of(cls), value)

    def _uncommon(self, shape: object_kinds.Shape, value: Any) -> tuple[type, Any]:
        kind = shape.kind
        if kind is object_kinds.MAPPING or kind is object_kinds.RECORD:
            return dict, self._members_of(shape.read(value))
        if kind is object_kinds.ARRAY or kind is object_kinds.SET:
            found = object_kinds.elements(shape, value, self._room)
            self._room -= len(found)
            if len(found) < shape.length(value):
                self.partly()
            return list, found
        if kind is object_kinds.TEXT:
            return str, str.__getitem__(value, slice(None))
        if kind is object_kinds.NUMBER or kind is object_kinds.LABEL or kind is object_kinds.VALUE:
            inner = shape.read(value)
            return self._plain(type(inner), inner)
        self.partly()  # of binary data it is not known which text they become
        return (bytes, shape.length(value)) if kind is object_kinds.BINARY else (_NOTHING, None)

    def _members_of(self, value: dict[Any, Any]) -> dict[str, Any]:
        """Return a dictionary with keys that run no code, and not more of them than there is room for."""
        count = dict.__len__(value)
        self._room -= count
        if self._room >= 0 and type(value) is dict and {id(str)}.issuperset(map(id, map(type, value))):
            return value
        plain: dict[str, Any] = {}
        for key, member in islice(dict.items(value), max(0, count + min(0, self._room))):
            if type(key) is not str:  # as json writes it; a key of another class is a number, as data are
                is_plain = type(key) is int and -_PLAIN_INT < key < _PLAIN_INT
                is_constant = type(key) is bool or key is None
                key = _CONSTANTS[key] if is_constant else repr(key) if is_plain else str(len(plain))  # noqa: PLW2901
            plain[key] = member
        self._room = max(0, self._room)
        if len(plain) < count:
            self.partly()
        return plain

    def _take(self, steps: int) -> bool:
        """Take steps off the budget, and return whether there were so many."""
        self._left -= steps
        if self._left >= 0:
            return True
        self._left = 0
        self.partly()
        return False

    def _object(self, spot: Spot, one: dict[str, Any], queue: deque[tuple[Spot, Sequence[Any]]]) -> None:
        if self._take(_MEMBER * len(one)):
            super()._object(spot, one, queue)

    def _texts(self, spot: Spot, texts: Sequence[str]) -> None:
        if self._take(sum(map(len, texts)) // _STEP_CHARACTERS):
            super()._texts(spot, texts)
        else:
            self._add(spot, sum(map(len, texts)) + 2 * len(texts))

    def _flat(self, lists: Sequence[Sequence[Any]]) -> list[Any]:
        return list(islice(chain.from_iterable(lists), self._left + 1))

    def _scalars(self, kind: type, values: Sequence[Any]) -> int:
        if kind is float:
            return sum(len(repr(value)) if value - value == 0 else json_size(value).bytes for value in values)
        if kind is int:
            plain = min(values) > -_PLAIN_INT and max(values) < _PLAIN_INT
            if plain:
                return sum(map(len, map(repr, values)))
            if self._take(sum(value.bit_length() for value in values) // _STEP_BITS):
                return sum(json_size(value).bytes for value in values)
            return sum(int(value.bit_length() / _BITS_PER_DIGIT) + 1 for value in values)
        return sum(values) + 2 * len(values) if kind is bytes else super()._scalars(kind, values)

    def _simple_bytes(self, value: Any) -> int | None:
        return super()._simple_bytes(value) if type(value) is str else None
