"""Cuts: every marker of the known ones, cut JSON, suspicious lengths, and what must raise no alarm."""

from __future__ import annotations

import json
import random
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from agent_otel.measure import markers
from agent_otel.measure.truncation import Cut, find_cut
from tests.measure.names import readable
from tests.measure.rendered import RENDERED

PROSE = "The quick brown fox jumps over the lazy dog; nothing is missing here. " * 3_000
MARKED = [(reason, text) for row, reason, text in RENDERED if reason != "cleared"]

by_marker = pytest.mark.parametrize(("reason", "text"), MARKED, ids=lambda value: value[:40])


def _reason(value: Any, size_bytes: int | None = None) -> str | None:
    cut = find_cut(value, size_bytes)
    return cut.reason if cut is not None else None


def test_all_rows_of_the_table_are_here() -> None:
    assert list(range(1, 63)) == sorted({row for row, _, _ in RENDERED})


@pytest.mark.parametrize(("row", "reason", "text"), RENDERED)
def test_alone(row: int, reason: str, text: str) -> None:
    assert (row, reason) == (row, _reason(text))


@by_marker
@pytest.mark.parametrize("before", ["x" * 3_001, PROSE, "漢字\n" * 10_000], ids=["short", "long", "unicode"])
def test_at_the_end(reason: str, text: str, before: str) -> None:
    assert reason == _reason(before + "\n" + text)
    assert reason == _reason(before + text + "\n")


@by_marker
def test_in_front(reason: str, text: str) -> None:
    assert reason == _reason(text + "\n" + PROSE)


@pytest.mark.parametrize(("reason", "text"), [marked for marked in MARKED if len(marked[1]) <= 120])
def test_between_equal_halves(reason: str, text: str) -> None:
    assert reason == _reason(PROSE[:25_000] + text + PROSE[-25_000:])


@pytest.mark.parametrize(("reason", "text"), [(row[1], row[2]) for row in RENDERED if row[1] == "cleared"])
def test_cleared_is_the_whole_content(reason: str, text: str) -> None:
    assert reason == _reason(f" {text}\n")
    assert None is _reason(f"The marker {text} stands for a cleared result.")


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("claude-code", "... [12345 characters truncated] ..."),
        ("smolagents", "a..._This content has been truncated to stay below 20000 characters_...b"),
        ("agno/google-adk", "and so on...\n[... 14000 characters truncated ...]"),
        ("deepagents", "... Output truncated at 100000 bytes."),
        ("langchain", "... Output truncated at 100000 bytes"),
        (None, "... [42 rows truncated by our own tool]"),
    ],
)
def test_the_project_is_named_if_its_marker_is_known(expected: str | None, text: str) -> None:
    assert Cut("marker", expected) == find_cut(text)


def test_a_result_that_is_complete_elsewhere_is_offloaded_whatever_else_it_says() -> None:
    text = "... [truncated]\n" + "x" * 200 + "\nOutput too large (1MB). Full output saved to: /tmp/a"
    assert Cut("offloaded", "claude-code") == find_cut(text)


def test_every_template_can_be_found() -> None:
    assert [] == [marker for marker in markers.MARKERS if not any(stem in marker.template for stem in markers.STEMS)]


ROWS = [{"id": number, "name": f"name {number}", "tags": ["a", None, True], "price": 1.5} for number in range(200)]


@pytest.mark.parametrize("text", [json.dumps(ROWS), json.dumps(ROWS, indent=1), json.dumps({"rows": ROWS})])
def test_cut_json(text: str) -> None:
    cuts = random.Random(7).sample(range(2, len(text) - 1), 400)  # noqa: S311 - the same cases in every run
    found = [_reason(text[:cut]) for cut in cuts]
    # A cut right behind some inner bracket looks closed, if it is the right bracket.
    assert set(found) <= {"cut_json", "suspected", None}
    assert 0.96 <= (found.count("cut_json") + found.count("suspected")) / len(found)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "some tex',
        '{"a": 1, "b": tr',
        '{"a": 1, "b"',
        "[1, 2, ",
        "[1, 2.",
        '["\\u00e',
        '["\\',
        "[[1, 2], [3",
        "[",
        "[-",
        '  \n{"a": {"b": "c"},',
    ],
)
def test_short_cut_json(text: str) -> None:
    assert Cut("cut_json", None) == find_cut(text)


