"""Pages: which rows, which cursor, and what becomes of one that is no good."""

from __future__ import annotations

import asyncio
import base64
import functools
import inspect
import itertools
import sqlite3
import subprocess
import sys
import typing
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

import agent_otel
from agent_otel._internal import env
from agent_otel.remedies import use_policy
from agent_otel.remedies.pagination import BadCursorError, Cursor, Window, offset_of, paginate, paginated
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROWS = list(range(45))


def test_pages_follow_one_another_to_the_end() -> None:
    first = paginate(ROWS)
    second = paginate(ROWS, cursor=first["next_cursor"])
    third = paginate(ROWS, cursor=second["next_cursor"])
    assert [first["items"], second["items"], third["items"]] == [ROWS[:20], ROWS[20:40], ROWS[40:]]
    assert third["next_cursor"] is None
    assert [page["total_estimate"] for page in (first, second, third)] == [45, 45, 45]


@each_row(
    ("asked", "size"), [(0, 1), (-5, 1), (1, 1), (50, 50), (51, 50), (10**30, 50), ("7", 7), ("many", 20), (None, 20)]
)
@pytest.mark.shows("001.pagination")
def test_a_page_has_1_to_50_rows_whatever_is_asked_for(asked: Any, size: int) -> None:
    assert len(paginate(range(100), page_size=asked)["items"]) == size


def test_an_iterator_is_taken_no_further_than_the_page_needs() -> None:
    rows = itertools.count()
    page = paginate(rows, page_size=3)
    assert (page["items"], page["total_estimate"]) == ([0, 1, 2], None)
    assert next(rows) == 4
    assert paginate(iter("ab"), page_size=2)["next_cursor"] is None
    assert paginate([])["next_cursor"] is None


@each_row(
    "cursor",
    [
        "5",
        "é",
        "x" * 10_000,
        "====",
        base64.urlsafe_b64encode(b"20:0000").decode(),
        base64.urlsafe_b64encode(b"-1:").decode(),
        base64.urlsafe_b64encode(b"no number:0").decode(),
        Cursor("another question").encode(20),
        Cursor(None).encode(20)[:-2],
        5,
        ["x"],
    ],
    ids=itertools.count(),
)
def test_a_cursor_that_was_not_made_for_this_is_refused(cursor: Any) -> None:
    with pytest.raises(BadCursorError, match="does not belong to these arguments"):
        paginate(ROWS, cursor=cursor)


def test_one_changed_letter_is_refused() -> None:
    for scope in range(40):  # also where the last letter has bits that no byte uses
        good = Cursor(scope).encode(20)
        for place, letter in enumerate(good):
            changed = good[:place] + ("A" if letter != "A" else "B") + good[place + 1 :]
            with pytest.raises(BadCursorError):
                offset_of(Cursor(scope), changed)
        assert offset_of(Cursor(scope), good) == 20


def test_processes_with_the_same_key_know_each_others_cursors(set_variables: Callable[..., None]) -> None:
    code = "from agent_otel.remedies.pagination import Cursor; print(Cursor(('search', {'q': 'a'})).encode(20))"
    ours, other = "the secret of this test", "the secret of another one"
    for key, is_known in ((ours, True), (other, False), (f"{ours},{other}", True), (f"{other},{ours}", False)):
        set_variables(AGENT_OTEL_CLAIM_CHECK_KEY=ours)
        made = subprocess.run(
            (sys.executable, "-c", code),
            env={"AGENT_OTEL_CLAIM_CHECK_KEY": key},
            capture_output=True,
            text=True,
            check=True,
        )
        try:
            assert offset_of(Cursor(("search", {"q": "a"})), made.stdout.strip()) == 20
        except BadCursorError:
            assert not is_known
        else:
            assert is_known


@each_row("scope", [{(1, 2): 3}, {1: 2, "a": 3}, object(), {"at": object()}])
def test_whatever_the_arguments_are_a_cursor_can_be_made_for_them(scope: object) -> None:
    assert offset_of(Cursor(scope), Cursor(scope).encode(20)) == 20


def test_objects_without_a_text_of_their_own_are_the_same_in_the_next_call() -> None:
    assert offset_of(Cursor({"context": object()}), Cursor({"context": object()}).encode(20)) == 20


@paginated
def search(query: str, limit: int = 100) -> list[str]:
    """Find something."""
    return [f"{query} {number}" for number in range(limit)]


@paginated(page_size=2)
async def search_later(query: str) -> Iterator[str]:
    """Find something later."""
    return (f"{query} {number}" for number in range(3))


