"""The protocol of stores, their errors, the parts that several stores share, and the store in memory."""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import secrets
import struct
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from agent_otel._internal import errors, fork
from agent_otel._internal.installing import installed_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class StoreError(Exception):
    """A failed operation: the store is down, full, refuses, or is not installed."""


class NotFoundError(StoreError, LookupError):
    """A missing value: nothing is stored under the key, it has expired, or the reader is not its owner."""


class TooLargeError(StoreError):
    """A value above the store's maximum size; the store is healthy otherwise."""


def group_of(key: str) -> str:
    """Return the common prefix of one execution's keys: all but the node and the call."""
    return key.rsplit("/", 2)[0]


@runtime_checkable
class ClaimStore(Protocol):
    """A key-value store of bytes with a TTL in seconds, which every write renews.

    A reader gets the old value or the new one; bytes of a range beyond the value are left out. Deleting a missing key
    is no error. Every failure is a StoreError, a missing key a NotFoundError. All methods block.
    """

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key."""

    def get(self, key: str) -> bytes:
        """Return the value of a key."""

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Return a byte range of a value."""

    def delete(self, key: str) -> None:
        """Delete a key."""

    def delete_group(self, group: str) -> int:
        """Delete all keys of a group (see `group_of`); return the number of values."""


@contextlib.contextmanager
def translated(store: str, key: str = "") -> Iterator[None]:
    """Translate every exception into a StoreError without its text, which may hold a value.

    A missing file is a missing value where a key is given.
    """
    try:
        yield
    except StoreError:
        raise
    except errors.ours(Exception) as error:
        if key and isinstance(error, FileNotFoundError):
            raise NotFoundError(key) from None
        raise StoreError(f"{store}: {errors.described(error)}") from error


def said(error: BaseException) -> str:
    """Return the text of an error of ours; of any other its class and its place."""
    return str(error) if type(error) in (StoreError, NotFoundError, TooLargeError) else errors.described(error)


def library(module: str, extra: str) -> Any:
    """Import a third-party module on first use; StoreError with the install command when it is missing."""
    try:
        return importlib.import_module(module)
    except errors.ours(ImportError) as error:
        raise StoreError(f"{module} cannot be imported; {installed_with(extra)}") from error
    except errors.ours(Exception) as error:  # such as generated code that another version of its own library refuses
        raise StoreError(f"{module} cannot be imported: {errors.described(error)}") from error


# TTL header for stores without reliable expiry: a mark, and the expiry in seconds since 1970.
_FRAME: Final = struct.Struct(">4sd")
_MARK: Final = b"aot1"
FRAME_BYTES: Final = _FRAME.size


def frame(ttl: float) -> bytes:
    """Return the header of a value that expires ``ttl`` seconds from now."""
    return _FRAME.pack(_MARK, time.time() + ttl)


def unframe(framed: bytes) -> bytes:
    """Return a value without its header; NotFoundError when it has expired, StoreError for one of somebody else."""
    if framed[:4] != _MARK or len(framed) < FRAME_BYTES:
        raise StoreError("what is stored under this key was written by somebody else")
    if not time.time() < _FRAME.unpack_from(framed)[1]:
        raise NotFoundError("expired")
    return framed[FRAME_BYTES:]


_ENTRIES: Final = 16
#: Expired keys that one write removes at most, because the caller waits for it.
_MOST_EXPIRED: Final = 8


