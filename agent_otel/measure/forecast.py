"""Forecast the turns until a growing payload meets its cap, from its size in each turn, in bytes."""

from __future__ import annotations

from operator import sub
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_FEWEST: Final = 3
#: Sizes that a forecast reads: two bursts of an agent that has one every fifth turn, and twice six of two payloads.
LOOK_BACK: Final = 12
_RECENT: Final = 5  # growths in the average: older ones predict little about a growth that gathers pace
_GROWTHS_PER_FALL: Final = 8  # sizes that have nothing to do with each other fall at every second turn
_MOST_TURNS: Final = 100_000
_INTERLEAVED: Final = 8  # sizes, four of each of two payloads
# Number of sizes -> the largest growth ÷ the smallest, times four, up to which so few sizes are a trend: three
# independent sizes rise one after the other in one of 6 cases, four in one of 24, five in one of 120.
_ALIKE: Final = {3: 5, 4: 8, 5: 16}


def turns_to_cap(sizes: Sequence[int], cap_bytes: int) -> int | None:
    """Return how many more turns a payload stays at or under its cap.

    Each turn brings the average of the last five growths, and one of them may be a burst, as large as the largest
    growth of the last eleven: the result is the smaller of the two forecasts. None before the third turn, and for sizes
    that do not accumulate: they stay the same, have nothing to do with each other, or are those of a payload that is
    compacted again and again. 0 if the next turn goes over the cap or the last one did.
    """
    growths = _growths(sizes[-LOOK_BACK:] if len(sizes) > LOOK_BACK else sizes)
    if not growths:
        return None
    left = cap_bytes - sizes[-1]
    if left <= 0:
        left = with_burst = 0
    else:
        with_burst = left // max(growths) + 1
    last = growths[-_RECENT:]
    brought = sum(last)
    return min(with_burst, left * len(last) // brought) if brought > 0 else with_burst


def _growths(sizes: Sequence[int]) -> list[int]:
    """Return the growths of a payload that accumulates, those of its rises where it was compacted; else none."""
    count = len(sizes)
    if count < _FEWEST or (sizes[-1] - min(sizes)) * 16 <= sizes[-1]:
        return []
    slack = -(sizes[-1] // 64)  # an id or a time in it may differ in length
    growths = list(map(sub, sizes[1:], sizes))
    least = min(growths)
    if least >= slack:
        alike = _ALIKE.get(count)
        return growths if alike is None or max(growths) * 4 <= least * alike else []
    falls = len([by for by in growths if by < slack])
    if falls * _GROWTHS_PER_FALL >= count:
        # A state and another payload may alternate in the same activity.
        both = zip(sizes, sizes[2:], strict=False)
        interleaved = count >= _INTERLEAVED and all(after - before >= slack for before, after in both)
        return _growths(sizes[(count - 1) % 2 :: 2]) if interleaved else []
    # It was compacted, and may be again when it is as large as it was then.
    return [by for by in growths if by > 0] if sizes[-1] == max(sizes) else []


def turns_until_full(left: float, growth: float, more: float) -> int | None:
    """Return how many further turns fit into ``left``. The last one brought ``growth``, and each brings ``more``.

    None if a hundred thousand fit.
    """
    for turns in range(_MOST_TURNS):
        growth += more
        left -= max(growth, 1.0)
        if left < 0:
            return turns
    return None
