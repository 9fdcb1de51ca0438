"""The breakdown of a payload: bytes by JSON path, by tool and by call, and texts that occur twice."""

from __future__ import annotations

import functools
from array import array
from collections import defaultdict, deque
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel._internal.errors import ours
from agent_otel.measure.breakdown.json_reader import MALFORMED, PLAIN, STEPS, Reader, Window, chunks_of
from agent_otel.measure.breakdown.paths import HEAD, SHORTEST, Paths, Place, Scope, largest
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
from agent_otel.measure.breakdown.unread import Unread
from agent_otel.measure.json_pieces import pieces
from agent_otel.measure.key_structure import ANY, OTHER
from agent_otel.measure.passages import SHORTEST as SHORTEST_PASSAGE
from agent_otel.measure.preview import preview
from agent_otel.measure.size import text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from agent_otel.measure.breakdown.unread import Held, UnreadBytes


_MOST_PATHS: Final = 256
_MOST_DUPLICATES: Final = 32
STEPS_OF_OBJECTS: Final = 50_000  # steps of the walk over a live object: 12.8 MB of texts, at most 50 ms
_HEAD: Final = 4096  # characters that show whether the serialiser writes blanks after its punctuation


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Bytes that occur at one path and again at another. The smaller copy of each pair counts."""

    path: str
    other_path: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The composition of a payload, in UTF-8 bytes as written. Dictionaries and tuples start with the largest.

    ``paths`` has the leaves. Their sizes include the quotes and escapes of texts. Keys and punctuation are the rest of
    ``total_bytes``. A list index is ``[]``. A key that is data is ``*``. A payload that is a single value is ``$``. If
    there are more than 256 paths, the smallest are summed as ``_other``.

    ``tools`` counts each occurrence of a result. A result that occurs twice counts twice. ``calls`` counts only the
    largest copy of each result.

    ``unread`` has the bytes that no model request contained. It is None if they are unknown.

    If the breakdown is not ``exact``, a part was not read or not kept. If an object has a key twice, only one value
    counts. Beyond 8 Ki characters of a text, only 128 of each 1,024 characters are compared.
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


# The same text in two places, also where one of them was cut, recognised without keeping either.

_BLOCK: Final = 1024  # characters under one hash: longer than the markers that a cut leaves at the end
_HASHED: Final = 8  # blocks that are hashed as a whole; of later ones a sample, because hashing costs more than reading
_SAMPLE: Final = 128
_BLOCK_BYTES: Final = 8
_LEAST_BLOCKS: Final = 2  # that a cut copy has in common with the whole text; licences and letterheads are shorter
_MOST_COPIES: Final = 2048  # texts remembered, at about 300 bytes each
_MOST_STARTS: Final = 8  # different texts that begin alike
_MOST_MEMBERS: Final = 4096
_MOST_COMMON: Final = 16 * 1024  # texts of a state, at about 70 bytes each


class Text:
    """A text that comes in pieces, of which its length, its beginning and a hash for every 1,024 characters are kept.

    ``group`` has the bytes and the results of the copies of it that were found.
    """

    __slots__ = ("_hashes", "_rest", "blocks", "bytes", "chars", "group", "head", "key", "place", "scope")

    def __init__(self, place: Place, scope: Scope | None) -> None:
        self.place = place
        self.scope = scope
        self.chars = self.bytes = self.key = 0
        self.head = self._rest = ""
        self.blocks = b""
        self.group: list[tuple[Scope | None, int]] | None = None
        self._hashes = array("q")

    def feed(self, text: str) -> None:
        """Take the next piece."""
        if not self.chars:
            self.head = text[:HEAD]
        self.chars += len(text)
        if self._rest:
            text = self._rest + text
        whole = len(text) - len(text) % _BLOCK
        starts = range(0, whole, _BLOCK)
        first = max(0, _HASHED - len(self._hashes))
        self._hashes.extend([hash(text[start : start + _BLOCK]) for start in starts[:first]])
        self._hashes.extend([hash(text[start : start + _SAMPLE]) for start in starts[first:]])
        self._rest = text[whole:]

    def end(self, written: int) -> None:
        """Keep the hashes of the full blocks and a hash of the whole text, and nothing of the text itself."""
        self.bytes, self.blocks = written, self._hashes.tobytes()
        self.key = hash((self.chars, self.blocks, self._rest))
        self.head = self._rest = ""
        del self._hashes


class Copies:
    """The texts of one payload; at most 2,048, the longest of them."""

    def __init__(self) -> None:
        self.complete = True
        self.found: dict[tuple[str, str], int] = defaultdict(int)
        """Bytes of the smaller copies, by the paths of the first and the second of each pair."""
        self.groups: list[list[tuple[Scope | None, int]]] = []
        """For each text with copies, where they stand and how many bytes they have there."""
        self._whole: dict[int, Text] = {}
        self._starts: dict[bytes, list[Text]] = {}
        self._members = 0
        self._least = SHORTEST
        self._full = False

    def add(self, text: Text) -> None:
        """Compare a text with those before it, and remember it."""
        other = self._whole.get(text.key)
        if other is None:  # the text with which this one has most in common, if one of the two begins the other
            candidates = self._starts.get(text.blocks[:_BLOCK_BYTES], ())
            other = max((one for one in candidates if _is_beginning(one, text)), key=_length, default=None)
        if other is not None:
            self._match(other, text)
        if other is None or other.chars != text.chars:
            self._remember(text)

    def _match(self, other: Text, text: Text) -> None:
        smaller = min(other.bytes, text.bytes)
        self.found[other.place.path, text.place.path] += smaller
        if text.scope is not None:
            text.scope.matched += smaller
        if other.group is None:
            other.group = [(other.scope, other.bytes)]
            self.groups.append(other.group)
        text.group = other.group
        self._members += 1
        if self._members <= _MOST_MEMBERS:
            other.group.append((text.scope, text.bytes))
        else:
            self.complete = False

    def _remember(self, text: Text) -> None:
        if text.chars < self._least or (len(self._whole) >= _MOST_COPIES and not self._forget_short_ones()):
            self.complete = False
            return
        self._whole[text.key] = text
        if len(text.blocks) >= _LEAST_BLOCKS * _BLOCK_BYTES:
            alike = self._starts.setdefault(text.blocks[:_BLOCK_BYTES], [])
            alike.append(text)
            if len(alike) > _MOST_STARTS:
                alike.remove(min(alike, key=_length))

    def _forget_short_ones(self) -> bool:
        """Make room for longer texts, if there are shorter ones to be forgotten."""
        if self._full:
            return False
        self.complete = False
        self._least = sorted(map(_length, self._whole.values()))[_MOST_COPIES // 2]
        self._whole = {key: text for key, text in self._whole.items() if text.chars >= self._least}
        longer = {start: [text for text in alike if text.chars >= self._least] for start, alike in self._starts.items()}
        self._starts = {start: alike for start, alike in longer.items() if alike}
        self._full = len(self._whole) >= _MOST_COPIES
        return not self._full


_length = attrgetter("chars")


class Common:
    """Bytes of the texts of a payload that the payload before it had at the same path."""

    def __init__(self, before: Collection[int] = ()) -> None:
        self._before = before
        self._found: dict[str, int] = defaultdict(int)
        #: Hashes of the texts of this payload, with their paths.
        self.texts: set[int] = set()

    def add(self, path: str, key: int, written: int) -> None:
        """Compare a text of ``written`` bytes, whose hash is ``key``."""
        key = hash((path, key))
        if len(self.texts) < _MOST_COMMON:
            self.texts.add(key)
        if key in self._before:
            self._found[path] += written

    def sizes(self, shown: Callable[[str], str]) -> dict[str, int]:
        """Return the bytes by path as it is shown, largest first."""
        return _summed(self._found, shown)


def _is_beginning(one: Text, other: Text) -> bool:
    """Return True if the shorter begins the longer, except for a marker in its last block or after it."""
    short, long = (one, other) if one.chars <= other.chars else (other, one)
    needed = max(_LEAST_BLOCKS, short.chars // _BLOCK - 1) * _BLOCK_BYTES
    return len(short.blocks) >= needed and long.blocks.startswith(short.blocks[:needed])


_WIDE: Final = 128  # members of an object that is a table of data
_JOINED: Final = 1024  # short texts measured together
_LONG: Final = 1024  # bytes of an object that may have been cut elsewhere
_NULL: Final = 4
_DEEPEST: Final = 8  # results inside one another that are looked into


class Spot(NamedTuple):
    """A place, and the result that it is part of."""

    place: Place
    scope: Scope | None


class Fields:
    """What an object has that shows the call that it is, or whose result it has."""

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
        held: Held | None = None,
        common: Common | None = None,
    ) -> None:
        self.form = PLAIN
        self._common = common
        self.unread = None if held is None else Unread(held)
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
        place, scope = self.paths.member(spot.place, key), fields.scope
        if key in RESULTS and (scope is None or scope.depth < _DEEPEST):
            return Spot(place, Scope(place, scope, beginning))
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
        others = {}
        for key, value in members.items():
            if key not in TELLING:
                others[key] = value
                continue
            before, member = self.size, self.member(spot, fields, key, "")
            self.values(member, (value,))
            self.after(member, fields, key, value, self.size - before)
        if others:
            self.values(spot, (others,))

    def text(self, spot: Spot, pieces: Iterable[str], written: Callable[[], int]) -> None:
        """Add a text that is given as it is written; its bytes are known after the last piece."""
        text = Text(*spot)
        comparison = None if self.unread is None else self.unread.comparison()
        for piece in pieces:
            text.feed(piece)
            if comparison is not None:
                comparison.feed(piece)
        size = written()
        self._add(spot, size)
        if self.unread is not None:
            self.unread.add(spot, comparison, text.chars, size)
        if spot.scope is not None:
            spot.scope.hold(text.head, size)
        if text.chars >= SHORTEST:
            text.end(size)
            self.copies.add(text)
        if self._common is not None and text.key:
            self._common.add(spot.place.path, text.key, size)

    def after(self, spot: Spot, fields: Fields, key: str, value: Any, written: int) -> None:
        """Keep a member's decoded value, or its fields, if it shows what the object is."""
        scope = spot.scope
        if scope is not None and scope is not fields.scope and (written > _NULL or value is not None):
            scope.bytes = written
            if not scope.head and written >= _LONG:
                scope.head = preview(value, HEAD)
            fields.results.append(scope)
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
            size = self.form.written(self.form.quote(value))
            if size >= SHORTEST_PASSAGE and self.unread is not None:
                self.unread.column((place, scope), (value,), size)
            if self._common is not None:
                self._common.add(place.path, hash(value), size)
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
            short = [text for text in texts if len(text) < SHORTEST]
            for text in texts:
                if len(text) >= SHORTEST:
                    quoted = self.form.quote(text)
                    self.text(spot, (quoted[1:-1],), functools.partial(self.form.written, quoted))
        for start in range(0, len(short), _JOINED):
            some = short[start : start + _JOINED]
            written = self.form.texts(some)
            self._add(spot, written)
            if self.unread is not None:
                self.unread.column(spot, some, written)
            if self._common is not None:
                for text in some:
                    self._common.add(spot.place.path, hash(text), self.form.texts((text,)))

    def _objects(self, spot: Spot, objects: Sequence[dict[str, Any]], queue: deque[tuple[Spot, Sequence[Any]]]) -> None:
        place, scope = spot
        names, first = list(chain.from_iterable(objects)), list(objects[0])
        keys = sum(self.form.texts(names[at : at + _JOINED]) for at in range(0, len(names), _JOINED))
        self.size += keys + 2 * len(objects) + (2 * len(names) - sum(map(bool, objects))) * (1 + self._gap)
        is_alike = names == first * len(objects)
        is_open = (scope is None or scope.depth < _DEEPEST) and (not is_alike or may_be_call(first))
        calls = [one for one in objects if may_be_call(one)] if is_open else ()
        if calls:
            objects = [_without_results(one) if may_be_call(one) else one for one in objects]
            first = list(objects[0])
        if len(objects) == 1 and len(first) <= _WIDE:
            for key, value in objects[0].items():
                member = self.paths.member(place, key)
                size = self._simple(member, scope, value)
                if size is None:
                    queue.append((Spot(member, scope), (value,)))
                else:
                    self.size += size
        else:
            columns: Mapping[str, Sequence[Any]]
            if is_alike and len(first) <= _WIDE:
                columns = dict(zip(first, zip(*map(dict.values, objects), strict=True), strict=False))
            else:
                columns = _columns(objects, place)
            for key, column in columns.items():
                queue.append((Spot(self.paths.member(place, key), scope), column))
        for one in calls:
            self._call(spot, one)

    def _call(self, spot: Spot, one: dict[str, Any]) -> None:
        """Add the results in an object that may be a tool's message or the record of a call."""
        fields = Fields(spot.scope)
        self.members(spot, fields, {key: value for key, value in one.items() if key in RESULTS})
        for key in TELLING.intersection(one) - RESULTS:
            fields.note(key, one[key])
        self.close(fields)


