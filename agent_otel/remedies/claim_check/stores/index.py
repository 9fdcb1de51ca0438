"""Entries that list the keys of a group, for stores that cannot list their keys themselves.

Such a store has no common way to change an entry only if nobody else has meanwhile. So a group has several entries, and
each process writes to one of them, chosen at random: two that write at the same moment rarely write to the same.
"""

from __future__ import annotations

import json
import secrets
import time
from typing import Final, NamedTuple

from agent_otel._internal import fork
from agent_otel.remedies.claim_check.stores.base import group_of

_ENTRIES: Final = 16


#: So many are dropped with each write: the caller waits for it.
_MOST_EXPIRED: Final = 8


class Added(NamedTuple):
    """An entry, its own TTL in seconds, which is that of its last key, and the keys to delete that it lists no more."""

    entry: bytes
    ttl: float
    expired: list[str]


class Index:
    """The part of an index that this process writes."""

    def __init__(self) -> None:
        self._choose()
        fork.after_fork(self._choose)

    def _choose(self) -> None:
        self._number = secrets.randbelow(_ENTRIES)

    def entry_of(self, key: str) -> str:
        """Return the key of the entry in which this process lists a key."""
        return _entry(group_of(key), self._number)


def entries_of(group: str) -> list[str]:
    """Return the keys of all entries of a group, whichever processes write them."""
    return [_entry(group, number) for number in range(_ENTRIES)]


def keys_in(entry: bytes) -> dict[str, float]:
    """Return the keys that an entry lists, with their ends in seconds since 1970; expired ones may be among them."""
    keys: dict[str, float] = json.loads(entry)
    return keys


def added(listed: dict[str, float], key: str, ttl: float) -> Added:
    """Return an entry with one more key than are listed, and without some that have expired."""
    now = time.time()
    keys = {**listed, key: now + ttl}
    expired = [each for each, end in keys.items() if end <= now and each != key][:_MOST_EXPIRED]
    for each in expired:
        del keys[each]
    return Added(json.dumps(keys, separators=(",", ":")).encode(), max(keys.values()) - now, expired)


def _entry(group: str, number: int) -> str:
    return f"{group}/index-{number}"
