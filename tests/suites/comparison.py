"""Compares runs of the same tests by their JUnit reports, test by test."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

MISSING = "missing"
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
#: A test with several records, such as a failure and an error of its teardown, has the outcome that is first here.
_WORST_FIRST = ("error", "failed", "skipped", "passed")
_ELEMENTS = {"error": "error", "failure": "failed", "skipped": "skipped"}


@dataclass(frozen=True)
class Difference:
    """A test with another outcome than in the run that it is compared with."""

    test: str
    mode: str
    before: str
    after: str

    @property
    def file(self) -> str:
        """The test's file, relative to the root of the tests."""
        return self.test.partition("::")[0]

    def __str__(self) -> str:
        return f"{self.mode}: {self.test}: {self.before} → {self.after}"


def outcomes(report: Path) -> dict[str, str]:
    """Return the outcome of each test ("file::class::name") of a JUnit report of the family ``xunit1``."""
    found: dict[str, str] = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - pytest has written it
        name = "::".join((case.get("file", ""), case.get("classname", "").rpartition(".")[2], case.get("name", "")))
        test = _ADDRESS.sub("0x", name)
        outcome = next((_ELEMENTS[part.tag] for part in case if part.tag in _ELEMENTS), "passed")
        found[test] = min(outcome, found.get(test, "passed"), key=_WORST_FIRST.index)
    return found


def differences(mode: str, before: Mapping[str, str], after: Mapping[str, str]) -> set[Difference]:
    """Return the tests whose outcome in this mode is another one than ``before``."""
    pairs = ((test, before.get(test, MISSING), after.get(test, MISSING)) for test in {*before, *after})
    return {Difference(test, mode, old, new) for test, old, new in pairs if old != new}


def is_known(difference: Difference, rows: Iterable[Mapping[str, object]]) -> bool:
    """Return true when a row names this difference: its mode, and its test as a pattern of file names."""
    return any(
        difference.mode in _texts(row["modes"])
        and any(fnmatchcase(difference.test, pattern) for pattern in _texts(row["tests"]))
        for row in rows
    )


def _texts(value: object) -> list[str]:
    assert isinstance(value, list)
    return value