class Repository:
    """A method is a tool as well."""

    @paginated
    def changes(self, since: str) -> list[str]:
        """List changes."""
        return [since] * 30


@pytest.mark.shows("001.pagination")
def test_a_decorated_tool_returns_pages() -> None:
    first = search("a")
    assert first["items"] == [f"a {number}" for number in range(20)]
    # Named or not, and with its default or without, it is the same question.
    second = search(query="a", limit=100, cursor=first["next_cursor"], page_size=5)
    assert second["items"] == [f"a {number}" for number in range(20, 25)]
    assert asyncio.run(search_later("b"))["items"] == ["b 0", "b 1"]
    repository = Repository()
    page = repository.changes("x", cursor=repository.changes("x")["next_cursor"])
    assert (len(page["items"]), page["next_cursor"]) == (10, None)


def test_a_bad_cursor_is_an_answer_and_no_exception() -> None:
    found = search("b", cursor=search("a")["next_cursor"])
    assert found["error"] == "bad_cursor"
    assert "Ask again without a cursor" in found["hint"]


def test_a_bad_cursor_costs_no_call() -> None:
    calls = []

    @paginated
    def rows(key: str) -> list[str]:
        calls.append(key)
        return [key] * 30

    @paginated
    async def rows_later(key: str) -> list[str]:
        calls.append(key)
        return [key] * 30

    good = rows("a")["next_cursor"]
    assert rows("b", cursor=good)["error"] == "bad_cursor"
    assert rows("a", cursor="forged")["error"] == "bad_cursor"
    assert asyncio.run(rows_later("a", cursor=good))["error"] == "bad_cursor"
    assert calls == ["a"]
    assert len(rows("a", cursor=good)["items"]) == 10
    with pytest.raises(TypeError):
        rows(cursor=good)


class Failure:
    """As a model of pydantic, which is an iterable of its fields."""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter([("error", "no_access")])

    def model_dump(self) -> dict[str, str]:
        """Return the fields."""
        return dict(self)


def test_what_is_no_list_goes_on_as_it_is() -> None:
    for value in ("text", b"bytes", {"a": 1}, None, 5, bytearray(b"x"), MappingProxyType({"a": 1}), Failure()):
        assert paginated(lambda value=value: value)() is value


