"""Compares what the detector says of each case with its label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agent_otel.measure.truncation import find_cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.accuracy.corpus import Case

SUSPECTED: Final = "suspected"


class Found(NamedTuple):
    """A case, and the reason that the detector gives."""

    case: Case
    reason: str | None

    @property
    def is_cut(self) -> bool:
        """Return True if the detector says that the result is truncated. A suspicion does not count."""
        return self.reason not in (None, SUSPECTED)


class Score(NamedTuple):
    """How many results are cut, how many the detector calls cut, and how many of these are."""

    cut: int
    said: int
    right: int

    @property
    def precision(self) -> float:
        """The share of cut results among those that the detector calls cut."""
        return self.right / self.said if self.said else 1.0

    @property
    def recall(self) -> float:
        """The share of cut results that the detector finds."""
        return self.right / self.cut if self.cut else 1.0


def read(cases: Iterable[Case]) -> list[Found]:
    """Return what the detector says of each case."""
    return [Found(case, getattr(find_cut(case.text), "reason", None)) for case in cases]


def score(found: Iterable[Found]) -> Score:
    """Return the score of cases."""
    cut, said, right = 0, 0, 0
    for each in found:
        cut += each.case.reason is not None
        said += each.is_cut
        right += each.is_cut and each.case.reason is not None
    return Score(cut, said, right)


def by(found: Iterable[Found], key: Callable[[Found], str | None]) -> dict[str, Score]:
    """Return the score of each group of cases."""
    groups: dict[str, list[Found]] = {}
    for each in found:
        groups.setdefault(key(each) or "", []).append(each)
    return {name: score(group) for name, group in sorted(groups.items())}


def of_reason(found: Iterable[Found], reason: str) -> Score:
    """Return the score of one reason: the detector must give exactly this one."""
    cut, said, right = 0, 0, 0
    for each in found:
        cut += each.case.reason == reason
        said += each.reason == reason
        right += each.reason == reason == each.case.reason
    return Score(cut, said, right)
