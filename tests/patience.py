"""Deadlines that a busy machine does not miss: their seconds pass more slowly where processes wait for a processor."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

_LOAD = Path("/proc/loadavg")


class Deadline:
    """Seconds of work that a wait may take on an idle machine.

    While more processes are ready to run than there are processors, each gets a share of one, and the deadline counts
    that share of the time only. Read it at least every few seconds: the load of the last interval counts for all of it.
    """

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._read_at = time.monotonic()

    def left(self) -> float:
        """Return the seconds that are left; 0 or less when the deadline has passed."""
        now = time.monotonic()
        self._left -= (now - self._read_at) / _processes_per_processor()
        self._read_at = now
        return self._left

    def has_passed(self) -> bool:
        """Return whether no time is left."""
        return self.left() <= 0


def communicate(child: subprocess.Popen[str], seconds: float) -> tuple[str, str]:
    """Wait for a child's end and return its output; raise TimeoutExpired after ``seconds`` of work."""
    deadline = Deadline(seconds)
    while True:
        try:
            return child.communicate(timeout=min(1, max(0, deadline.left())))
        except subprocess.TimeoutExpired:  # noqa: PERF203 - once a second
            if deadline.has_passed():
                raise


def wait(child: subprocess.Popen[str], seconds: float) -> int:
    """Wait for a child's end and return its status; raise TimeoutExpired after ``seconds`` of work."""
    deadline = Deadline(seconds)
    while True:
        try:
            return child.wait(timeout=min(1, max(0, deadline.left())))
        except subprocess.TimeoutExpired:  # noqa: PERF203 - once a second
            if deadline.has_passed():
                raise


def _processes_per_processor() -> float:
    """Return how many processes share a processor: over the last minute or right now, the larger of the two."""
    running = int(_LOAD.read_text().split()[3].partition("/")[0]) if _LOAD.exists() else 0
    return max(1.0, max(os.getloadavg()[0], running) / (os.cpu_count() or 1))
