"""A circuit breaker: after repeated failures no attempt is made for some seconds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Breaker:
    """Circuit breaker that opens after ``failures`` failures in a row and then allows one attempt per ``seconds``.

    It has no lock, which a fork could leave locked: in the worst case two threads try at the same time.
    """

    def __init__(self, failures: int = 3, seconds: float = 10.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = failures
        self._seconds = seconds
        self._clock = clock
        self._failures = 0
        self._retry_at = 0.0

    def allows(self) -> bool:
        """Return True when an attempt is allowed."""
        if self._failures < self._most:
            return True
        now = self._clock()
        if now < self._retry_at:
            return False
        self._retry_at = now + self._seconds
        return True

    def succeeded(self) -> None:
        """Close the circuit."""
        self._failures = 0

    def failed(self) -> None:
        """Count a failure; the last allowed one opens the circuit."""
        self._failures += 1
        self._retry_at = self._clock() + self._seconds
