"""Growth and turns to the cap, counted by hand."""

from __future__ import annotations

import pytest

from agent_otel.measure.forecast import turns_to_cap
from benchmarks import forecast
from tests.rows import each_row


@each_row(
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
        # Two growths are a trend when they are much the same: by a quarter, not by more.
        (5, [0, 100, 225, 325, 425], 1000),
        (6, [0, 100, 225], 1000),
        (None, [0, 100, 226], 1000),
        # Three when none is more than twice another, four when none is more than four times another.
        (4, [0, 100, 300, 400], 1000),
        (None, [0, 100, 301, 401], 1000),
        (2, [0, 100, 500, 600, 700], 1000 + 200),
        (None, [0, 100, 501, 601, 701], 1000 + 200),
        # Bursts: of 10, 10, 500, 10 and 10 the average says 4; there is no room for another 500.
        (1, [0, 10, 20, 520, 530, 540], 1000),
        # The average of the last five, 10 each, says 46; the burst before them fits not at all, or once.
        (1, [0, 500, 510, 520, 530, 540, 550], 1010),
        (2, [0, 500, 510, 520, 530, 540, 550], 1050),
        # A burst every sixth turn and nothing between: only the burst says something.
        (2, [0, 0, 0, 0, 300, 300, 300, 300, 300, 300], 600),
        # Only eleven growths are looked back on: the leap of 500 is the twelfth. Eleven bytes on 500 are no growth.
        (None, [0, 500, *range(501, 512)], 600),
        (7, [0, 500, *range(510, 620, 10)], 680),
        # A few bytes less are no fall: an id in it is shorter.
        (6, [100, 200, 199, 299, 398, 497], 1000),
        # Compacted: nothing until it is larger than it was then, and then from its rises.
        (None, [100, 200, 300, 400, 500, 600, 100, 200, 300, 400, 500, 599], 1000),
        (3, [100, 200, 300, 400, 500, 600, 150, 250, 350, 450, 550, 650], 1000),
        # Sizes that have nothing to do with each other.
        (None, [300, 900, 200, 700, 800, 100, 600, 950], 1000),
        # A state that grows by 100 and a payload of 50 under the same activity; what is told is the state's.
        (4, [200, 50, 300, 50, 400, 50, 500, 51, 600], 1000),
        (None, [200, 50, 300, 50, 400, 50, 500, 51], 1000),
        # The same state twice: 6 payloads, which are 3 turns.
        (4, [200, 200, 300, 300, 400, 400, 500, 500, 600, 600, 700, 700], 1000),
    ],
)
def test_turns_to_the_cap(expected: int | None, sizes: list[int], cap: int) -> None:
    assert expected == turns_to_cap(sizes, cap)


@pytest.mark.shows("000.grows_by_turn")
def test_an_agent_that_adds_600_kb_a_turn_meets_2_mib_in_its_fourth() -> None:
    # Three calls of 200 KB a turn: 600, 1200 and 1800 KB; the cap is 2,097,152 bytes.
    assert 0 == turns_to_cap([600_000, 1_200_000, 1_800_000], 2 * 1024 * 1024)


def test_sizes_may_be_any_sequence() -> None:
    assert 7 == turns_to_cap((100, 200, 300), 1000)
    # 299 bytes, and one more with every turn: a seventeenth in eleven turns is no growth to speak of, a fifth is.
    assert turns_to_cap(range(300), 1000) is None
    assert 941 == turns_to_cap(range(60), 1000)


# --- on invented runs --------------------------------------------------------------------------------------------


def test_steady_runs_are_warned_two_turns_early() -> None:
    assert forecast.until_refused(forecast.STEADY).warned_two_turns_early >= 0.95


def test_bursts_are_warned_of_a_turn_early() -> None:
    assert forecast.until_refused(forecast.BURSTS).warned >= 0.95


@each_row("kind", forecast.NEVER_GROWING, ids=lambda kind: kind.name)
def test_runs_that_never_grow_are_hardly_ever_warned(kind: forecast.Kind) -> None:
    assert forecast.warned_falsely(kind) <= 0.02


def test_the_page_has_the_figures_of_today() -> None:
    page = forecast.PAGE.read_text(encoding="utf-8")
    assert forecast.written(page) == page