class IndexedStore(ABC):
    """A store that cannot list its keys: a group has several index entries, of which a process writes one."""

    name = ""

    def __init__(self) -> None:
        self._reset()
        fork.after_fork(self._reset)

    def _reset(self) -> None:
        self._listing = threading.Lock()
        self._number = secrets.randbelow(_ENTRIES)

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key."""
        entry = f"{group_of(key)}/index-{self._number}"
        with self._listing:  # the index is first, so that every stored key can be found
            listed, entry_ttl, expired = added(self._listed(entry), key, ttl)
            self._write(entry, listed, entry_ttl)
        for each in expired:
            self._remove(each)
        self._write(key, data, ttl)

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Return a byte range of a value."""
        return self.get(key)[start:end]

    def delete(self, key: str) -> None:
        """Delete a key."""
        self._remove(key)

    def delete_group(self, group: str) -> int:
        """Delete all keys of a group; return the number of values."""
        entries = [f"{group}/index-{number}" for number in range(_ENTRIES)]
        removed = 0
        for key, expires_at in {key: end for entry in entries for key, end in self._listed(entry).items()}.items():
            removed += self._remove(key, expires_at)
        for entry in entries:
            self._remove(entry)
        return removed

    def _listed(self, entry: str) -> dict[str, float]:
        """Return the keys of an index entry, with their expiry in seconds since 1970, including expired keys."""
        with contextlib.suppress(NotFoundError), translated(self.name):
            listed: dict[str, float] = json.loads(self._entry(entry))
            return listed
        return {}

    @abstractmethod
    def get(self, key: str) -> bytes:
        """Return the value of a key."""

    @abstractmethod
    def _entry(self, key: str) -> bytes:
        """Return an index entry, even an expired one: the store may still hold the listed values."""

    @abstractmethod
    def _write(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes."""

    @abstractmethod
    def _remove(self, key: str, expires_at: float = 0.0) -> bool:
        """Delete a key; return whether it was a value, which expires at this time by the index."""


def added(listed: dict[str, float], key: str, ttl: float) -> tuple[bytes, float, list[str]]:
    """Add a key to an index entry; return the entry, its TTL in seconds, and expired keys to delete."""
    now = time.time()
    keys = {**listed, key: now + ttl}
    expired = [each for each, end in keys.items() if end <= now and each != key][:_MOST_EXPIRED]
    for each in expired:
        del keys[each]
    return json.dumps(keys, separators=(",", ":")).encode(), max(keys.values()) - now, expired


SWEEP_SECONDS: Final = 300.0
"""Maximum seconds between two sweeps; with a short TTL a quarter of the shortest, at least one second."""

_SHORTEST_SECONDS: Final = 1.0
_PART_OF_TTL: Final = 4


class Sweeper:
    """The sweeper of all stores without expiry of a process, in one thread; a child starts its own at a write."""

    def __init__(self) -> None:
        self._reset()
        fork.after_fork(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._stores: weakref.WeakSet[Any] = weakref.WeakSet()
        self._every = math.inf
        self._changed = threading.Event()
        self._is_running = False

    def expect(self, store: Any, ttl: float) -> None:
        """Sweep a store at least as often as a value of ``ttl`` seconds needs; never raises."""
        every = min(SWEEP_SECONDS, max(_SHORTEST_SECONDS, ttl / _PART_OF_TTL))
        if every < self._every or store not in self._stores:
            self._add(store, every)

    @errors.guarded("remedies.sweep")
    def _add(self, store: Any, every: float) -> None:
        with self._lock:
            self._stores.add(store)
            self._every = min(every, self._every)
            if self._is_running:
                self._changed.set()
                return
            threading.Thread(target=self._run, name="agent_otel-sweeper", daemon=True).start()
            self._is_running = True

    def _run(self) -> None:
        """Sweep forever. A separate function sweeps, so that a waiting thread keeps no reference to a store."""
        while True:
            self._changed.clear()
            self._sweep()
            self._changed.wait(self._every)

    def _sweep(self) -> None:
        with self._lock:
            stores = list(self._stores)
        for store in stores:
            with errors.reported("remedies.sweep"):
                store.sweep_if_due(self._every)


sweeper = Sweeper()


class MemoryStore:
    """At most ``max_bytes`` of values in this process's memory; the least recently used value is dropped first."""

    def __init__(self, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes
        self._values: OrderedDict[str, tuple[bytes, float]] = OrderedDict()
        self._bytes = 0
        self._renew_lock()
        fork.after_fork(self._renew_lock)

    def _renew_lock(self) -> None:
        self._lock = threading.Lock()

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Store bytes under a key; TooLargeError for a value that is larger than the whole store."""
        if len(data) > self._max_bytes:
            raise TooLargeError(f"{len(data)} bytes are more than the {self._max_bytes} that this store holds")
        with self._lock:
            self._drop(key)
            self._values[key] = (data, time.time() + ttl)
            self._bytes += len(data)
            while self._bytes > self._max_bytes:
                self._drop(next(iter(self._values)))
        sweeper.expect(self, ttl)

    def get(self, key: str) -> bytes:
        """Return the value of a key."""
        return self._found(key)

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Return a byte range of a value."""
        return self._found(key)[start:end]

    def delete(self, key: str) -> None:
        """Delete a key."""
        with self._lock:
            self._drop(key)

    def delete_group(self, group: str) -> int:
        """Delete all keys of a group; return the number of values."""
        return self._drop_all(lambda key: group_of(key) == group)

    def sweep_if_due(self, _: float) -> None:
        """Remove expired values."""
        now = time.time()
        self._drop_all(lambda key: self._values[key][1] <= now)

    def _found(self, key: str) -> bytes:
        with self._lock:
            data, expires_at = self._values.get(key, (b"", 0.0))
            if not time.time() < expires_at:
                self._drop(key)
                raise NotFoundError(key)
            self._values.move_to_end(key)
            return data

    def _drop_all(self, is_meant: Callable[[str], bool]) -> int:
        with self._lock:
            keys = [key for key in self._values if is_meant(key)]
            for key in keys:
                self._drop(key)
        return len(keys)

    def _drop(self, key: str) -> None:
        self._bytes -= len(self._values.pop(key, (b"", 0.0))[0])
