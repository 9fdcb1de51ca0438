"""Values by which pages name the next one, and the arguments of calls that have them."""

from __future__ import annotations

import json
from typing import Any

from agent_otel.measure.truncation.paging import cursors, next_page
from tests.rows import each_row
from tests.unit.measure.test_paging import PAGES, ROWS

NEXT = {
    "MCP": ["abc"],
    "Google": ["CAUQAA"],
    "Slack": ["dGVhbQ=="],
    "Stripe": [],
    "Microsoft Graph": ["https://graph.microsoft.com/v1.0/users?$skiptoken=X"],
    "Azure": ["https://management.azure.com/x?$skiptoken=X"],
    "JSON:API": ["/articles?page[offset]=2"],
    "HAL": ["/orders?page=2"],
    "S3": ["1ueG"],
    "Link header": ["https://api.github.com/x?page=2"],
    "total": [],
}


@each_row("name", NEXT)
def test_the_next_page_of_an_object_and_of_a_text(name: str) -> None:
    page = PAGES[name]
    assert cursors(page) == NEXT[name]
    assert cursors([{"type": "text", "text": json.dumps(page)}]) == NEXT[name]


def test_the_ends_of_a_long_text() -> None:
    assert cursors(json.dumps({"rows": ROWS * 30, "next": "/behind"})) == ["/behind"]
    assert cursors(json.dumps({"next": "/before", "rows": ROWS * 30})) == ["/before"]
    assert cursors(json.dumps({"rows": ROWS * 30, "next": "/between", "more": ROWS * 30})) == []


def test_pages_of_other_kinds() -> None:
    page = {"data": {"issues": {"nodes": ROWS, "pageInfo": {"hasNextPage": True, "endCursor": "Y3Vyc29y"}}}}
    assert cursors(page) == cursors(json.dumps(page)) == ["Y3Vyc29y"]
    assert cursors({"items": ROWS, "next_page": 2}) == cursors('{"next_page": 2}') == ["2"]
    assert cursors(r'{"next": "a\/b \"c\""}') == ['a/b "c"']
    assert cursors(r'{"next_cursor": "\x"}') == []
    assert cursors(None) == cursors(7) == cursors([]) == cursors({"next": object()}) == []


@each_row(
    ("arguments", "expected"),
    [
        ({"page_id": "CAUQAA", "q": "all"}, ["CAUQAA"]),
        ('{"url": "https://x/?page=2"}', ["https://x/?page=2"]),
        ({"page": 2, "id": 2}, ["2"]),
        ({"cursor": "abc", "after": True}, ["abc"]),
        ({"text": "x" * 3000}, []),
        (None, []),
    ],
)
def test_arguments_that_may_name_a_page(arguments: Any, expected: list[str]) -> None:
    assert next_page(arguments) == expected
