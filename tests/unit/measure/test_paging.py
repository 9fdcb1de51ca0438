"""Pages in the words of the APIs that return them, and results that have the same words and are whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_otel.measure.truncation.paging import PAGE, further, is_page
from tests.rows import each_row

ROWS = [{"id": number, "user": {"id": number}, "name": f"row {number}"} for number in range(30)]

PAGES: dict[str, Any] = {
    "MCP": {"tools": ROWS, "nextCursor": "abc"},
    "Google": {"items": ROWS, "nextPageToken": "CAUQAA"},
    "Slack": {"ok": True, "messages": ROWS, "response_metadata": {"next_cursor": "dGVhbQ=="}},
    "Stripe": {"object": "list", "data": ROWS, "has_more": True, "url": "/v1/charges"},
    "GitHub's GraphQL": {"data": {"repository": {"issues": {"nodes": ROWS, "pageInfo": {"hasNextPage": True}}}}},
    "GitHub's search": {"total_count": 5_000, "incomplete_results": False, "items": ROWS},
    "GitHub's search, timed out": {"total_count": 30, "incomplete_results": True, "items": ROWS},
    "Microsoft Graph": {"value": ROWS, "@odata.nextLink": "https://graph.microsoft.com/v1.0/users?$skiptoken=X"},
    "Azure": {"value": ROWS, "nextLink": "https://management.azure.com/x?$skiptoken=X"},
    "JSON:API": {"data": ROWS, "links": {"next": "/articles?page[offset]=2"}},
    "HAL": {"_embedded": {"orders": ROWS}, "_links": {"next": {"href": "/orders?page=2"}}},
    "S3": {"IsTruncated": True, "NextContinuationToken": "1ueG", "Contents": ROWS},
    "DynamoDB": {"Items": ROWS, "Count": 30, "LastEvaluatedKey": {"id": {"S": "row 29"}}},
    "Link header": {"status": 200, "headers": {"Link": '<https://api.github.com/x?page=2>; rel="next"'}, "body": ROWS},
    "totalResults": {"totalResults": 214, "Resources": ROWS},
    "total": {"items": ROWS, "total": 31},
    "a cursor named next": {"items": ROWS, "next": "b2Zmc2V0"},
    "the rest in numbers": {"items": ROWS, "total": 45, "count": 30, "remaining": 15},
}
WHOLE: dict[str, Any] = {
    "last page": {"data": ROWS, "has_more": False, "next_cursor": None},
    "last of GraphQL": {"data": {"repository": {"issues": {"nodes": ROWS, "pageInfo": {"hasNextPage": False}}}}},
    "total is reached": {"items": ROWS, "total": 30},
    "complete although the total is another": {"rows": ROWS, "total": 4_096, "truncated": False},
    "an order": {"lines": [{"price": 100}, {"price": 200}], "currency": "EUR", "total": 300},
    "no list": {"status": "ok", "total": 300},
    "previous only": {"status": 200, "headers": {"Link": '<https://x/?page=1>; rel="prev"'}, "body": ROWS},
    "offset": {"items": ROWS[:5], "offset": 40, "total": 45},
    "page": {"items": ROWS[:5], "page": 3, "per_page": 20, "total_count": 45},
    "a package.json": {"name": "app", "dependencies": {"next": "14.2.3", "react": "^18"}},
    "a state machine": {
        "StartAt": "One",
        "States": {"One": {"Type": "Task", "Next": "Two"}, "Two": {"Type": "Succeed"}},
    },
    "steps": {"steps": [{"id": "a", "next": "b"}, {"id": "b", "next": None}]},
    "tests": {"total": 120, "passed": 118, "failed": 2, "failures": ["test_a", "test_b"]},
}


@each_row("name", PAGES)
def test_a_page_is_recognised_as_object_and_as_text(name: str) -> None:
    page = PAGES[name]
    assert is_page(page)
    assert is_page(json.dumps(page))
    assert is_page([{"type": "text", "text": json.dumps(page)}])


@each_row("name", WHOLE)
def test_a_whole_result_is_no_page(name: str) -> None:
    assert not is_page(WHOLE[name])
    assert not is_page(json.dumps(WHOLE[name]))
    assert not is_page(json.dumps(WHOLE[name], indent=2))


@each_row(
    ("arguments", "expected"),
    [
        ({}, True),
        ({"page": 1}, True),
        ({"offset": 20}, True),
        ({"offset": 40}, False),
        ({"page": 2, "per_page": 20}, True),
        ({"page": 3, "per_page": 20}, False),
        ({"page": 3}, False),
        ({"cursor": "abc"}, False),
    ],
)
def test_the_arguments_say_where_a_page_begins(arguments: dict[str, Any], *, expected: bool) -> None:
    page = {"items": ROWS[:5], "total": 45}
    assert is_page(page, arguments) is expected
    assert is_page(json.dumps(page), json.dumps(arguments)) is expected


def test_items_of_a_long_text_are_counted_by_their_first_key() -> None:
    rows = ROWS * 20
    assert is_page(json.dumps({"total_count": 5_000, "items": rows}))
    # The users have the same key, so that no more is certain than that there are at most 1,200 items.
    assert not is_page(json.dumps({"total_count": 1_000, "items": rows}))
    assert is_page(json.dumps({"items": rows, "totalResults": 5_000}))


def test_text_is_read_at_its_ends_only() -> None:
    text = json.dumps({"rows": ROWS * 20, "has_more": True, "more": ROWS * 20})
    assert not is_page(text)
    assert not is_page("The API returns has_more: true and next_cursor.\n" * 20)
    assert not is_page("")


@pytest.mark.parametrize("rows", [5, 1_000])
def test_the_word_next_is_a_cursor_by_its_place_or_its_address(rows: int) -> None:
    row = {"id": 1, "name": "a row of a report"}
    lock = {"packages": {"": {"name": "app", "dependencies": {"next": "14.2.3"}}, **{str(n): row for n in range(rows)}}}
    assert not is_page(json.dumps(lock))
    assert not is_page(json.dumps([{**row, "next": "b"}] * rows))
    assert is_page(json.dumps({"next": "b2Zmc2V0", "items": [row] * rows}))
    assert is_page(json.dumps({"items": [row] * rows, "next": "b2Zmc2V0"}))
    assert is_page(json.dumps({"items": [row] * rows, "serpapi": {"next": "https://serpapi.com/x?start=10"}}))


def test_a_long_page_of_items_with_a_next_is_one_by_its_flag_or_its_total() -> None:
    steps = [{"id": 1, "next": "step-2", "name": "a row of a report"}] * 1_000
    for text in (json.dumps({"has_more": True, "steps": steps}), json.dumps({"steps": steps, "has_more": True})):
        assert PAGE == further(text)
    assert 0 == further(json.dumps({"has_more": False, "steps": steps}))
    assert 1_000 == further(json.dumps({"total_count": 5_000, "steps": steps}))
    assert 0 == further(json.dumps({"total_count": 1_000, "steps": steps}))
