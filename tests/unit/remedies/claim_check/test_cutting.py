"""Cutting between lines, elements and characters: expected texts by hand."""

from __future__ import annotations

import csv
import io
import json

from agent_otel.remedies.claim_check.serialization import head
from tests.rows import each_row


@each_row(
    ("text", "limit_bytes", "kept"),
    [
        ("", 0, ""),
        ("abc", 0, ""),
        ("abc", 3, "abc"),
        ("abc", 2, "ab"),
        ("größe", 4, "grö"),  # ö is two bytes
        ("größe", 3, "gr"),  # and is not cut in two
        ("字字", 5, "字"),
        ("one\ntwo\nthree", 9, "one\ntwo\n"),
        ("one\n" + "x" * 100, 64, "one\n" + "x" * 60),  # the line's end is in the first eighth
        ("[1, 2, 3, 4]", 6, "[1, 2"),
        ('["a,b", "c,d,e"]', 13, '["a,b"'),  # no comma inside of a text counts
        ('["a]b", "c]d]e"]', 13, '["a]b"'),
        ('["a\\"", "b\\\\', 11, '["a\\""'),
        ('["a", "b\\', 9, '["a", "b\\'),  # all of it fits
        ('{"a": 1, "b": {"c": 2}, "d": 3}', 25, '{"a": 1, "b": {"c": 2}'),
        ('["' + "x" * 100 + '"]', 64, '["' + "x" * 62),
        ('[{"a": 1, "b": 2}, {"a": 1, "b": 2}]', 30, '[{"a": 1, "b": 2}'),  # not behind the second a
        ("[{'a': 1, 'b': ']'}, {'a': 1, 'b': 2}]", 34, "[{'a': 1, 'b': ']'}"),  # as Python writes it
        ('2 found: [{"a": 1, "b": 2}, {"a": 1, "b": 2}]', 39, '2 found: [{"a": 1, "b": 2}'),
        ('{"a": 1}\n{"a": 1, "b": 2}', 20, '{"a": 1}'),
        ("id,name\n1,one\n2,two\n", 17, "id,name\n1,one\n"),
        ('id,text\n1,"a\nb"\n2,"c\nd, e"\n', 24, 'id,text\n1,"a\nb"\n'),  # not inside of the second row
        ('id,inch\n1,3"\n2,4\n3,5', 19, 'id,inch\n1,3"\n2,4\n'),  # a mark that quotes nothing
        (
            "| id | name |\n| --- | --- |\n| 1 | one, two |\n| 2 | two |",
            55,
            "| id | name |\n| --- | --- |\n| 1 | one, two |\n",
        ),
        ("[10:00:00] a, b\n[10:00:01] c, d\n[10:00:02] e, f", 45, "[10:00:00] a, b\n[10:00:01] c, d\n"),
        ("[1] one, two\n[2] three, four", 20, "[1] one, two\n"),
        ("[a](http://x), b\n[c](http://y), d", 30, "[a](http://x), b\n"),
        ('{"rows": [{"a": 1}, {"a": 2}, {"a": 3}]}', 36, '{"rows": [{"a": 1}, {"a": 2}'),
        ('[{"a": 1}, {"a": NaN}, {"a": tr', 29, '[{"a": 1}, {"a": NaN}'),
        ('[["a"], ["b"], ["c"]] are three', 30, '[["a"], ["b"], ["c"]]'),
        ('[["a"], nothing, ["b"], ["c", "d"]]', 28, '[["a"], nothing, ["b"]'),  # no JSON
        ("[1.5, -2, 3e4, 5]", 14, "[1.5, -2, 3e4"),
        ("[1]\n[2]\n[3]", 9, "[1]\n[2]"),
        ("<r><a>1</a><a>2</a><a>3</a></r>", 24, "<r><a>1</a><a>2</a>"),
        ("<r><a x='1'/><a x='2'/><a x='3'/></r>", 30, "<r><a x='1'/><a x='2'/>"),
        ("<ul><li>a<br>b</li><li>c<br>d</li></ul>", 32, "<ul><li>a<br>b</li>"),  # a tag that stays open
        ("<r><!-- <a> --><a>1</a><a>2</a></r>", 29, "<r><!-- <a> --><a>1</a>"),
        ("<r><a><![CDATA[</a>]]></a><a>2</a></r>", 32, "<r><a><![CDATA[</a>]]></a>"),
        ("<" * 50, 20, "<" * 20),
    ],
)
def test_a_text_ends_where_a_reader_would_end_it(text: str, limit_bytes: int, kept: str) -> None:
    assert kept == head(text, limit_bytes)


@each_row("limit_bytes", range(0, 400, 7))
def test_rows_are_whole_at_every_length(limit_bytes: int) -> None:
    text = json.dumps([{"id": number, "title": 'a, "b" ] ß \\'} for number in range(20)], ensure_ascii=False)
    kept = head(text, limit_bytes)
    assert text.startswith(kept)
    assert len(kept.encode()) <= limit_bytes
    if limit_bytes >= 100:  # there is a whole row in the last seven eighths
        assert json.loads(
            kept.rstrip(", ") + ("" if kept.endswith("]") else "}]" if kept.count("{") > kept.count("}") else "]")
        )


@each_row("limit_bytes", range(200, 900, 13))
@each_row("delimiter", [",", ";", "\t"])
def test_rows_of_a_table_are_whole_at_every_length(limit_bytes: int, delimiter: str) -> None:
    rows = [["id", "note", "is_late"], *([str(number), 'two\nlines, "quoted"; ß', "true"] for number in range(40))]
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter).writerows(rows)
    kept = list(csv.reader(io.StringIO(head(written.getvalue(), limit_bytes)), delimiter=delimiter))
    assert kept == rows[: len(kept)]
    assert len(kept) > 1


ROWS = {
    "XML in one line": ("<rows>{}</rows>", '<row id="{}"><late>true</late></row>', "<row ", "</row>"),
    "XML": ("<?xml version='1.0'?>\n<rows>\n{}</rows>\n", "  <row>\n    <id>{}</id>\n  </row>\n", "<row>", "</row>"),
    "HTML": ("<table>\n{}</table>", "<tr><td>{}</td>\n<td>late</td></tr>\n", "<tr>", "</tr>"),
    "YAML": ("rows:\n{}", "- id: {}\n  tags:\n    - a\n    - b\n  late: true\n", "- id", "late: true\n"),
    "paragraphs": ("{}", "Id: {}\nName: ß\nLate: true\n\n", "Id:", "Late: true\n"),
}


@each_row("limit_bytes", range(500, 1_500, 13))
@each_row("name", ROWS)
def test_rows_of_several_lines_are_whole_at_every_length(limit_bytes: int, name: str) -> None:
    around, row, begins, ends = ROWS[name]
    text = around.format("".join(row.format(number) for number in range(60)))
    kept = head(text, limit_bytes)
    assert text.startswith(kept)
    assert len(kept.encode()) <= limit_bytes
    assert kept.count(begins) == kept.count(ends) > 5


def test_a_log_behind_an_item_or_a_paragraph_is_not_cut_back_to_it() -> None:
    text = "- one\n\nlog\n" + "started\n" * 100
    assert head(text, 404) == "- one\n\nlog\n" + "started\n" * 49


def test_a_tag_without_its_end_takes_no_minutes() -> None:
    text = "<p><a" + "x" * 400_000
    assert head(text, 300_000) == text[:300_000]


def test_half_a_surrogate_is_no_reason_to_fail() -> None:
    assert head("a\ud800b", 2) == "a?"
