"""Growth and turns to the cap, counted by hand."""

from __future__ import annotations

import pytest

from agent_otel.measure.forecast import growth, turns_to_cap


@pytest.mark.parametrize(
    ("expected", "sizes"),
    [(None, []), (None, [100]), (0, [100, 100]), (50, [100, 150]), (7, [100, 900, 907]), (0, [100, 40])],
)
def test_growth_is_that_of_the_last_turn_and_never_negative(expected: int | None, sizes: list[int]) -> None:
    assert expected == growth(sizes)


@pytest.mark.parametrize(
    ("expected", "sizes", "cap"),
    [
        # Nothing before three turns.
        (None, [], 1000),
        (None, [100], 1000),
        (None, [100, 200], 1000),
        # (1000 - 300) / 100; the seventh turn from now ends exactly at the cap.
        (7, [100, 200, 300], 1000),
        (6, [100, 200, 301], 1000),
        # The next turn goes over it, the last one is at it, the last one is over it.
        (0, [100, 500, 950], 1000),
        (0, [600, 800, 1000], 1000),
        (0, [600, 1000, 1400], 1000),
        # Nothing grows.
        (None, [300, 300, 300], 1000),
        (None, [300, 200, 100], 1000),
        (None, [1500, 1400, 1300], 1000),
        # One leap is not a trend, nor is one compaction: the growths are 10, 10, 500, 10, 10 and 10, 10, -25, 10, 10.
        (46, [0, 10, 20, 520, 530, 540], 1000),
        (98, [0, 10, 20, -5, 5, 15], 1000),
        # Of two growths, 100 and 700, the lower; of four, 10, 20, 30 and 40, the second.
        (2, [0, 700, 800], 1000),
        (45, [0, 10, 30, 60, 100], 1000),
        # Only five growths count: those of 1 are forgotten.
        (4, [0, 1, 2, 3, 103, 203, 303, 403, 503], 1000),
    ],
)
def test_turns_to_the_cap(expected: int | None, sizes: list[int], cap: int) -> None:
    assert expected == turns_to_cap(sizes, cap)


def test_an_agent_that_adds_600_kb_a_turn_meets_2_mib_in_its_fourth() -> None:
    # Three calls of 200 KB a turn: 600, 1200 and 1800 KB; the cap is 2,097,152 bytes.
    assert 0 == turns_to_cap([600_000, 1_200_000, 1_800_000], 2 * 1024 * 1024)


def test_sizes_may_be_any_sequence() -> None:
    assert 7 == turns_to_cap((100, 200, 300), 1000)
    # 299 bytes, and one more with every turn.
    assert 701 == turns_to_cap(range(300), 1000)
