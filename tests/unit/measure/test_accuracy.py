"""The detector of cuts is right on the corpus, the page says so, and bad input costs little."""

from __future__ import annotations

import sys
import sysconfig
import time
from pathlib import Path
from typing import TYPE_CHECKING

from agent_otel.measure.truncation import find_cut
from tests.accuracy import corpus
from tests.accuracy.__main__ import main
from tests.accuracy.score import read, score
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


def test_precision_and_recall_on_the_corpus() -> None:
    found = read(corpus.tuned())
    whole = score(found)
    assert whole.precision >= 0.995
    assert whole.recall >= 0.95
    assert whole.cut >= 400
    assert len(found) - whole.cut >= 2_000
    assert len({each.case.tool for each in found if each.case.reason}) >= 60
    assert len({each.case.language for each in found if each.case.reason}) >= 8


def test_the_page_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["accuracy", "--check"])
    assert main() == 0


#: How coding agents cut a file or an output: limits, splits and additions are theirs.
AGENTS: dict[str, Callable[[str], str]] = {
    "a view with line numbers": lambda text: (
        "Here is the file:\n"
        + "".join(
            f"{number:6}\t{line}\n"
            for number, line in enumerate(f"{text[:8_000]}{CLIPPED}{text[-8_000:]}".split("\n"), 1)
        )
    ),
    "a terminal": lambda text: f"{text[:15_000]}{CLIPPED}{text[-15_000:]}{FOOTER}",
    "a terminal's head": lambda text: f"{text[:30_000]}{CLIPPED}\n(Current directory: /repo)\nbash-$",
    "an observation": lambda text: (
        f"{text[:15_000]}\n[... Observation truncated: too long ...]\n{text[-15_000:]}{FOOTER}"
    ),
    "a fifth": lambda text: (
        f"Output: {text[:8_000]}\n... [12345 characters omitted] ...\n{text[-32_000:]}\nExit Code: 0"
    ),
    "tokens": lambda text: f"Exit code: 0\nOutput:\n\n{text[:5_000]}…8123 tokens truncated…{text[-5_000:]}",
    "lines": lambda text: f"{text[:15_000]}\n\n... [412 lines truncated] ...\n\n{text[-15_000:]}",
}
CLIPPED = "<response clipped><NOTE>Only a part fits. Search with `grep -n` and read fewer lines.</NOTE>"
FOOTER = "\n[The command completed with exit code 0.]\n[Current working directory: /workspace/project]"


@each_row("kind", AGENTS)
def test_source_code_that_coding_agents_cut(kind: str) -> None:
    library = Path(sysconfig.get_path("stdlib"))
    paths = [path for path in sorted(library.glob("*.py")) if path.stat().st_size > 40_000]
    cuts = [find_cut(AGENTS[kind](path.read_text("utf-8"))) for path in paths]
    assert len(paths) >= 30
    assert [cut.reason for cut in cuts if cut].count("marker") >= 0.9 * len(paths) - 1


NOTICE = "... [120 lines truncated] ..."


@each_row(
    ("expected", "text"),
    [
        (None, "[" * 1_000_003),
        (None, "](" * 500_002),
        (None, "." * 1_000_003),
        (None, "…" * 1_000_003),
        (None, "a" * 1_000_001),
        (None, "truncated " * 100_003),
        (None, "[truncated " * 100_003),
        (None, "... 1 more " * 100_003),
        (None, "1 of 2 " * 150_000),
        (None, '"truncated": ' * 80_000),
        (None, "\\n[..." * 150_000),
        (None, "\0" * 1_000_001),
        (None, "\u202e" * 1_000_001),
        ("marker", "\0a line\n" * 900 + NOTICE),
        ("marker", "\ud83d a line\n" * 900 + NOTICE),
        ("marker", "\u202ea line\u202c\n" * 900 + NOTICE),
        ("marker", f"\x1b[1m{'a line of it' * 90}\x1b[0m\n\x1b[2m{NOTICE}\x1b[0m\n"),
        ("marker", "a line\n" * 90_000 + NOTICE + "\n" + "a line\n" * 90_000),
    ],
    ids=lambda value: str(value)[:12],
)
def test_bad_input(expected: str | None, text: str) -> None:
    find_cut(text)
    begin = time.thread_time()
    cut = find_cut(text)
    spent = time.thread_time() - begin
    assert expected == (None if cut is None else cut.reason)
    assert spent < 0.05  # a busy machine is ten times slower than the budget of 60 µs, and bad input costs more
