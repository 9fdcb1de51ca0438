"""Every row of tests/faults.toml names tests that exist; every attack is in SECURITY.md, every fault in its page."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

from tests.rows import each_row

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TESTS = Path(__file__).resolve().parent
ROWS: list[dict[str, Any]] = tomllib.loads((TESTS / "faults.toml").read_text(encoding="utf-8"))["row"]
PAGES = {"attack": "SECURITY.md", "fault": "docs/reliability.md"}


def _names(path: Path) -> set[str]:
    """Return the functions and classes of a file, those of its classes included."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds)}


@each_row("row", ROWS, ids=lambda row: row["what"])
def test_a_row_names_tests_that_exist(row: dict[str, Any]) -> None:
    assert {"kind", "what", "outcome", "tests"} == set(row)
    assert row["tests"]
    for test in row["tests"]:
        path, _, name = test.partition("::")
        assert (TESTS / path).is_file(), test
        assert not name or name in _names(TESTS / path), test


@each_row("row", ROWS, ids=lambda row: row["what"])
def test_a_row_stands_on_its_page_once(row: dict[str, Any]) -> None:
    page = (TESTS.parent / PAGES[row["kind"]]).read_text(encoding="utf-8")
    assert 1 == page.count(f"| {row['what']} | {row['outcome']} |")
