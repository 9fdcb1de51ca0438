"""Counts of what happened in this process, for runtimes that do not name the attempt of a step."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable

_REMEMBERED: Final = 10_000


class Recent:
    """The last keys that were noted, and how often each was."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: OrderedDict[Hashable, int] = OrderedDict()

    def count(self, key: Hashable) -> int:
        """Return how often a key was noted."""
        return self._counts.get(key, 0)

    def note(self, key: Hashable) -> int:
        """Note a key; return how often it was by now."""
        with self._lock:
            noted = self._counts[key] = self._counts.pop(key, 0) + 1
            if len(self._counts) > _REMEMBERED:
                self._counts.popitem(last=False)
            return noted

    def forget(self, key: Hashable) -> None:
        """Forget a key."""
        self._counts.pop(key, None)
