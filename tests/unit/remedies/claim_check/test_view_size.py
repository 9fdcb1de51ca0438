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


def turns(count: int, *, copies: int = 1, own: int = 0, history: int | None = None) -> list[list[int]]:
    """Return the views of each turn with three calls, in KiB rounded down; the payload carries all of them on."""
    taken, found = 0, []
    for turn in range(count):
        views = []
        for call in range(CALLS):
            results = CALLS if turn else call + 1
            room = Room(taken, CAP, copies, results, CALLS - call if turn else 1, own if turn else 0, history)
            views.append(view_bytes(room, 32 * KIB, 8 * KIB, *RATIOS))
            taken += views[-1] * copies
        found.append([view // KIB for view in views])
        taken += own
    assert taken < CAP
    return found


@pytest.mark.shows("000.model_view")
def test_three_calls_a_turn_get_32_kib_in_each_of_the_first_eleven_turns() -> None:
    found = turns(60)
    assert found[:11] == [[32] * 3] * 11
    # 10 turns with three views of 8 KiB are left then, and only after these it becomes less.
    assert [views[2] for views in found[11:15]] == [11, 7, 6, 6]
    assert found[59] == [1, 1, 1]


def test_a_state_with_two_copies_and_other_growth_leaves_less() -> None:
    found = turns(50, copies=2, own=10 * KIB)
    assert found[:3] == [[32] * 3] * 3
    assert [views[2] for views in found[3:6]] == [24, 7, 6]
    assert found[49] == [0, 0, 0]  # the reference alone


@pytest.mark.parametrize("history", [50 * 1024 * KIB, 3_984_588])
def test_a_history_with_the_payload_of_each_turn_leaves_less(history: int) -> None:
    found = turns(50, history=history)
    assert found[:6] == [[32] * 3] * 6
    assert found[49] == [1, 1, 1]


@each_row(
    ("taken", "expected"),
    [(0, 32 * KIB), (int(CAP * 0.8) - 1, KIB), (int(CAP * 0.8) + 1, 0), (2 * CAP, 0)],
)
def test_near_the_cap_the_reference_alone_is_left(taken: int, expected: int) -> None:
    assert view_bytes(Room(taken, CAP), 32 * KIB, 8 * KIB, *RATIOS) == expected


def test_without_a_cap_the_view_has_its_full_size() -> None:
    assert view_bytes(Room(10 * CAP, None), 32 * KIB, 8 * KIB, *RATIOS) == 32 * KIB
