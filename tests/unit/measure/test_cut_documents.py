"""Documents that stop: Python's own writing, JSON behind words or in an object, and placeholders for depth."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import pprint
import random
from typing import Any

import pytest

from agent_otel.measure.truncation import Cut, find_cut
from tests.rows import each_row

CUT = Cut("cut_json")
ROWS = [{"id": number, "name": f"row {number}", "tags": ["a", None]} for number in range(200)]
MIXED = [
    {
        "id": number,
        "name": f"it's {number}",
        "at": dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc),
        "p": decimal.Decimal("1.5"),
    }
    for number in range(200)
]


@each_row(
    "text",
    [str(ROWS), str({"rows": ROWS, "total": 200}), repr(MIXED), pprint.pformat(ROWS), str([("a", 1)] * 400)],
    ids=["rows", "object", "mixed", "pprint", "tuples"],
)
def test_cut_python(text: str) -> None:
    assert None is find_cut(text)
    cuts = random.Random(7).sample(range(12, len(text) - 1), 200)  # noqa: S311 - the same cases in every run
    found = [find_cut(text[:cut]) for cut in cuts]
    assert 0.96 <= sum(cut is not None for cut in found) / len(found)
    assert {cut.reason for cut in found if cut is not None} <= {"cut_json", "suspected"}


@each_row(
    "text",
    [
        "['a', 'b'], ['c', 'd'] and more",
        "['a', 'b'].forEach(x => x)\nmain();\n",
        "('a', 'b')\n\nx = 1\n",
        "{'a'; 'b'}.",
        "('see below'), and then some more",
        "[(1, 2), (3, 4)] are the pairs",
        "['quoted'] is what it was called, and: more",
        str(ROWS) + "\n\nThese are all rows.",
    ],
)
def test_no_cut_python(text: str) -> None:
    assert None is find_cut(text)


CUT_JSON = json.dumps({"total": 200, "rows": ROWS})[:4_990]


@each_row(
    "text",
    [
        f"Found 200 rows:\n{CUT_JSON}",
        f"Found 200 rows:\n\n{json.dumps(ROWS, indent=2)[:4_990]}",
        f"```json\n{CUT_JSON}\n```",
        f"Here it is.\n```json\n{CUT_JSON}",
        f"HTTP/1.1 200 OK\ncontent-type: application/json\n\n{CUT_JSON}",
        f"Found many rows:\n{json.dumps(ROWS * 20)[:100_000]}",
        f"Found many rows:\n{json.dumps(ROWS * 20, indent=2)[:100_013]}",
        json.dumps({"status": 200, "body": CUT_JSON}),
        json.dumps({"body": CUT_JSON, "status": 200}, indent=2),
    ],
    ids=["words", "indented", "fence", "open fence", "headers", "long", "long indented", "body", "body first"],
)
@pytest.mark.shows("001.cut_json")
def test_cut_json_in_a_text(text: str) -> None:
    assert CUT == find_cut(text)
    assert CUT == find_cut([{"type": "text", "text": text}])


@each_row(
    "value",
    [
        [{"text": CUT_JSON}],
        [{"type": "text", "text": CUT_JSON}],
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": CUT_JSON}]},
        {"type": "tool_result", "tool_use_id": "a", "content": CUT_JSON},
        {"toolResult": {"toolUseId": "a", "content": [{"text": CUT_JSON}], "status": "success"}},
        [{"json": {"result": CUT_JSON}}],
        {"json": {"result": CUT_JSON}},
        {"content": [{"type": "text", "text": CUT_JSON}], "isError": False},
        {"status": 200, "body": CUT_JSON},
    ],
)
@pytest.mark.shows("001.cut_json")
def test_cut_json_in_a_block(value: Any) -> None:
    assert CUT == find_cut(value)


@each_row(
    "value",
    [
        f"Found 200 rows:\n{json.dumps(ROWS)}",
        f"Found 200 rows:\n{json.dumps(ROWS, indent=2)}\n\nThat is all.",
        f"# API\n\n```json\n{json.dumps(ROWS[:20], indent=2)}\n```\n\nIt returns rows.",
        f"Example:\n{json.dumps(ROWS * 20)}\n\n" + "The service returns rows like these. " * 40,
        f"Example:\n{json.dumps(ROWS * 20, indent=2)}\n\n" + "The service returns rows like these.\n" * 40,
        "int main()\n{\n    return 0;\n}\n",
        "static int numbers[] =\n{\n  1, 2, 3,\n  4\n};\nint x;\n",
        "notes\n[a link](https://example.com)\nmore",
        "log\n[INFO] a\n[INFO] b",
        "rows\n" + '{"a": 1}\n' * 300 + "done",
        {"path": "a.json", "content": json.dumps(ROWS)},
        {"status": 200, "body": '{"a" is how it begins'},
        {"text": "...[truncated]"},
    ],
)
def test_a_document_that_does_not_stop(value: Any) -> None:
    assert None is find_cut(value)


@each_row(
    "text",
    [
        "{ id: 1, author: { login: 'x', plan: [Object] }, labels: [ [Object], [Object] ] }",
        "{\n  id: 1,\n  rows: [Array],\n  user: { name: 'x' }\n}\n",
        "[\n  { id: 1, author: [Object] },\n  { id: 2, author: [Object] }\n]",
        '{"a": {"b": "[Object]"}, "c": 1}',
        '{"rows":["[object Object]","[object Object]"]}',
        "{'a': {'b': {...}}, 'c': [1]}",
        "{'a': {'b': [...]}}",
    ],
)
def test_a_placeholder_for_depth(text: str) -> None:
    assert Cut("marker") == find_cut(text)


@each_row(
    "text",
    [
        "[1, 2, ...]",
        '{"note": "Node.js prints [Object] for it"}',
        "[{'a': 1}, ...]",
        "{ a: '[Object]' }",
        "[Object] is what Node.js prints: [Object]",
        "@param {Object} [Object]",
        "{...}",
    ],
)
def test_no_placeholder(text: str) -> None:
    assert None is find_cut(text)


def test_a_long_remark_may_follow_a_document_on_several_lines() -> None:
    document = json.dumps({"results": [{"id": number, "name": f"row {number}"} for number in range(60)]}, indent=2)
    for length in (100, 320, 2_000):
        assert find_cut(f"{document}\n\n{'word ' * (length // 5)}.") is None
        assert find_cut(document.replace("\n", "\r\n") + f"\r\n\r\n{'word ' * (length // 5)}.") is None
    for begin in ("", f"{document}\n{document}\n"):
        assert find_cut(begin + document[:-200]).reason == "cut_json"  # type: ignore[union-attr]