def _without_results(one: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in one.items() if key not in RESULTS}


def _columns(objects: Sequence[dict[str, Any]], place: Place) -> dict[str, list[Any]]:
    """Sort the members of unlike objects by key; the keys of tables and of wide objects are data (``ANY``)."""
    columns: dict[str, list[Any]] = defaultdict(list)
    for one in objects:
        is_table = len(one) > _WIDE
        for key, value in one.items():
            is_data = (is_table or len(columns) > _WIDE) and key not in columns and key not in place.members
            columns[ANY if is_data else key].append(value)
    return columns


def breakdown_text(
    data: bytes | bytearray | memoryview | str,
    tool_of: Callable[[str], str | None],
    is_tool: Callable[[str], bool] = bool,
    held: Held | None = None,
    shown: Callable[[str], str] = str,
) -> Breakdown | None:
    """Return the composition of a serialised payload, or None if it is not JSON.

    The payload may also be JSON that contains JSON in a string, a list of such arguments, or several JSON texts in
    a row. Cut-off JSON is analysed up to the cut. ``tool_of`` returns the tool of a call id. ``is_tool`` returns
    True if a name in the payload is the name of a tool. ``held`` has the contents of model requests. ``shown``
    returns a path as it may be shown; bytes of paths that become equal are added up. The analysis needs less than 1
    MB in addition to the payload. Other threads run meanwhile. No text makes it raise.
    """
    if isinstance(data, memoryview):
        data = data.cast("B")
    total = text_bytes(data) if isinstance(data, str) else len(data)
    return breakdown_chunks(chunks_of(data), total, tool_of, is_tool=is_tool, held=held, shown=shown)


