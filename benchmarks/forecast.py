"""How early the forecast of ``agent_otel.measure.forecast`` warns, over invented runs.

``scripts/forecast`` writes the table into docs/evidence/forecast.md. ``scripts/forecast --check`` fails if it is stale.
The generators are seeded: each run of the script reads the same sizes.
"""

from __future__ import annotations

import random
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from agent_otel.core.payload import FEW_TURNS
from agent_otel.measure.forecast import LOOK_BACK, turns_to_cap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "evidence" / "forecast.md"
RUNS: Final = 300  # of a kind that grows
LEVEL_RUNS: Final = 1000  # of a kind that never does: what is to be seen is rare
CAP_BYTES: Final = 2 * 1024 * 1024
BEGIN: Final = "<!-- Written by scripts/forecast: -->\n\n"
END: Final = "\n<!-- scripts/forecast ends here. -->\n"
_KB: Final = 1000
_TURNS: Final = 40  # of a run that never grows

#: The sizes of one run, turn by turn, without end.
Sizes: TypeAlias = "Iterator[float]"


class Kind(NamedTuple):
    """A kind of run: what the table calls it, and the sizes of one."""

    name: str
    sizes: Callable[[random.Random], Sizes]


class Outcome(NamedTuple):
    """What came of all runs of a kind, as shares of them; turns are counted back from the payload that is refused."""

    warned: float
    warned_two_turns_early: float
    usual_turns: float


def _steady(chance: random.Random) -> Sizes:
    size, step = _begin(chance), chance.uniform(40, 400) * _KB
    while True:
        yield size
        size += step * chance.uniform(0.9, 1.1)


def _uneven(chance: random.Random) -> Sizes:
    size, step = _begin(chance), chance.uniform(40, 300) * _KB
    while True:
        yield size
        size += step * chance.uniform(0.5, 1.5)


def _bursts(chance: random.Random) -> Sizes:
    size, small, burst = _begin(chance), chance.uniform(2, 10) * _KB, chance.uniform(150, 400) * _KB
    while True:
        yield size
        size += chance.uniform(0.8, 1.2) * (burst if chance.random() < 1 / 5 else small)


def _log_normal(chance: random.Random) -> Sizes:
    size, median = _begin(chance), chance.uniform(30, 150) * _KB
    while True:
        yield size
        size += median * chance.lognormvariate(0, 1)


def _pareto(chance: random.Random) -> Sizes:
    size, least = _begin(chance), chance.uniform(20, 60) * _KB
    while True:
        yield size
        size += least * chance.paretovariate(1.2)


def _gathering_pace(chance: random.Random) -> Sizes:
    size, factor = _begin(chance), chance.uniform(1.1, 1.4)
    while True:
        yield size
        size *= factor * chance.uniform(0.99, 1.01)


def _shrinking(chance: random.Random) -> Sizes:
    size, step = _begin(chance), chance.uniform(60, 300) * _KB
    while True:
        yield size
        dropped = size * chance.uniform(0.05, 0.25)
        size += -dropped if chance.random() < 1 / 7 else step * chance.uniform(0.7, 1.3)


def _compacted_twice(chance: random.Random) -> Sizes:
    size, step, left = _begin(chance), chance.uniform(60, 200) * _KB, 2
    while True:
        yield size
        size += step * chance.uniform(0.8, 1.2)
        if size > 0.6 * CAP_BYTES and left:
            size, left = size * 0.3, left - 1


def _alternating(chance: random.Random) -> Sizes:
    small = chance.uniform(5, 60) * _KB
    for size in _steady(chance):
        yield size
        yield small * chance.uniform(0.9, 1.1)


def _twice(chance: random.Random) -> Sizes:
    for size in _steady(chance):
        yield size
        yield size


def _independent(median: float, spread: float) -> Callable[[random.Random], Sizes]:
    def sizes(chance: random.Random) -> Sizes:
        while True:
            yield median * _KB * chance.lognormvariate(0, spread)

    return sizes


def _between(chance: random.Random) -> Sizes:
    while True:
        yield CAP_BYTES * chance.uniform(0.5, 0.8)


def _constant(chance: random.Random) -> Sizes:
    size = CAP_BYTES * chance.uniform(0.3, 0.95)
    while True:
        yield size * chance.uniform(0.98, 1.02)


def _constant_and_small(chance: random.Random) -> Sizes:
    for size in _constant(chance):
        yield size
        yield 50 * _KB * chance.uniform(0.9, 1.1)


def _full_at(share: float) -> Callable[[random.Random], Sizes]:
    def sizes(chance: random.Random) -> Sizes:
        size, step = _begin(chance), chance.uniform(60, 200) * _KB
        while True:
            yield size * chance.uniform(0.99, 1)
            size = min(share * CAP_BYTES, size + step)

    return sizes


