"""A store in this process's memory: for tests, and for programs that read in the process that wrote."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from agent_otel._internal import fork
from agent_otel.remedies.claim_check.stores.base import Head, NotFoundError, TooLargeError, group_of
from agent_otel.remedies.claim_check.stores.sweeper import sweeper


class MemoryStore:
    """Values of at most ``max_bytes`` in total; the least recently used value is dropped first."""

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
        return self._find(key)[0]

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Return a byte range of a value."""
        return self._find(key)[0][start:end]

    def head(self, key: str) -> Head:
        """Return the size and the expiry of a value."""
        data, expires_at = self._find(key)
        return Head(len(data), expires_at)

    def delete(self, key: str) -> None:
        """Delete a key."""
        with self._lock:
            self._drop(key)

    def delete_group(self, group: str) -> int:
        """Delete all keys of a group; return the number of values."""
        with self._lock:
            keys = [key for key in self._values if group_of(key) == group]
            for key in keys:
                self._drop(key)
        return len(keys)

    def sweep_if_due(self, _: float) -> None:
        """Remove expired values."""
        now = time.time()
        with self._lock:
            for key in [key for key, (_, expires_at) in self._values.items() if expires_at <= now]:
                self._drop(key)

    def _find(self, key: str) -> tuple[bytes, float]:
        with self._lock:
            found = self._values.get(key)
            if found is not None and time.time() < found[1]:
                self._values.move_to_end(key)
                return found
            self._drop(key)
        raise NotFoundError(key)

    def _drop(self, key: str) -> None:
        data, _ = self._values.pop(key, (b"", 0.0))
        self._bytes -= len(data)
