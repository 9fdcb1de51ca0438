"""Results of exactly a round number of rows or lines, again and again, are suspected to be cut."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.core.thread import fragments
from agent_otel.core.thread.fragments import RoundCounts
from agent_otel.measure.truncation.paging import further
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = [{"id": number, "name": f"row {number}"} for number in range(400)]


def _suspicions(results: list[Any], arguments: Any = None) -> list[bool]:
    """Return what the results of one tool give, one after the other."""
    counts = RoundCounts()
    return [
        counts.note("query", value, arguments, further(value, arguments), f"{number}")
        for number, value in enumerate(results)
    ]


FORMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "object": lambda answer: answer,
    "text": json.dumps,
    "block": lambda answer: [{"type": "text", "text": json.dumps(answer)}],
}


@each_row("form", FORMS)
@each_row("most", [10, 50, 64, 100])
@pytest.mark.shows("001.tool_cuts")
def test_rows_below_a_total(form: str, most: int) -> None:
    answers = [FORMS[form]({"rows": ROWS[:most], "total": 400 - number}) for number in range(4)]
    assert _suspicions(answers) == [False, False, True, True]


@each_row(
    ("answers", "arguments"),
    [
        ([{"rows": ROWS[:37], "total": 400}] * 5, None),
        ([{"rows": ROWS[:50], "total": 400}, {"rows": ROWS[:60], "total": 400}] * 3, None),
        ([{"rows": ROWS[:50], "total": 400, "next_cursor": "abc"}] * 5, None),
        ([{"rows": ROWS[:50], "total": 400, "page": 1}] * 5, None),
        ([{"rows": ROWS[:50], "total": 400, "limit": 50}] * 5, None),
        ([{"rows": ROWS[:50], "total": 400}] * 5, {"limit": 50}),
        ([{"rows": ROWS[:50], "total": 400}] * 5, {"most": 50}),
        ([{"rows": ROWS[:50], "total": 400}] * 5, {"page": 1}),
        ([{"rows": ROWS[:50], "total": 400}] * 5, '{"max_results": 50}'),
        ([{"rows": ROWS[:50], "total": 50}] * 5, None),
        ([{"rows": ROWS[:10]}] * 9, None),
    ],
    ids=[
        *("no round number", "other numbers", "cursor", "page", "limit in the answer", "limit", "another name"),
        *("page that was requested", "JSON arguments", "all", "ten of a list"),
    ],
)
def test_pages_and_limits_of_the_caller(answers: list[Any], arguments: Any) -> None:
    assert not any(_suspicions(answers, arguments))


def _lines(count: int, number: int) -> str:
    return "".join(f"line {line} of log {number}\n" for line in range(count))


@each_row("count", [50, 100, 200, 250, 256, 500, 1_000])
def test_the_first_lines(count: int) -> None:
    texts = [_lines(count, number) for number in range(4)]
    assert _suspicions(texts) == [False, False, False, True]
    assert _suspicions([text[:-1] for text in texts]) == [False, False, False, True]
    assert _suspicions([[{"type": "text", "text": text}] for text in texts]) == [False, False, False, True]


def test_the_last_lines_where_some_results_have_fewer() -> None:
    counts = [12, 100, 100, 7, 100, 100, 30, 3, 3]
    assert _suspicions([_lines(count, number) for number, count in enumerate(counts)])[:6] == [False] * 5 + [True]


@pytest.mark.shows("001.tool_cuts")
def test_rows_without_a_total() -> None:
    answers: list[Any] = [{"rows": ROWS[number : number + 50]} for number in range(5)]
    assert _suspicions(answers) == [False, False, False, True, True]
    assert _suspicions([answer["rows"] for answer in answers]) == [False, False, False, True, True]


@each_row(
    ("values", "arguments"),
    [
        ([_lines(100, 1), _lines(100, 2), _lines(101, 3)] * 4, None),
        ([_lines(count, count) for count in range(60, 100)], None),
        ([_lines(100, number) for number in range(9)], {"lines": 100}),
        ([_lines(100, number) for number in range(9)], {"path": "a", "count": "100"}),
        ([_lines(30, number) for number in range(9)], None),
        ([ROWS[:100]] * 9, {"ids": list(range(100))}),
        (["word " * 20_000] * 9, None),
    ],
    ids=["one has more", "any number", "asked", "asked by a text", "few", "as many as given", "one line"],
)
def test_numbers_that_mean_nothing(values: list[Any], arguments: Any) -> None:
    assert not any(_suspicions(values, arguments))


def test_the_same_result_again_is_no_second_one() -> None:
    """A list of the fifty states has fifty rows each time."""
    counts = RoundCounts()
    assert not any(counts.note("states", ROWS[:50], {}, 0, "the same") for _ in range(40))


def test_the_memory_is_bounded_and_holds_integers() -> None:
    counts = RoundCounts()
    for number in range(1_000):
        counts.note(f"tool {number}", _lines(100, number), {}, 0, "a")
    assert len(counts) == 100
    assert {type(field) for tool in counts.tools.values() for field in tool} == {int}


def test_many_results_cost_little() -> None:
    """After the first ones, one of eight is counted."""
    counts = RoundCounts()
    text = _lines(90, 1)
    for number in range(fragments.ALL_OF):
        counts.note("read", text, {}, 0, f"{number}")
    before = counts.counted
    for number in range(80):
        counts.note("read", text, {}, 0, f"{number}")
    assert counts.counted - before == 10