def _summarised_at(share: float) -> Callable[[random.Random], Sizes]:
    def sizes(chance: random.Random) -> Sizes:
        size, step = _begin(chance), chance.uniform(60, 200) * _KB
        while True:
            yield size
            size += step * chance.uniform(0.8, 1.2)
            if size > share * CAP_BYTES:
                size *= 0.25

    return sizes


def _begin(chance: random.Random) -> float:
    return chance.uniform(20, 200) * _KB


STEADY: Final = Kind("steady, ± 10 %", _steady)
BURSTS: Final = Kind("bursts: one turn in five brings 150 to 400 KB, the others 2 to 10 KB", _bursts)
GROWING: Final = (
    STEADY,
    Kind("uneven, ± 50 %", _uneven),
    BURSTS,
    Kind("heavy-tailed: log-normal growths, sigma 1", _log_normal),
    Kind("heavy-tailed: Pareto growths, exponent 1.2", _pareto),
    Kind("gathering pace: a tenth to two fifths of the size", _gathering_pace),
    Kind("shrinking in one turn of seven, and growing for all that", _shrinking),
    Kind("compacted twice at 60 %, and then no more", _compacted_twice),
    Kind("alternating: a state, and a small payload under the same activity", _alternating),
    Kind("alternating: the same state twice", _twice),
)
NEVER_GROWING: Final = (
    Kind("independent sizes, log-normal around 300 KB, sigma 1", _independent(300, 1)),
    Kind("independent sizes, log-normal around 600 KB, sigma 0.5", _independent(600, 0.5)),
    Kind("independent sizes, 50 to 80 % of the cap", _between),
    Kind("the same size, ± 2 %, 30 to 95 % of the cap", _constant),
    Kind("the same size, and a small payload under the same activity", _constant_and_small),
    Kind("growing to 60 % of the cap, and staying there", _full_at(0.6)),
    Kind("summarised at 60 % of the cap, again and again", _summarised_at(0.6)),
    Kind("summarised at 70 % of the cap, again and again", _summarised_at(0.7)),
)


def until_refused(kind: Kind) -> Outcome:
    """Return how early runs of a kind are warned of the payload that is refused."""
    early = [_turns_early(_climb(kind.sizes(_chance(kind, run)))) for run in range(RUNS)]
    one_turn, two_turns = (sum(turns >= least for turns in early) / RUNS for least in (1, 2))
    return Outcome(one_turn, two_turns, statistics.median(early))


def warned_falsely(kind: Kind) -> float:
    """Return which share of a kind's runs is warned, though none of them ever meets the cap."""
    runs = (_level(kind.sizes(_chance(kind, run))) for run in range(LEVEL_RUNS))
    return sum(_warned_at(run) is not None for run in runs) / LEVEL_RUNS


def _chance(kind: Kind, run: int) -> random.Random:
    return random.Random(f"{kind.name} {run}")  # noqa: S311 - the same sizes each time


def _climb(sizes: Sizes) -> list[int]:
    """Return the sizes up to the first that is above the cap."""
    run = []
    for size in sizes:
        run.append(int(size))
        if size > CAP_BYTES:
            break
    return run


def _level(sizes: Sizes) -> list[int]:
    """Return so many sizes, none of them above the cap."""
    return [min(CAP_BYTES, int(size)) for size, _ in zip(sizes, range(_TURNS), strict=False)]


def _turns_early(run: list[int]) -> int:
    at = _warned_at(run[:-1])
    return 0 if at is None else len(run) - 1 - at


def _warned_at(run: list[int]) -> int | None:
    """Return the first turn with few turns left, as it is counted."""
    for turn in range(len(run)):
        left = turns_to_cap(run[max(0, turn + 1 - LOOK_BACK) : turn + 1], CAP_BYTES)
        if left is not None and left < FEW_TURNS:
            return turn
    return None


def tables() -> str:
    """Return the tables in Markdown."""
    growing = [
        f"| {kind.name} | {found.warned:.0%} | {found.warned_two_turns_early:.0%} | {found.usual_turns:g} |"
        for kind, found in ((kind, until_refused(kind)) for kind in GROWING)
    ]
    level = [f"| {kind.name} | {warned_falsely(kind):.1%} |" for kind in NEVER_GROWING]
    return "\n".join(
        (
            f"| {RUNS} runs each that meet the cap | warned ≥ 1 turn early | ≥ 2 turns early | median of the turns |",
            "| --- | --- | --- | --- |",
            *growing,
            "",
            f"| {LEVEL_RUNS} runs of {_TURNS} turns each that never meet it | warned falsely |",
            "| --- | --- |",
            *level,
            "",
        )
    )


def written(page: str) -> str:
    """Return the page with the tables in their place."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + tables() + END + rest.split(END)[1]


def main() -> int:
    """Write the page, or compare it."""
    page = PAGE.read_text(encoding="utf-8")
    new = written(page)
    if "--check" in sys.argv:
        return int(page != new)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
