"""Views of stored results over the turns of a durable run: three calls a turn, and a cap of 2 MiB."""

from __future__ import annotations

import pytest

from agent_otel.core.payload_cap import Room
from agent_otel.remedies.claim_check.policy import view_bytes
from tests.rows import each_row

KIB = 1024
CAP = 2048 * KIB
RATIOS = (0.5, 0.8)
CALLS = 3


def turns(count: int, *, copies: int = 1, own: int = 0, history: bool = False) -> list[list[int]]:
    """Return the views of each turn with three calls, in KiB rounded down; the payload carries all of them on."""
    taken, found = 0, []
    for turn in range(count):
        views = []
        for call in range(CALLS):
            results, to_come = (CALLS, CALLS - call) if turn else (call + 1, 1)
            room = Room(taken, CAP, copies if turn else 1, results, to_come, turn, own if turn else 0, history)
            views.append(view_bytes(room, 32 * KIB, 4 * KIB, *RATIOS))
            taken += views[-1] * copies
        found.append([view // KIB for view in views])
        taken += own
        assert taken < CAP
    return found


@pytest.mark.shows("000.model_view")
def test_three_calls_a_turn_get_a_fair_share_and_at_least_4_kib() -> None:
    found = turns(30)
    assert found[:9] == [[32] * 3] * 9
    # At the tenth 15 results are expected in what is left of 65 % of the cap, from the eleventh on more and more.
    assert [views[2] for views in found[9:14]] == [31, 20, 17, 12, 10]
    assert found[29] == [4, 4, 4]
    # A state with two copies and other growth leaves less.
    found = turns(40, copies=2, own=KIB)
    assert [views[2] for views in found[:11]] == [32, 32, 31, 25, 20, 15, 12, 10, 8, 6, 4]
    assert found[29] == [4, 4, 4]
    # A history with the payload of each turn, too, and it ends a run that is long.
    found = turns(50, copies=2, own=KIB, history=True)
    assert [views[2] for views in found[:11]] == [32, 17, 13, 11, 8, 6, 5, 4, 4, 4, 4]
    assert [found[12][2], found[13][2]] == [4, 1]


@each_row(
    ("taken", "expected"),
    [
        (0, 32 * KIB),
        (int(CAP * 0.8), 4 * KIB),
        (CAP - 8 * KIB, 4 * KIB),
        (CAP - 4 * KIB, 2 * KIB),
        (2 * CAP, 0),
    ],
)
def test_near_the_cap_a_view_takes_half_of_what_is_left(taken: int, expected: int) -> None:
    assert view_bytes(Room(taken, CAP), 32 * KIB, 4 * KIB, *RATIOS) == expected
    assert view_bytes(Room(taken, None), 32 * KIB, 4 * KIB, *RATIOS) == 32 * KIB
