"""Detection of changes in the keys of a tool's results. Only names of keys are kept, never values."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel import semconv
from agent_otel._internal import fork
from agent_otel.core.payload_keys import always_seen, path
from agent_otel.measure.key_structure import MOST_KEYS, key_structure

if TYPE_CHECKING:
    from agent_otel.measure.key_structure import KeyStructure

#: Results with an object from which its keys are learned; a change is reported only after them.
LEARNED_FROM: Final = 8
#: Results of a tool that are all compared; after them, one of so many.
ALL_OF: Final = 16
SAMPLED: Final = 8
_MOST_TOOLS: Final = 100
_MOST_OBJECTS: Final = 64
#: Keys of the result of a call that has failed, which is not compared with the others.
_FAILURES: Final = frozenset({"error", "errors"})


class Change(NamedTuple):
    """Keys that no earlier result had, and keys that all earlier results had and this one lacks."""

    added: tuple[str, ...]
    removed: tuple[str, ...]

    def attributes(self) -> dict[str, tuple[str, ...]]:
        """Return the attributes of the event on the tool's span."""
        return {semconv.KEYS_ADDED: self.added, semconv.KEYS_REMOVED: self.removed}


class _Keys:
    """The keys of the objects at one path: those of all results, and those of any."""

    __slots__ = ("always", "ever", "seen")

    def __init__(self, keys: frozenset[str]) -> None:
        self.ever = self.always = keys
        self.seen = 1

    def compare(self, keys: frozenset[str], *, is_whole: bool) -> tuple[frozenset[str], frozenset[str]]:
        """Return the keys added and removed, none while the object's keys are learned.

        In an object whose keys have differed before, a further key is data or optional. A key that is reported as
        added is expected from then on.
        """
        self.seen += 1
        added, removed = keys - self.ever, self.always - keys if is_whole else frozenset()
        is_learned, is_fixed = self.seen > LEARNED_FROM, self.ever == self.always
        added_now = added if is_learned and is_fixed else frozenset()
        self.always = self.always & keys | added_now if is_whole else self.always | added_now
        if len(self.ever) + len(added) <= MOST_KEYS:
            self.ever |= added
        return added_now, removed if is_learned else frozenset()


class _Contract:
    """The keys of a tool's results so far, by the path of their objects."""

    __slots__ = ("objects", "seen")

    def __init__(self) -> None:
        self.objects: dict[tuple[str, bool], _Keys] = {}
        self.seen = 0

    def compare(self, found: KeyStructure) -> Change | None:
        added: set[str] = set()
        removed: set[str] = set()
        whole = self.objects.get(("", True))
        if whole is not None and not _FAILURES.isdisjoint(found.get(("", True), frozenset()) - whole.ever):
            return None
        for place, keys in found.items():
            known, at = self.objects.get(place), place[0]
            if known is not None:
                new, gone = known.compare(keys, is_whole=place[1])
            else:
                new, gone = self._appeared(place, keys), frozenset[str]()
            added.update(f"{at}.{key}" if at else key for key in new)
            removed.update(f"{at}.{key}" if at else key for key in gone)
        if not (added or removed):
            return None
        # An added key occurred once and may be data; a removed key occurred in all earlier results.
        return Change(tuple(sorted(set(map(path, added)))), tuple(sorted(set(map(always_seen, removed)))))

    def _appeared(self, place: tuple[str, bool], keys: frozenset[str]) -> frozenset[str]:
        """Add an object; return its keys where a list of objects has become an object, or the other way round."""
        at, is_whole = place
        other = self.objects.get((at.removesuffix("[]") if at.endswith("[]") else f"{at}[]", is_whole))
        if len(self.objects) < _MOST_OBJECTS:
            self.objects[place] = _Keys(keys)
        return keys if other is not None and other.seen > LEARNED_FROM else frozenset()


class Drift:
    """The contracts of the first hundred tools, by name."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Drop all contracts and renew the lock, for a forked child."""
        self._lock = threading.Lock()
        self._contracts: dict[str, _Contract] = {}

    def note(self, tool: str, value: Any, structured: Any = None) -> Change | None:
        """Compare a result with the tool's earlier ones, if it is sampled; return the change, or None.

        ``structured`` is the structured copy of a result that is text.
        """
        with self._lock:
            contract = self._contracts.get(tool)
            if contract is None:
                if len(self._contracts) >= _MOST_TOOLS:
                    return None
                contract = self._contracts[tool] = _Contract()
            contract.seen += 1
            if contract.seen > ALL_OF and contract.seen % SAMPLED:
                return None
        found = key_structure(value, structured)
        with self._lock:
            return contract.compare(found) if found else None

    def keys(self, tool: str) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
        """Return the keys of a tool's results by path: those of all results, and those of any."""
        with self._lock:
            contract = self._contracts.get(tool)
            return {} if contract is None else {at: (one.always, one.ever) for (at, _), one in contract.objects.items()}


drift = Drift()
fork.after_fork(drift.reset)
