"""``scripts/demo`` as a user starts it: an agent answers from a fragment and dies, and lives with one variable more."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from examples.demo.__main__ import Commit, limits
from tests.system.examples.repositories import commit, empty

DEMO = Path(__file__).resolve().parents[3] / "scripts" / "demo"
WIDTH = 100
FILES = 40


def start(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Start the demo with none of our own settings."""
    ours = ("OPENAI_", "OTEL_", "AGENT_OTEL")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.run((str(DEMO), *arguments), cwd=cwd, env=environ, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session", autouse=True)
def _environment_made() -> None:
    """Make the demo's environment outside the time that a test may take."""
    made = start("--help")
    assert made.returncode == 0, made.stderr


def rows(text: str) -> list[list[list[str]]]:
    """Return the cells of both tables."""
    tables: list[list[list[str]]] = []
    for line in text.splitlines():
        if line.startswith("turn  "):
            tables.append([])
        elif tables and re.match(r" +\d+  ", line):
            tables[-1].append([cell for cell in line.split("  ") if cell.strip()])
    return tables


@pytest.mark.skipif("sys.version_info < (3, 11)", reason="sqlite3 cannot limit a connection")
def test_the_agent_answers_from_fragments_and_dies_and_with_one_variable_it_lives(tmp_path: Path) -> None:
    folder, page = empty(tmp_path), tmp_path / "page.html"
    for number in range(8):
        text = "".join(f"line {line} of commit {number}\n" for line in range(100))
        commit(folder, f"Change {number}", **{f"module_{number}_{name}": text for name in range(FILES)})
    shown = start(str(folder), "--html", str(page))
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert max(map(len, shown.stdout.splitlines())) <= WIDTH
    before, after = rows(shown.stdout)
    # 40 files of 2.5 KB in each commit: the model gets 40,000 characters of 110 KB, and cannot count the files.
    answers = [row[-1].strip() for row in before]
    assert "none: the state is refused" == answers[-1]
    assert 3 <= len(answers) < 8
    assert all(answer.endswith(f"files; git: {FILES}") for answer in answers[:-1])
    assert {f"{FILES} files"} == {row[-1].strip() for row in after}
    assert 8 == len(after)
    assert "sqlite3.DataError: string or blob too big" in shown.stdout
    assert "messages[].artifact" in shown.stdout
    assert "the database takes" in page.read_text(encoding="utf-8")


def test_a_repository_with_one_small_commit(tmp_path: Path) -> None:
    commit(empty(tmp_path), "Begin", engine="def start() -> None: ...\n")
    shown = start(cwd=tmp_path)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    before, after = rows(shown.stdout)
    assert {"1 files"} == {row[-1].strip() for row in (*before, *after)}


def test_a_commit_that_is_larger_than_any_cap_is_carried_for_five_turns() -> None:
    """The only commit of a shallow clone has all files; a turn adds these and what the model gets."""
    assert (40_000, 5 * (4_438_271 + 40_000)) == limits([Commit("6a5c1f2", 4_438_271, 1_494)] * 8)


def test_what_is_no_repository_or_has_no_commit_is_an_error(tmp_path: Path) -> None:
    shown = start(cwd=tmp_path)
    assert (1, "scripts/demo: fatal: not a git repository") == (shown.returncode, shown.stdout[:41])
    shown = start(str(empty(tmp_path)))
    assert (1, "scripts/demo: fatal: your current branch") == (shown.returncode, shown.stdout[:40])
