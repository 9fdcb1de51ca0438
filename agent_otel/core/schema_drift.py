"""Detection of changes in the keys of a tool's structured results. Only names of keys are kept, never values."""

from __future__ import annotations

import threading
from typing import NamedTuple

from agent_otel._internal import fork
from agent_otel.core.payload_keys import always_seen, path
from agent_otel.measure.breakdown.paths import keys_of

#: Results of a tool from which its keys are learned; a change is reported only after them.
LEARNED_FROM = 8
#: After these, one of so many results is compared.
SAMPLED = 8
_MOST_TOOLS = 100


class Change(NamedTuple):
    """Keys that no earlier result had, and keys that all earlier results had and this one lacks."""

    added: tuple[str, ...]
    removed: tuple[str, ...]


class _Contract:
    """The keys of a tool's results so far: those of all results, and those of any."""

    __slots__ = ("always", "ever", "seen")

    def __init__(self, keys: frozenset[str]) -> None:
        self.ever = self.always = keys
        self.seen = 1

    def compare(self, keys: frozenset[str]) -> Change | None:
        added, removed = keys - self.ever, self.always - keys
        self.ever |= keys
        self.always &= keys
        if self.seen <= LEARNED_FROM or not (added or removed):
            return None
        # An added key occurred once and may be data; a removed key occurred in all earlier results.
        return Change(tuple(sorted(set(map(path, added)))), tuple(sorted(set(map(always_seen, removed)))))


class Drift:
    """The contracts of the first hundred tools, by name."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Drop all contracts and renew the lock, for a forked child."""
        self._lock = threading.Lock()
        self._contracts: dict[str, _Contract] = {}

    def note(self, tool: str, value: object) -> Change | None:
        """Compare a result with the tool's earlier ones, if it is sampled; return the change, or None."""
        with self._lock:
            contract = self._contracts.get(tool)
            if contract is None:
                if len(self._contracts) < _MOST_TOOLS:
                    self._contracts[tool] = _Contract(keys_of(value))
                return None
            contract.seen += 1
            if contract.seen > LEARNED_FROM and contract.seen % SAMPLED:
                return None
            return contract.compare(keys_of(value))


drift = Drift()
fork.after_fork(drift.reset)
