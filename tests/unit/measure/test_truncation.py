"""Cuts: every marker of the known ones, cut JSON, suspicious lengths, and what must raise no alarm."""

from __future__ import annotations

import json
import random
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from agent_otel.measure.truncation import Cut, find_cut, has_shrunk
from tests.rows import each_row
from tests.unit.measure.names import readable
from tests.unit.measure.rendered import RENDERED
from tests.unit.measure.work import calls

PROSE = "The quick brown fox jumps over the lazy dog; nothing is missing here. " * 3_000
MARKED = [(reason, text) for row, reason, text in RENDERED if reason != "cleared" and "masked" not in text]

by_marker = each_row(("reason", "text"), MARKED, ids=lambda value: value[:40])
#: Those that are written right behind what is left, or between its halves; sentences have a line of their own.
INLINE = [
    marked
    for marked in MARKED
    if marked[1][0] in ".…[(<" and "\n" not in marked[1] and not marked[1].startswith(("<elided", "[TRUNCATED] Tool"))
]
#: Those that are found in the middle of a long text, between two halves.
IN_THE_MIDDLE = [
    marked
    for marked in INLINE
    if any(word in marked[1] for word in ("runcated", "mitted", "elided", "clipped>")) and "... Output" not in marked[1]
]
IN_LINES = [marked for marked in MARKED if marked[1][0] != "{" and len(marked[1]) <= 120]
before_it = each_row(
    "before", ["x" * 3_001, PROSE, "漢字\n" * 10_000, f"```\n{PROSE}"], ids=["short", "long", "unicode", "fence"]
)


def _reason(value: Any, size_bytes: int | None = None) -> str | None:
    cut = find_cut(value, size_bytes)
    return cut.reason if cut is not None else None


@pytest.mark.shows("001.host_cuts")
def test_all_rows_of_the_table_are_here() -> None:
    assert list(range(1, 63)) == sorted({row for row, _, _ in RENDERED})


@each_row(("row", "reason", "text"), RENDERED)
def test_alone(row: int, reason: str, text: str) -> None:
    assert (row, reason) == (row, _reason(text))


@by_marker
@before_it
def test_at_the_end(reason: str, text: str, before: str) -> None:
    assert reason == _reason(before + "\n" + text)
    assert reason == _reason(before + "\n" + text + "\n")


@each_row(("reason", "text"), INLINE, ids=lambda value: value[:40])
@before_it
def test_right_behind_what_is_left(reason: str, text: str, before: str) -> None:
    assert reason == _reason(before + text)
    assert reason == _reason(before + text + "\n")


@by_marker
def test_in_front(reason: str, text: str) -> None:
    assert reason == _reason(text + "\n" + PROSE)


@each_row(("reason", "text"), IN_THE_MIDDLE, ids=lambda value: value[:40])
@pytest.mark.shows("000.hard_cut")
def test_between_equal_halves(reason: str, text: str) -> None:
    assert reason == _reason(f"{PROSE[:25_000]}\n{text}\n{PROSE[-25_000:]}")


@each_row(("reason", "text"), IN_THE_MIDDLE, ids=lambda value: value[:40])
def test_right_between_halves(reason: str, text: str) -> None:
    for at in (4_000, 25_000, 40_000):
        if text[0] in ".…<" or at == 25_000:
            assert reason == _reason(PROSE[:at] + text + PROSE[-(50_000 - at) :])


#: How a text quotes a marker without being cut.
QUOTATIONS = {
    "literal": lambda text: f"    return text[:most] + {text!r}",
    "constant": lambda text: f"MARKER = {json.dumps(chr(10) + text)}  # what is left behind",
    "template": lambda text: f"const cut = (text) => text.slice(0, 50) + `{text}`;",
    "backticks": lambda text: f"It leaves `{text}` behind.",
    "list": lambda text: f"* {text}",
    "mail": lambda text: f"> {text}",
    "change": lambda text: f"+{text}",
    "comment": lambda text: f"# {text}",
    "table": lambda text: f"| a tool | {text} | 3 |",
    "example": lambda text: f"For example:\n\n```\nfirst line\n{text}\nlast line\n```",
    "literal of lines": lambda text: f'TEXT = """\\\nfirst line\n{text}\nlast line\n"""',
    "sentence": lambda text: f"We saw {text} in all of them.",
    "log": lambda text: f"[10:30:07] INFO {text} ms=12",
    "JSON": lambda text: json.dumps({"note": f"It says {text}", "rows": [1, {"truncated": True}]}),
}


#: CAMEL's, behind which the result begins in the same line.
_LEADING = "[TRUNCATED] Tool 'big' output truncated (1080 > 900 tokens). Tool executed successfully."


