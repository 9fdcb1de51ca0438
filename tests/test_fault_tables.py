"""Every row of tests/faults.toml names tests that exist."""

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


def _names(path: Path) -> set[str]:
    """Return the functions and classes of a file, those of its classes included."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds)}


@each_row("row", ROWS, ids=lambda row: row["what"])
def test_a_row_names_tests_that_exist(row: dict[str, Any]) -> None:
    assert {"kind", "what", "outcome", "tests"} == set(row)
    assert row["kind"] in {"attack", "fault"}
    assert row["tests"]
    for test in row["tests"]:
        path, _, name = test.partition("::")
        assert (TESTS / path).is_file(), test
        assert not name or name in _names(TESTS / path), test


def test_no_two_rows_are_one() -> None:
    # scripts/check compares the pages with the rows that they are generated from.
    assert len(ROWS) == len({row["what"] for row in ROWS})
