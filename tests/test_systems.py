"""Every mark of a test names a row of tests/systems.toml, and the page shows rows without a test."""

from __future__ import annotations

import re

from tests import systems

MARKS = systems.marks()
ROWS = {row["id"]: row for members in systems.rows().values() for row in members}
PAGE = (systems.TESTS.parent / "docs" / "evidence" / "systems.md").read_text(encoding="utf-8")


def test_each_mark_names_a_row() -> None:
    assert not set(MARKS) - set(ROWS)


def test_a_row_without_a_test_says_what_is_missing() -> None:
    without = {name for name in ROWS if name not in MARKS}
    assert without == {name for name, row in ROWS.items() if row["outcome"].startswith("Missing")}
    assert PAGE.count(systems.NO_TEST) == len(without)


def test_settings_on_the_page_exist() -> None:
    settings = (systems.TESTS.parent / "docs" / "settings.md").read_text(encoding="utf-8")
    assert not {name for name in re.findall(r"AGENT_OTEL_[A-Z_]+[A-Z]", PAGE) if f"`{name}`" not in settings}
