"""The daemon thread that removes expired values from this process's stores; the first write starts it."""

from __future__ import annotations

import math
import threading
import weakref
from typing import Final, Protocol

from agent_otel._internal import errors, fork

SWEEP_SECONDS: Final = 300.0
"""Maximum seconds between two sweeps; with a short TTL a quarter of the shortest, at least one second."""

_SHORTEST_SECONDS: Final = 1.0
_PART_OF_TTL: Final = 4


class Sweepable(Protocol):
    """A store without expiry of its own."""

    def sweep_if_due(self, every: float) -> None:
        """Remove expired values, unless another process has done so within the last ``every`` seconds."""


class Sweeper:
    """The sweeper of all stores of a process: one thread, which a forked child starts at its first write."""

    def __init__(self) -> None:
        self._reset()
        fork.after_fork(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._stores: weakref.WeakSet[Sweepable] = weakref.WeakSet()
        self._every = math.inf
        self._changed = threading.Event()
        self._is_running = False

    def expect(self, store: Sweepable, ttl: float) -> None:
        """Sweep a store at least as often as a value of ``ttl`` seconds needs; never raises."""
        every = min(SWEEP_SECONDS, max(_SHORTEST_SECONDS, ttl / _PART_OF_TTL))
        if every < self._every or store not in self._stores:
            self._add(store, every)

    @errors.guarded("remedies.sweep")
    def _add(self, store: Sweepable, every: float) -> None:
        with self._lock:
            self._stores.add(store)
            self._every = min(every, self._every)
            if self._is_running:
                self._changed.set()
                return
            threading.Thread(target=self._run, name="agent_otel-sweeper", daemon=True).start()
            self._is_running = True

    def _run(self) -> None:
        while True:
            self._changed.clear()
            self._sweep()
            self._changed.wait(self._every)

    def _sweep(self) -> None:
        with self._lock:
            stores = list(self._stores)
        for store in stores:
            _sweep(store, self._every)


@errors.guarded("remedies.sweep")
def _sweep(store: Sweepable, every: float) -> None:
    store.sweep_if_due(every)


#: The sweeper of this process.
sweeper = Sweeper()
