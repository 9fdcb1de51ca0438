"""Selections of large results that a model pages through, so that not each page reads and searches the whole."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from agent_otel._internal import fork
from agent_otel._internal.named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

MOST_BYTES: Final = 32 * 1024 * 1024
KEEP_SECONDS: Final = 120.0


class _Kept(NamedTuple):
    data: bytes
    until: float


class Selections:
    """Bytes that are kept for ``KEEP_SECONDS`` after each use, ``MOST_BYTES`` at most; the oldest use goes first.

    What is over is dropped with the next use of any. A forked child begins with none.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._reset()
        fork.after_fork(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable) -> bytes | None:
        """Return what is kept under a key."""
        with self._lock:
            self._drop(0)
            kept = self._kept.get(key)
            return None if kept is None else self._keep(key, kept.data)

    def keep(self, key: Hashable, data: bytes) -> None:
        """Keep bytes, ``MOST_BYTES`` at most."""
        with self._lock:
            self._forget(key)
            self._drop(len(data))
            self._keep(key, data)

    def _keep(self, key: Hashable, data: bytes) -> bytes:
        self._forget(key)
        self._kept[key] = _Kept(data, self._clock() + KEEP_SECONDS)
        self._bytes += len(data)
        return data

    def _forget(self, key: Hashable) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= len(kept.data)

    def _drop(self, room_bytes: int) -> None:
        """Drop what is over, and the oldest until there is room."""
        now = self._clock()
        while self._kept:
            key, oldest = next(iter(self._kept.items()))
            if now < oldest.until and self._bytes + room_bytes <= MOST_BYTES:
                return
            self._forget(key)
