"""A tool's contract: which keys its structured results have, and a word when that changes. Names of keys, no values."""

from __future__ import annotations

import threading
from typing import NamedTuple

from agent_otel._internal import fork
from agent_otel.core.payload_keys import always_seen, path
from agent_otel.measure.breakdown.paths import keys_of

#: Results of a tool from which its keys are learned before a change is told.
LEARNED_FROM = 8
#: Afterwards one of so many is looked at.
SAMPLED = 8
_MOST_TOOLS = 100


class Change(NamedTuple):
    """Keys that came, and keys that every result had and this one has not."""

    added: tuple[str, ...]
    removed: tuple[str, ...]


class _Contract:
    """What the results of one tool have had so far."""

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
        # What is new was seen once; what is gone, in all results before.
        return Change(tuple(sorted(set(map(path, added)))), tuple(sorted(set(map(always_seen, removed)))))


class Drift:
    """The contracts of a process, by the tool's name; those of the first hundred tools."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything and renew the lock; a forked child calls this."""
        self._lock = threading.Lock()
        self._contracts: dict[str, _Contract] = {}

    def note(self, tool: str, value: object) -> Change | None:
        """Look at a result, if it is this one's turn; the change, where there is one."""
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