def breakdown_chunks(  # noqa: PLR0913 - the parameters of breakdown_text, and the steps
    chunks: Iterator[str],
    total: int,
    tool_of: Callable[[str], str | None],
    *,
    is_tool: Callable[[str], bool] = bool,
    held: Held | None = None,
    shown: Callable[[str], str] = str,
    steps: int = STEPS,
) -> Breakdown | None:
    """Return the composition of a text in chunks. It has ``total`` bytes. Read it in at most so many ``steps``."""
    window = Window(chunks)
    if not window.peek():
        return None
    gap = 1 if '": ' in window.text[:_HEAD] else 0
    tally = Tally(tool_of, is_tool, gap, held)
    reason = Reader(window, tally, steps=steps).read(tally.root)
    read = window.read()
    if reason is not None and (not tally.paths.sizes(1) or (reason == MALFORMED and read * 2 <= total)):
        return None
    return _breakdown(tally, total, shown, whole=reason is None and read == total)


def breakdown_object(  # noqa: PLR0913, PLR0917 - the parameters of breakdown_text, and what it compares
    value: object,
    tool_of: Callable[[str], str | None],
    is_tool: Callable[[str], bool] = bool,
    held: Held | None = None,
    shown: Callable[[str], str] = str,
    common: Common | None = None,
) -> Breakdown | None:
    """Return the composition of a live object as compact UTF-8 JSON.

    If the object is large, analyse only its beginning (not ``exact``). A value without JSON counts as the name of its
    type. No code of the value runs. ``common`` gets the texts.
    """
    cut = []

    def chunks() -> Iterator[str]:
        try:
            yield from pieces(value, STEPS_OF_OBJECTS, is_read=True)
        except ours(RuntimeError, ValueError) as error:  # too large, or another thread has changed it
            cut.append(error)

    tally = Tally(tool_of, is_tool, held=held, common=common)
    window = Window(chunks())
    reason = Reader(window, tally, 0).read(tally.root)
    is_whole = reason is None and not cut
    return _breakdown(tally, window.read(), shown, whole=is_whole) if window.read() else None


def _breakdown(tally: Tally, total: int, shown: Callable[[str], str], *, whole: bool) -> Breakdown:
    paths = _summed(tally.paths.sizes(_MOST_PATHS), shown)
    largest_path = next((path for path in paths if path != OTHER), "")
    tools = tally.results.tools(tally.copies.groups)
    for one, other, size in tally.results.pairs():
        tally.copies.found[one.place.path, other.place.path] += size
    unread = tally.unread.totals(tally.results.scopes) if tally.unread is not None else None
    copies: dict[tuple[str, str], int] = defaultdict(int)
    for (path, other_path), size in tally.copies.found.items():
        copies[shown(path), shown(other_path)] += size
    duplicates = sorted(copies.items(), key=lambda item: -item[1])
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
        unread=unread._replace(paths=_summed(unread.paths, shown)) if unread is not None else None,
    )


def _summed(sizes: Mapping[str, int], shown: Callable[[str], str]) -> dict[str, int]:
    """Return the bytes by path as it is shown, largest first."""
    found: dict[str, int] = defaultdict(int)
    for path, size in sizes.items():
        found[shown(path)] += size
    return largest(found, _MOST_PATHS)
