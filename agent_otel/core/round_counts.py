"""Tools that return exactly a round number of rows or lines again and again: ``rows[:50]``, or ``head -n 100``.

Of each tool the process keeps four integers. A number that the arguments contain is the caller's own limit.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from agent_otel._internal import fork
from agent_otel._internal.object_kinds import fields
from agent_otel.measure.size import block_text
from agent_otel.measure.truncation.paging import SELF_DESCRIBING, named

#: Results of the same number after which a tool is suspected: with a total that is above the number, and without.
BELOW_TOTAL: Final = 3
WITHOUT_TOTAL: Final = 4
#: Results of a tool that are all counted; after them, one of so many.
ALL_OF: Final = 16
SAMPLED: Final = 8
#: A list of ten or twenty is often all that there is.
FEWEST: Final = 50
_FEWEST_BELOW_TOTAL: Final = 10
#: Characters of a text whose lines are counted.
LONGEST: Final = 64 * 1024
_MOST_TOOLS: Final = 100
_MOST_KEYS: Final = 16


class RoundCounts:
    """The numbers of items of the first hundred tools: the largest, results that had it, the last one's digest."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Drop all numbers and renew the lock, for a forked child."""
        self._lock = threading.Lock()
        self.tools: dict[str, tuple[int, int, int, int]] = {}
        self.counted = 0

    def __len__(self) -> int:
        return len(self.tools)

    def note(self, tool: str, value: Any, arguments: Any, below_total: int, digest: str | None) -> bool:
        """Record a result; return True if the tool seems to cut each one at the same number of items.

        ``below_total`` is the number of items where a total is larger, -1 for a page, else 0. ``digest`` is the hash of
        the arguments: one that comes again proves nothing.
        """
        if below_total < 0:
            return False
        with self._lock:
            largest, times, last, seen = self.tools.get(tool, (0, 0, 0, 0))
            if seen == 0 and len(self.tools) >= _MOST_TOOLS:
                return False
            seen += 1
            if not below_total and seen > ALL_OF and seen % SAMPLED:
                self.tools[tool] = largest, times, last, seen
                return False
            self.counted += 1
            items = below_total or _items(value)
            if items > largest:
                largest, times, last = items, 0, 0
            this = hash((digest, type(value) is str and len(value)))
            if items == largest and (below_total or this != last):
                times, last = times + 1, this
            elif below_total:
                times = 0
            self.tools[tool] = largest, times, last, seen
        fewest, enough = (_FEWEST_BELOW_TOTAL, BELOW_TOTAL) if below_total else (FEWEST, WITHOUT_TOTAL)
        return (
            items == largest
            and times >= enough
            and items >= fewest
            # A number that programmers use as a limit: a multiple of 10 or 25, or a power of two.
            and not (items % 10 and items % 25 and items & (items - 1))
            and not _is_in(arguments, items)
        )


def _items(value: Any) -> int:
    """Return the number of lines of a text, or of items of a list, or of the only list of an object."""
    if type(value) is list and len(value) == 1:
        value = value[0] if type(value[0]) is str else block_text(value[0])
    if type(value) is str:
        return value.count("\n") + (value[-1:] != "\n") if len(value) <= LONGEST else 0
    if type(value) is list:
        return len(value)
    if type(value) is not dict or len(value) > _MOST_KEYS:
        return 0
    known = fields(value)
    if not known.keys().isdisjoint(SELF_DESCRIBING):
        return 0
    lists = [len(part) for part in known.values() if type(part) is list]
    return lists[0] if len(lists) == 1 else 0


def _is_in(arguments: Any, number: int) -> bool:
    """Return True if an argument is this number, or a list of so many."""
    for value in named(arguments).values():
        if type(value) is int and value == number:
            return True
        if type(value) is str and value == str(number):
            return True
        if type(value) is list and len(value) == number:
            return True
    return False


round_counts = RoundCounts()
fork.after_fork(round_counts.reset)
