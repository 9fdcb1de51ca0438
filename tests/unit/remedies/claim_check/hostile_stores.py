"""Stores on bad days: they hang, fail, lie and forget."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from agent_otel.remedies.claim_check.stores.base import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable


class Hanging(MemoryStore):
    """Does nothing until ``go`` is set. ``entered`` counts who waits or has waited, ``begun`` is set by the first."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.entered = 0
        self.begun = threading.Event()

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Hang, then store."""
        self.entered += 1
        self.begun.set()
        self.go.wait()
        super().put(key, data, ttl)

    def get(self, key: str) -> bytes:
        """Hang, then read."""
        self.go.wait()
        return super().get(key)


class Failing(MemoryStore):
    """Raises whatever it is told to, and works otherwise."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__()
        self.error = error
        self.asked = 0

    def put(self, key: str, data: bytes, ttl: float) -> None:
        """Fail, or store."""
        self.asked += 1
        if self.error is not None:
            raise self.error
        super().put(key, data, ttl)

    def get(self, key: str) -> bytes:
        """Fail, or read."""
        return self.get_range(key, 0, 2**40)

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Fail, or read a part."""
        if self.error is not None:
            raise self.error
        return super().get_range(key, start, end)


class Lying(MemoryStore):
    """Gives out something else than was stored."""

    def __init__(self, lie: Callable[[Lying, str, bytes], bytes]) -> None:
        super().__init__()
        self._lie = lie
        self.honest = True

    def get(self, key: str) -> bytes:
        """Read, and lie."""
        return self.get_range(key, 0, 2**40)

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Read, lie and cut."""
        stored = super().get(key)
        return (stored if self.honest else self._lie(self, key, stored))[start:end]

    def really(self, key: str) -> bytes:
        """What is stored under a key."""
        return super().get(key)
