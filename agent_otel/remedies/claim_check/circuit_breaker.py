"""A circuit breaker: who fails again and again is not asked for a while."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Breaker:
    """Opens after so many failures in a row, and lets one try through each time so many seconds have passed.

    It has no lock, so that a fork cannot leave one behind: at worst two try at once.
    """

    def __init__(self, failures: int = 3, seconds: float = 10.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = failures
        self._seconds = seconds
        self._clock = clock
        self._failures = 0
        self._retry_at = 0.0

    def allows(self) -> bool:
        """Whether to try."""
        if self._failures < self._most:
            return True
        now = self._clock()
        if now < self._retry_at:
            return False
        self._retry_at = now + self._seconds
        return True

    def succeeded(self) -> None:
        """Close."""
        self._failures = 0

    def failed(self) -> None:
        """Count a failure, the last of which opens."""
        self._failures += 1
        self._retry_at = self._clock() + self._seconds
