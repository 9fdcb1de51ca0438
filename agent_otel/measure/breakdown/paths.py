"""Positions in a payload: paths such as ``messages[].content``, few enough to be looked at."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from agent_otel.measure.key_structure import ANY, OTHER, fold

SHORTEST: Final = 256
"""Characters from which a text is looked for in other places."""
HEAD: Final = 128
"""Characters that are kept of its beginning."""

_MOST_PLACES: Final = 1024
_MOST_MEMBERS: Final = 64  # distinct keys in one place; with more it is a table of data
_DEPTH: Final = 32


@dataclass(slots=True, eq=False)
class Place:
    """A path, and the bytes of the leaves there."""

    path: str
    depth: int
    bytes: int = 0
    members: dict[str, Place] = field(default_factory=dict)
    element: Place | None = None


class Paths:
    """The places of one payload: at most 1,024, the rest is `OTHER`."""

    def __init__(self) -> None:
        self.root = Place("", 0)
        self._other = Place(OTHER, 0)
        self._places = [self._other, self.root]

    def member(self, place: Place, key: str) -> Place:
        """Return the place of an object's member. Keys that are data share one place."""
        found = place.members.get(key)
        if found is None:
            name = fold(key) if len(place.members) < _MOST_MEMBERS else ANY
            found = place.members.get(name)
            if found is None:
                found = place.members[name] = self._new(place, f"{place.path}.{name}" if place.path else name)
        return found

    def element(self, place: Place) -> Place:
        """Return the place of an array's elements."""
        if place.element is None:
            place.element = self._new(place, f"{place.path}[]")
        return place.element

    def sizes(self, most: int) -> dict[str, int]:
        """Bytes by path, largest first; the smallest are added up where there are more than so many."""
        found: dict[str, int] = defaultdict(int)
        for place in self._places:
            found[place.path or "$"] += place.bytes
        return largest({path: size for path, size in found.items() if size}, most)

    def _new(self, place: Place, path: str) -> Place:
        if place is self._other or len(self._places) >= _MOST_PLACES:
            return self._other
        if place.depth >= _DEPTH:
            return place
        self._places.append(Place(path, place.depth + 1))
        return self._places[-1]


def largest(sizes: dict[str, int], most: int) -> dict[str, int]:
    """Return the sizes in descending order; the rest is added up where there are more than so many."""
    ordered = sorted(sizes.items(), key=lambda item: -item[1])
    kept = dict(ordered[:most] if len(ordered) <= most else ordered[: most - 1])
    rest = sum(size for _, size in ordered[len(kept) :])
    if rest:
        kept[OTHER] = kept.get(OTHER, 0) + rest
    return kept


# Values of a payload that are results of tools, or parts of one.


@dataclass(slots=True, eq=False)
class Scope:
    """A value that is a tool's result if ``call`` is set, which may come only after the value has been read."""

    place: Place
    parent: Scope | None
    head: str = ""
    bytes: int = 0
    call: str | None = None
    name: str | None = None
    certain: bool = False  # whether the call id is one without doubt
    text_bytes: int = 0  # of its longest text, as written in the payload
    matched: int = 0  # bytes in it that occur elsewhere too
    depth: int = field(init=False)

    def __post_init__(self) -> None:
        self.depth = 0 if self.parent is None else self.parent.depth + 1

    def owner(self) -> Scope | None:
        """Return the outermost result around this one: the result of an agent may hold results of tools."""
        found: Scope | None = None
        scope: Scope | None = self
        while scope is not None:
            found = found if scope.call is None else scope
            scope = scope.parent
        return found

    def hold(self, head: str, written: int) -> None:
        """Remember the longest text that is part of it."""
        if written > self.text_bytes:
            self.text_bytes, self.head = written, head