@each_row("kind", QUOTATIONS)
def test_a_quotation_is_no_notice(kind: str) -> None:
    half = PROSE[: 7 * 71] + "\n"
    quotations = [QUOTATIONS[kind](text) for _, text in IN_LINES if "\n" not in text]
    texts = [
        text
        for quoted in quotations
        for text in (
            f"{quoted}\n",
            f"{quoted}\n{PROSE}",
            f"{PROSE}\n{quoted}\n",
            f"{half}{quoted}\n{half}",
            f"{PROSE}\n{quoted}\n{PROSE}",
        )
    ]
    assert len(texts) >= 5 * 50
    assert [] == [text for text in texts if find_cut(text) is not None]


@each_row(
    ("expected", "text"),
    [
        ("marker", "```sh\nls\n```\n\n```stdout\n" + "a file\n" * 200 + "... [output truncated]\n```"),
        ("marker", "```python\nprint(1)\n... [truncated]"),
        ("marker", "<stdout>" + "a file\n" * 200 + "... [output truncated - 182KB removed]</stdout>\n"),
        ("marker", f"\n\n{_LEADING}" + "a row\n" * 600),
        (None, "[truncated] a row\n" * 600),
        ("marker", "    indented\n" * 200 + "    ... [truncated]"),
        ("marker", "a row\n" * 600 + "[truncated]"),
        ("marker", "x" * 3_000 + "[TRUNCATED]\n"),
        ("marker", "a row\n" * 600 + "(truncated)\n"),
        ("marker", "+ a row\n" * 600 + "[diff truncated]"),
        ("marker", "a row\n" * 600 + "[truncated for length]"),
        ("marker", "a row\n" * 600 + "(file truncated at 500 lines)"),
        ("marker", "[Log was truncated, 1,200 lines more]\n" + "a row\n" * 600),
        (None, "a row\n" * 600 + "(truncated normal distribution)"),
        (None, "a row\n" * 600 + "It says [truncated for length] there."),
        (None, "a row\n" * 600 + "- [truncated]\n"),
        (None, "a row\n" * 300 + "if len(text) > most: text += '[truncated]'\n" + "a row\n" * 300),
        (None, "a row\n" * 600 + "| name | (truncated) |\n"),
        (None, "# How it cuts\n\n" + "Words.\n" * 200 + "\n```\n... [output truncated]\n```"),
        (None, "<feed><item>" + "a word " * 200 + "... [truncated]</item></feed>"),
        (None, "    ... [truncated]\n" + "    indented\n" * 200),
    ],
)
def test_what_is_around_a_notice(expected: str | None, text: str) -> None:
    assert expected == _reason(text)


@each_row(
    ("expected", "text"),
    [
        ("marker", '{"truncated": true, "rows": [{"a": "}"}]}'),
        ("marker", '{"rows": [{"a": "{"}], "truncated":true}\n'),
        ("marker", '{"rows": ' + json.dumps(["a word"] * 400) + ', "_truncated": true}'),
        ("marker", "Found:\n" + '{"rows": ' + json.dumps(["a word"] * 400) + ', "truncated": true}'),
        (None, '{"tables": [{"name": "events", "truncated": true}]}'),
        (None, '{"a": {"truncated": true}, "rows": ' + json.dumps(["a word"] * 400) + "}"),
        (None, '{"rows": ' + json.dumps(["a word"] * 400) + ', "a": {"truncated": true}, "b": 1}'),
        (None, '[{"truncated": true}, {"truncated": true}]'),
        (None, '{"a": 1}\n{"truncated": true}\n{"truncated": true}'),
        (None, '{"a": 1}\n' * 200 + '{"truncated": true}\n'),
        (None, 'function cut(rows) {\n  return {"rows": rows, "truncated": true};\n}\n'),
    ],
)
def test_a_key_speaks_for_the_object_that_it_is_in(expected: str | None, text: str) -> None:
    assert expected == _reason(text)


@pytest.mark.parametrize(("reason", "text"), [(row[1], row[2]) for row in RENDERED if row[1] == "cleared"])
def test_cleared_is_the_whole_content(reason: str, text: str) -> None:
    assert reason == _reason(f" {text}\n")
    assert None is _reason(f"The marker {text} stands for a cleared result.")


def test_a_result_that_is_complete_elsewhere_is_offloaded_whatever_else_it_says() -> None:
    text = "... [truncated]\n" + "x" * 200 + "\nOutput too large (1MB). Full output saved to: /tmp/a"
    assert Cut("offloaded") == find_cut(text)


ROWS = [{"id": number, "name": f"name {number}", "tags": ["a", None, True], "price": 1.5} for number in range(200)]


