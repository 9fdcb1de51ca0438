"""Every block of the pages about remedies does what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from agent_otel.measure.size import Size
from agent_otel.remedies import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

DOCS = Path(__file__).resolve().parents[3] / "docs"
INDEX = DOCS / "remedies.md"
PAGES = {path.stem: path for path in sorted((DOCS / "remedies").glob("*.md"))}
# The last line of the log's 20,000; its length by hand: 10 + 90 * 2 + 900 * 3 + 9,000 * 4 + 10,000 * 5 digits,
# " of build" after each and 19,999 ends of lines.
LENGTH = 10 + 180 + 2700 + 36_000 + 50_000 + 20_000 * 9 + 19_999
#: What the programs of a page print.
PRINTED = {
    "ceiling": [""],
    "claim-check": [f"20000: 19999 of build\n{LENGTH}\n"],
    "limits": [
        (
            'found a\n{"error": "limit_reached", "limit": "tool_calls", "maximum": 1, "message": '
            '"This call was not run. Answer now with what you have; do not call any more tools."}\n'
        )
    ],
    "pages": ["20 25 45 None\n", "{'id': 20}\n"],
    "stored-results": ["0\n"],
    "streamed-artifacts": [""],
    "summaries": ["{'failed': ['lint']}\n"],
    "summarised-history": ["", "15 7\n"],  # the question, a pair for the five old turns, two turns
    "views": [f"[trimmed 300 bytes] read: {' '.join(['line of a file'] * 10)}…\n"],
}


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", _text(PAGES[page]), re.DOTALL)


def test_each_program_prints_what_it_should(environment: Callable[[str], Environment]) -> None:
    bare = environment("bare")
    variables = {"AGENT_OTEL_CLAIM_CHECK_BUDGET": "30"}
    for page in PAGES:
        printed = [bare.run(block, env=variables, check=True).stdout for block in _blocks(page, "python")]
        assert printed == PRINTED.get(page, []), page


def test_the_errors_are_the_ones_that_tools_return() -> None:
    [too_large], [repeated] = _blocks("ceiling", "json"), _blocks("limits", "json")
    assert json.loads(too_large) == limits.too_large(
        "search", Size(70_001, exact=True), 65_536, ("query", "cursor", "limit")
    )
    assert json.loads(repeated) == limits.repeated("search", limits.Made("call_1", 12_031), 2)


def test_the_index_is_one_screen_and_leads_to_every_page() -> None:
    index = _text(INDEX)
    shown = index.partition("```{toctree}\n:hidden:")[0]
    assert len(shown.splitlines()) <= 30
    assert set(re.findall(r"\]\(remedies/([\w-]+)\.md\)", index)) == PAGES.keys()


def test_there_are_no_other_blocks() -> None:
    kinds = [kind for page in (INDEX, *PAGES.values()) for kind in re.findall(r"^```(\w+)", _text(page), re.MULTILINE)]
    programs = sum(len(printed) for printed in PRINTED.values())
    assert sorted(kinds) == [*["json"] * 2, *["python"] * programs, "shell", *["text"] * 3]
