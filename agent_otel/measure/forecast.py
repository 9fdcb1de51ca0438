"""When a growing payload meets its cap, from its sizes turn by turn. Integers in, integers out."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_TURNS: Final = 3  # before which nothing is said
_GROWTHS: Final = 5  # looked back on: old turns say little, and one odd turn of five does not move the median


def growth(sizes: Sequence[int]) -> int | None:
    """Bytes by which a payload grew in its last turn; 0 if it shrank, None in its first turn.

    ``sizes`` are those of one kind of payload in one execution, oldest first, in bytes.
    """
    return max(0, sizes[-1] - sizes[-2]) if len(sizes) > 1 else None


def turns_to_cap(sizes: Sequence[int], cap_bytes: int) -> int | None:
    """How many more turns a payload stays at or under its cap if it grows on as it usually did.

    What is usual is the median of the last five growths, and of an even number of them the lower of the two in the
    middle, so that a single leap among two is not a trend. Turns in which the payload shrank count with their sign:
    one that was compacted does not head for its cap. None before the third turn, and when the usual growth is not
    above 0; 0 if the next turn goes over the cap or the last one did.
    """
    if len(sizes) < _TURNS:
        return None
    recent = list(sizes[-_GROWTHS - 1 :])
    growths = sorted(after - before for before, after in pairwise(recent))
    usual = growths[(len(growths) - 1) // 2]
    return max(0, (cap_bytes - sizes[-1]) // usual) if usual > 0 else None