def test_arguments_stay_named_for_decorators_of_the_program() -> None:
    seen: list[list[str]] = []

    def traced(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(**arguments: Any) -> Any:
            seen.append(sorted(arguments))
            return function(**arguments)

        return call

    @paginated
    @traced
    def rows(query: str, window: Window) -> list[str]:
        return [query][: window.limit]

    assert rows(query="a")["items"] == ["a"]
    assert seen == [["query", "window"]]


def test_a_window_may_stand_before_the_arguments() -> None:
    @paginated
    def rows(window: Window, query: str, *more: str, limit: int = 3) -> list[str]:
        return [query, *more, str(limit)][: window.limit]

    assert rows("a", "b", limit=4)["items"] == ["a", "b", "4"]
    assert rows(query="a")["items"] == ["a", "3"]
    assert rows("a", cursor={"a": 1})["error"] == "bad_cursor"


def test_what_a_framework_reads_of_the_tool_has_the_two_parameters() -> None:
    signature = inspect.signature(search)
    assert list(signature.parameters) == ["query", "limit", "cursor", "page_size"]
    assert signature.parameters["cursor"].default is None
    assert signature.parameters["page_size"].default == 20
    assert inspect.signature(search_later).parameters["page_size"].default == 2
    hints = typing.get_type_hints(search)
    assert (hints["cursor"], hints["page_size"], hints["query"]) == (str | None, int, str)
    assert (
        typing.get_type_hints(search, include_extras=True)["page_size"].__metadata__[0] == "Rows of the page, 1 to 50."
    )
    assert str(inspect.getdoc(search)).startswith("Find something.\n\nReturns one page: `items`, and `next_cursor`")
    assert inspect.iscoroutinefunction(search_later)
    assert agent_otel.remedies.paginated is paginated


# --- a tool that reads the page itself -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def orders() -> sqlite3.Connection:
    """Return a table of 45 orders, of which the even are open."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT)")
    database.executemany("INSERT INTO orders VALUES (?, ?)", [(n, "closed" if n % 2 else "open") for n in range(1, 46)])
    return database


def pages_of(tool: Callable[..., Any], **arguments: Any) -> list[Any]:
    """Return all pages."""
    pages = [tool(**arguments)]
    while pages[-1]["next_cursor"]:
        pages.append(tool(**arguments, cursor=pages[-1]["next_cursor"]))
    return pages


@pytest.mark.shows("001.pagination")
def test_a_tool_with_a_window_puts_the_offset_into_its_query(orders: sqlite3.Connection) -> None:
    asked: list[tuple[int, int, Any]] = []

    @paginated(page_size=10)
    def list_orders(status: str, *, window: Window) -> list[int]:
        """List orders."""
        asked.append((window.limit, window.offset, window.after))
        (window.total,) = orders.execute("SELECT count(*) FROM orders WHERE status = ?", (status,)).fetchone()
        query = "SELECT id FROM orders WHERE status = ? ORDER BY id LIMIT ? OFFSET ?"
        return [each for (each,) in orders.execute(query, (status, window.limit, window.offset))]

    pages = pages_of(list_orders, status="open")
    assert [page["items"] for page in pages] == [[*range(2, 21, 2)], [*range(22, 41, 2)], [42, 44]]
    assert [page["total_estimate"] for page in pages] == [22, 22, 22]
    assert asked == [(11, 0, None), (11, 10, None), (11, 20, None)]
    assert list(inspect.signature(list_orders).parameters) == ["status", "cursor", "page_size"]
    assert set(typing.get_type_hints(list_orders)) == {"status", "cursor", "page_size", "return"}
    assert list_orders(status="closed", cursor=pages[0]["next_cursor"])["error"] == "bad_cursor"
    assert len(asked) == 3


@pytest.mark.shows("001.pagination")
def test_a_tool_with_a_key_reads_on_after_the_last_row_though_rows_were_added_before_it() -> None:
    rows: list[dict[str, Any]] = [{"at": f"2026-01-{day:02}", "n": day} for day in range(2, 8)]
    asked: list[tuple[int, int, Any]] = []

    @paginated(page_size=2, key=lambda row: [row["at"], row["n"]])
    async def list_events(*, window: Window) -> Iterator[dict[str, Any]]:
        asked.append((window.limit, window.offset, window.after))
        after = window.after or ["", 0]
        return (row for row in sorted(rows, key=lambda row: row["n"]) if [row["at"], row["n"]] > after)

    first = asyncio.run(list_events())
    rows.append({"at": "2026-01-01", "n": 1})
    second = asyncio.run(list_events(cursor=first["next_cursor"]))
    third = asyncio.run(list_events(cursor=second["next_cursor"]))
    assert [[row["n"] for row in page["items"]] for page in (first, second, third)] == [[2, 3], [4, 5], [6, 7]]
    assert third["next_cursor"] is None
    assert asked == [(3, 0, None), (3, 0, ["2026-01-03", 3]), (3, 0, ["2026-01-05", 5])]


@each_row("position", [0, 20, -1, "a:b", "\u00e9", ["2026-01-01", 7], {"id": 3}, None, 1.5])
def test_a_cursor_returns_the_position_that_it_was_made_of(position: Any) -> None:
    assert agent_otel.remedies.Cursor is Cursor
    cursor = Cursor(("list_orders", {"status": "open"})).encode(position)
    assert Cursor(("list_orders", {"status": "open"})).decode(cursor) == position
    with pytest.raises(BadCursorError):
        Cursor(("list_orders", {"status": "closed"})).decode(cursor)


def test_a_key_is_no_offset_and_a_long_key_makes_no_cursor() -> None:
    with pytest.raises(BadCursorError):
        paginate(ROWS, cursor=Cursor().encode("20"))
    longest = "x" * 510
    assert Cursor().decode(Cursor().encode(longest)) == longest
    with pytest.raises(ValueError, match="a position has 513 bytes of JSON; a cursor takes 512"):
        Cursor().encode(longest + "x")


def test_an_argument_that_the_tool_changes_in_place_does_not_end_the_pages() -> None:
    @paginated(page_size=2)
    def take(filters: list[str]) -> list[int]:
        filters.clear()
        return [1, 2, 3]

    first = take(["a"])
    assert take(["a"], cursor=first["next_cursor"])["items"] == [3]


def test_a_token_that_the_policy_injects_anew_does_not_end_the_pages(
    set_variables: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_variables(AGENT_OTEL="1", AGENT_OTEL_TOOL_POLICY="code")
    monkeypatch.setattr(env, "active", True)
    tokens = iter(range(9))
    token = {"call": lambda _: f"token-{next(tokens)}"}
    use_policy({"rules": [{"tools": "rows", "inject": {"token": token}}]})

    @agent_otel.tool
    @paginated
    def rows(query: str, token: str = "") -> list[str]:
        return [f"{query} {token}"] * 30

    first = rows("a")
    second = rows("a", cursor=first["next_cursor"])
    assert (second["items"][0], second["next_cursor"]) == ("a token-1", None)
