"""Every block of the page about remedies does what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from agent_otel.measure.size import Size
from agent_otel.remedies import result_ceiling

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "remedies.md").read_text()


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_each_program_prints_what_it_should(environment: Callable[[str], Environment]) -> None:
    # The last line of the log's 20,000; its length by hand: 10 + 90 * 2 + 900 * 3 + 9,000 * 4 + 10,000 * 5 digits,
    # " of build" after each and 19,999 ends of lines.
    length = 10 + 180 + 2700 + 36_000 + 50_000 + 20_000 * 9 + 19_999
    expected = [
        "",
        f"20000: 19999 of build\n{length}\n",
        "0\n",
        "20 25 45 None\n",
        "{'id': 20}\n",
        "{'failed': ['lint']}\n",
        "",
        f"[trimmed 300 bytes] read: {' '.join(['line of a file'] * 10)}…\n",
        "15 7\n",  # the question, a pair for the five old turns, two turns
        (
            'found a\n{"error": "limit_reached", "limit": "tool_calls", "maximum": 1, "message": '
            '"This call was not run. Answer now with what you have; do not call any more tools."}\n'
        ),
    ]
    bare = environment("bare")
    variables = {"AGENT_OTEL_CLAIM_CHECK_BUDGET": "30"}
    assert [bare.run(block, env=variables, check=True).stdout for block in _blocks("python")] == expected


def test_the_error_is_the_one_that_tools_return() -> None:
    [block] = _blocks("json")
    assert json.loads(block) == result_ceiling.too_large(
        "search", Size(70_001, exact=True), 65_536, ("query", "cursor", "limit")
    )


def test_there_are_no_other_blocks_and_links_lead_somewhere() -> None:
    assert sorted(re.findall(r"^```(\w+)", PAGE, re.MULTILINE)) == ["json", *["python"] * 10, "shell", "text", "text"]
    headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^##+ (.*)$", PAGE, re.MULTILINE)}
    for link in re.findall(r"\]\(([^)]+)\)", PAGE):
        assert link[1:] in headings if link.startswith("#") else (ROOT / "docs" / link.partition("#")[0]).exists(), link
