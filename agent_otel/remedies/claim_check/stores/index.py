"""Index entries that list the keys of a group, for stores that cannot list their keys.

These stores have no common compare-and-set operation. So a group has several entries, and each process writes to one of
them, chosen at random: concurrent writers rarely share an entry.
"""

from __future__ import annotations

import json
import secrets
import time
from typing import Final, NamedTuple

from agent_otel._internal import fork
from agent_otel.remedies.claim_check.stores.base import group_of

_ENTRIES: Final = 16


#: Expired keys that one write removes at most, because the caller waits for it.
_MOST_EXPIRED: Final = 8


class Added(NamedTuple):
    """An entry, its TTL in seconds, which is that of its last key, and the expired keys to delete."""

    entry: bytes
    ttl: float
    expired: list[str]


class Index:
    """The index entries that this process writes."""

    def __init__(self) -> None:
        self._choose()
        fork.after_fork(self._choose)

    def _choose(self) -> None:
        self._number = secrets.randbelow(_ENTRIES)

    def entry_of(self, key: str) -> str:
        """Return the key of the entry in which this process lists ``key``."""
        return _entry(group_of(key), self._number)


def entries_of(group: str) -> list[str]:
    """Return the keys of all entries of a group, from all processes."""
    return [_entry(group, number) for number in range(_ENTRIES)]


def keys_in(entry: bytes) -> dict[str, float]:
    """Return the keys of an entry with their expiry in seconds since 1970, including expired keys."""
    keys: dict[str, float] = json.loads(entry)
    return keys


def added(listed: dict[str, float], key: str, ttl: float) -> Added:
    """Return an entry with ``key`` added and some expired keys removed."""
    now = time.time()
    keys = {**listed, key: now + ttl}
    expired = [each for each, end in keys.items() if end <= now and each != key][:_MOST_EXPIRED]
    for each in expired:
        del keys[each]
    return Added(json.dumps(keys, separators=(",", ":")).encode(), max(keys.values()) - now, expired)


def _entry(group: str, number: int) -> str:
    return f"{group}/index-{number}"
