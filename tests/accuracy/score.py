"""Compares what the detector says of each case with its label."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from agent_otel.measure.truncation.detect import find_cut

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.accuracy.corpus import Case

SUSPECTED: Final = "suspected"


def said(case: Case) -> str | None:
    """Return the reason that the detector gives; a suspicion does not count as truncated."""
    cut = find_cut(case.text)
    return None if cut is None or cut.reason == SUSPECTED else cut.reason


class Score:
    """How many cases were cut, said to be cut, and both."""

    def __init__(self, cases: list[Case]) -> None:
        found = [(case, said(case)) for case in cases]
        self.cut = sum(case.reason is not None for case in cases)
        self.whole = len(cases) - self.cut
        self.right = sum(case.reason is not None and reason is not None for case, reason in found)
        self.false = sum(case.reason is None and reason is not None for case, reason in found)
        self.missed = [case for case, reason in found if case.reason is not None and reason is None]
        self.alarms = [(case, reason) for case, reason in found if case.reason is None and reason is not None]
        self.reasons = Counter((reason, case.reason) for case, reason in found)

    @property
    def precision(self) -> float:
        """The share of cut results among those that are said to be cut."""
        return self.right / max(self.right + self.false, 1)

    @property
    def recall(self) -> float:
        """The share of cut results that are said to be cut."""
        return self.right / max(self.cut, 1)


def by(cases: list[Case], key: Callable[[Case], str | None]) -> dict[str, tuple[int, int]]:
    total: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for case in cases:
        if case.reason is not None:
            name = key(case) or ""
            total[name] += 1
            right[name] += said(case) is not None
    return {name: (right[name], total[name]) for name in total}