@pytest.mark.parametrize(
    "text",
    [
        "[INFO] server started\n[INFO] listening\n" * 200,
        "[2026-11-21 10:00:00] GET /a 200\n" * 200,
        "[ERROR]",
        "[section]\nkey = value\n[other]\nkey = value\n" * 100,
        "[text](https://example.com/a) and more prose\n" * 100,
        "[1] A footnote.\n[2] Another one.\n" * 100,
        "{{ name }} is a template, {% if a %}b{% endif %} and so on\n" * 100,
        "{name} is a format string\n" * 100,
        '{"a": 1}\n{"a": 2}\n' * 300,
        '{"a": 1}\n{"a": 2}\n' * 300 + "done",
        '["quoted"] is how a list of one looks\n' * 50,
        "[x] done\n[ ] open\n" * 100,
        "{\n  color: red;\n}\nbody { margin: 0 }\n p { a: b; }\n.",
        "[a-z]+ is a regular expression",
        "{'single': 'quotes'} of a Python repr, and more",
        "[<Element a at 0x7f>, <Element b at 0x7f>] of another, and more",
        json.dumps(ROWS, indent=1) + "\n\nThese are all rows.",
        json.dumps(ROWS) + "\n\nThese are all rows.",
        json.dumps(ROWS) + "\n",
        " " + json.dumps(ROWS, indent=4) + "  \n",
    ],
    ids=lambda text: text[:25],
)
def test_no_false_alarm(text: str) -> None:
    assert None is find_cut(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "ok",
        "The list is truncated when it is longer than the limit; see truncated(). " * 20,
        "def truncate(text):\n    return text[:10]  # the rest is omitted\n" * 50,
        "Comments are elided, clipped or omitted. Too large? Offloaded: no. Full result of the match: 2:1. " * 9,
        '{"truncated": false, "rows": []}',
        "x" * 4_999,
        "y" * 1_000_001,
    ],
    ids=lambda text: text[:25],
)
def test_nothing_was_cut(text: str) -> None:
    assert None is find_cut(text)


@pytest.mark.parametrize(
    "cap",
    [5_000, 8_192, 10_000, 16_000, 20_000, 30_000, 40_000, 50_000, 65_536, 100_000, 131_072, 1_000_000, 1_048_576],
)
def test_a_length_that_is_a_known_cap_is_suspected(cap: int) -> None:
    assert Cut("suspected", None) == find_cut("x" * cap)
    text = "é" + "x" * (cap - 2)
    assert Cut("suspected", None) == find_cut(text, len(text.encode()))
    assert None is find_cut(text)


@pytest.mark.parametrize("text", ["half of an emoji: \ud83d", "half of its bytes: \ufffd"])
def test_half_a_character_at_the_end_is_suspected(text: str) -> None:
    assert Cut("suspected", None) == find_cut(text)


def test_a_marker_outweighs_a_suspicion() -> None:
    assert "marker" == _reason("x" * 4_986 + "...[truncated]")
    assert "cut_json" == _reason('["' + "x" * 4_998)


class Message:
    """What LangChain and others make of a result."""

    def __init__(self, content: Any, **fields: Any) -> None:
        self.content = content
        self.__dict__.update(fields)


class Text:
    """What mcp's text block looks like."""

    def __init__(self, text: str) -> None:
        self.type, self.text = "text", text


def test_messages_and_blocks_are_looked_into() -> None:
    assert "marker" == _reason(Message(PROSE + "...[truncated]"))
    assert "marker" == _reason(Message([{"type": "text", "text": PROSE}, {"type": "text", "text": "...[truncated]"}]))
    assert "marker" == _reason([Text("...[truncated]"), Text("more"), {"type": "image", "data": "QUJD"}])
    assert None is _reason([Text(PROSE), {"type": "image", "data": "QUJD"}])
    assert "suspected" == _reason(Message("é" * 2_500), 5_000)


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        (Cut("marker", None), {"truncated": True, "rows": []}),
        (Cut("marker", None), {"result_is_likely_truncated": True}),
        (Cut("marker", "n8n"), {"_truncated": True, "originalCharCount": 250_000}),
        (Cut("marker", "mini-swe-agent"), {"output_head": "a", "output_tail": "b", "elided_chars": 12_000}),
        (Cut("marker", None), Message("all there", truncated=True)),
        (Cut("offloaded", "deepagents"), Message("a preview", additional_kwargs={"lc_evicted_to": "/large/1"})),
        (None, {"truncated": False, "elided_chars": 0}),
        (None, {"truncated": "no", "lc_evicted_to": None}),
        (None, {"text": "...[truncated]"}),
        (None, Message(None)),
        (None, 12),
        (None, None),
        (None, b"...[truncated]"),
        (None, ({"truncated": True},)),
    ],
    ids=readable,
)
def test_structured_results_say_it_by_a_key(expected: Cut | None, value: Any) -> None:
    assert expected == find_cut(value)


def test_source_code_raises_almost_no_alarm() -> None:
    """At most 0.5 % of the standard library's files; reference/runtimes.md 2.3 found 0.3 % in other sources."""
    library = Path(sysconfig.get_path("stdlib"))
    paths = [path for path in library.rglob("*.py") if "site-packages" not in path.parts]
    texts = [path.read_text("utf-8", "replace") for path in paths]
    alarms = [text for text in texts if _reason(text) in ("marker", "offloaded", "cleared")]
    assert len(texts) >= 300
    assert len(alarms) <= 0.005 * len(texts)
