"""Live objects, added up without running any of their code."""

from __future__ import annotations

from itertools import chain, islice
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, Final

from agent_otel.measure import object_kinds
from agent_otel.measure.breakdown.accumulator import Spot, Tally
from agent_otel.measure.breakdown.duplicates import Fingerprint
from agent_otel.measure.breakdown.json_window import WINDOW
from agent_otel.measure.json_text import quoted_bytes
from agent_otel.measure.object_kinds import shape_of
from agent_otel.measure.size import json_size

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Iterable, Sequence

    from agent_otel.measure.breakdown.unread import Unread

NODE_BUDGET: Final = 50_000
"""Steps in a live object, at most 20 ms at 0.4 µs each: a value is one, and what costs more is more of them."""

_COLUMN: Final = 12  # steps for values of one place that are looked at together
_MEMBER: Final = 4  # steps for a member of an object that is alone in its place
_STEP_CHARACTERS: Final = 256  # of a text, for one step
_STEP_BITS: Final = 64  # of an integer
_BITS_PER_DIGIT: Final = 3.3219

_PLAIN_INT: Final = 10**18
_NONE: Final = type(None)
_NOTHING: Final = object
_CONSTANTS: Final = {True: "true", False: "false", None: "null"}


class LiveTally(Tally):
    """Adds up a live object: values of any class, seen no more often than the budget allows."""

    def __init__(
        self, tool_of: Callable[[str], str | None], is_tool: Callable[[str], bool], unread: Unread | None = None
    ) -> None:
        super().__init__(tool_of, is_tool, unread=unread)
        self._left = NODE_BUDGET
        self._room = 2 * NODE_BUDGET  # keys, and elements that have to be copied: the same may be seen many times

    def _by_kind(self, values: Sequence[Any]) -> Iterable[tuple[type, Sequence[Any]]]:
        self._take(_COLUMN)
        if len(values) > self._left:
            values = values[: self._left]
            self.partly()
        self._left -= len(values)
        kinds: dict[type, list[Any]] = {}
        for value in values:
            cls = type(value)
            if cls is str or cls is int or cls is float or cls is bool or cls is _NONE or cls is list:
                kind, plain = cls, value
            else:
                kind, plain = self._plain(cls, value)
                if kind is _NOTHING:
                    continue
            if kind in kinds:
                kinds[kind].append(plain)
            else:
                kinds[kind] = [plain]
        return kinds.items()

    def _plain(self, cls: type, value: Any) -> tuple[type, Any]:
        """Return the value as one of json's own classes, or the length of binary data, and that class."""
        if cls is str or cls is int or cls is float or cls is bool or cls is _NONE or cls is list:
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
            return list, self._elements(shape, value)
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
            plain[key if type(key) is str else _key(key, len(plain))] = member
        self._room = max(0, self._room)
        if len(plain) < count:
            self.partly()
        return plain

    def _elements(self, shape: object_kinds.Shape, value: Any) -> list[Any]:
        found = object_kinds.elements(shape, value, self._room)
        self._room -= len(found)
        if len(found) < shape.length(value):
            self.partly()
        return found

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

    def _simple(self, value: Any) -> int | None:
        return super()._simple(value) if type(value) is str else None

    def _fingerprint(self, text: str) -> tuple[Fingerprint, int]:
        pieces = (text[start : start + WINDOW] for start in range(0, len(text), WINDOW))
        fingerprint = Fingerprint(pieces)
        fingerprint.head = encode_basestring(fingerprint.head)[1:-1]
        return fingerprint, quoted_bytes(text)


def _key(key: Any, position: int) -> str:
    """Return a key as json writes it; what has none there is a number, as data are."""
    if type(key) is bool or key is None:
        return _CONSTANTS[key]
    return repr(key) if type(key) is int and -_PLAIN_INT < key < _PLAIN_INT else str(position)