@each_row("text", [json.dumps(ROWS), json.dumps(ROWS, indent=1), json.dumps({"rows": ROWS})])
@pytest.mark.shows("001.cut_json")
def test_cut_json(text: str) -> None:
    cuts = random.Random(7).sample(range(2, len(text) - 1), 400)  # noqa: S311 - the same cases in every run
    found = [_reason(text[:cut]) for cut in cuts]
    # A cut right behind some inner bracket looks closed, if it is the right bracket.
    assert set(found) <= {"cut_json", "suspected", None}
    assert 0.96 <= (found.count("cut_json") + found.count("suspected")) / len(found)


@each_row(
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
    assert Cut("cut_json") == find_cut(text)


@each_row(
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
        json.dumps(ROWS) + "\nnext_cursor: MTIz",
        json.dumps({"rows": ROWS}) + "\r\nPage 1 of 7, 12 rows",
        (json.dumps({"rows": ROWS}) + "\n") * 3 + '{"rows": [{"id": 1, "na',
        " " + json.dumps(ROWS, indent=4) + "  \n",
    ],
    ids=lambda text: text[:25],
)
def test_no_false_alarm(text: str) -> None:
    assert None is find_cut(text)


@each_row(
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


@each_row(
    "cap",
    [5_000, 8_192, 10_000, 16_000, 20_000, 30_000, 40_000, 50_000, 65_536, 100_000, 131_072, 1_000_000, 1_048_576],
)
@pytest.mark.shows("001.host_cuts")
def test_a_length_that_is_a_known_cap_is_suspected(cap: int) -> None:
    assert Cut("suspected") == find_cut("x" * cap)
    text = "é" + "x" * (cap - 2)
    assert Cut("suspected") == find_cut(text, len(text.encode()))
    assert None is find_cut(text)


@pytest.mark.parametrize("text", ["half of an emoji: \ud83d", "half of its bytes: \ufffd"])
def test_half_a_character_at_the_end_is_suspected(text: str) -> None:
    assert Cut("suspected") == find_cut(text)


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


@each_row(
    ("expected", "value"),
    [
        (Cut("marker"), {"truncated": True, "rows": []}),
        (Cut("marker"), {"result_is_likely_truncated": True}),
        (Cut("marker"), {"_truncated": True, "originalCharCount": 250_000}),
        (Cut("marker"), {"output_head": "a", "output_tail": "b", "elided_chars": 12_000}),
        (Cut("marker"), Message("all there", truncated=True)),
        (Cut("offloaded"), Message("a preview", additional_kwargs={"lc_evicted_to": "/large/1"})),
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


@each_row(
    ("expected", "before", "after"),
    [
        (False, 10_000, "x" * 9_744),  # 256 bytes less
        (True, 10_000, "x" * 9_743),
        (False, 100_000, "x" * 99_000),  # 1 % less
        (True, 100_000, "x" * 98_999),
        (False, 100, ""),
        (False, 10_000, "x" * 10_001),
        (False, 10_000, str({"text": '"' * 5_500})),
        (False, 10_000, [{"type": "text", "text": str([{"text": '"' * 5_500}])}]),
        (True, 10_000, str({"text": '"' * 5_500})[:-1]),
        (True, 10_000, str({"text": '"' * 4_900})),  # less than half
        (True, 10_000, json.dumps({"text": "x" * 5_500})),
        (True, 10_000, "{'" + "x" * 5_500),
    ],
    ids=readable,
)
def test_what_is_less_in_another_form_is_not_shrunk(expected: bool, before: int, after: Any) -> None:  # noqa: FBT001
    assert expected == has_shrunk(before, len(after if isinstance(after, str) else after[0]["text"]), after)


def test_source_code_raises_almost_no_alarm() -> None:
    """At most 0.1 % of the standard library's files."""
    library = Path(sysconfig.get_path("stdlib"))
    paths = [path for path in library.rglob("*.py") if "site-packages" not in path.parts]
    texts = [path.read_text("utf-8", "replace") for path in paths]
    alarms = [text for text in texts if _reason(text) in ("marker", "offloaded", "cleared")]
    assert len(texts) >= 300
    assert len(alarms) <= 0.001 * len(texts)


@pytest.mark.parametrize("marker", ["... [truncated, 5 chars] ", "[... 7 chars elided ...]\n"])
def test_a_marker_that_stands_there_many_times_costs_little_more_than_one(marker: str) -> None:
    find_cut(marker)  # compiles the patterns
    once, often = calls(lambda: find_cut(marker)), calls(lambda: find_cut(marker * 40))
    assert 50 * 40 > often - once
