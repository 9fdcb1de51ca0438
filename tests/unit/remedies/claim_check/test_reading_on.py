"""Reading on in a large result: pages are ranges, and the event loop goes on whatever a model asks for."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agent_otel
from agent_otel import semconv
from agent_otel.core import handler
from agent_otel.core.types import Invocation, Replacement, ToolCall, ToolReader, ToolResult
from agent_otel.remedies.claim_check import get_tool_result, policy
from agent_otel.remedies.claim_check.envelope import CHUNK_BYTES, Origin
from agent_otel.remedies.claim_check.get_tool_result import at_path
from agent_otel.remedies.claim_check.stores.base import MemoryStore
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

READER = ToolReader(lambda invocation: invocation.instance, ToolResult, replace=lambda _, found, __: found)


class Counting(MemoryStore):
    """Counts the bytes that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.read_bytes = 0

    def get(self, key: str) -> bytes:
        """Read and count."""
        found = super().get(key)
        self.read_bytes += len(found)
        return found

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Read and count."""
        found = super().get_range(key, start, end)
        self.read_bytes += len(found)
        return found


@pytest.fixture
def store(set_variables: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Iterator[Counting]:
    """The store of the claim check."""
    set_variables(
        AGENT_OTEL="1",
        AGENT_OTEL_CLAIM_CHECK="memory:",
        AGENT_OTEL_CLAIM_CHECK_KEY="a secret of the tests",
        AGENT_OTEL_CLAIM_CHECK_BUDGET="60",
    )
    made = Counting()
    monkeypatch.setattr(policy, "_given", made)
    policy.current.cache_clear()
    yield made
    policy.current.cache_clear()


def stored(text: str) -> str:
    """The reference of a result."""
    visit = handler.enter_tool(READER, Invocation(ToolCall("search", {}, "call_1"), (), {}))
    assert isinstance(visit, handler.Visit)
    with visit:
        found: Any = visit.remedied(text, Invocation(None, (), {}))
    assert isinstance(found, Replacement)
    return str(found.data["ref"])


def read_all(ref: str, **asked: str) -> list[str]:
    """All pages."""
    pages, cursor = [], None
    while True:
        page = agent_otel.remedies.get_tool_result(ref, cursor, **asked)
        pages.append(page["content"])
        assert page["end"] - page["start"] >= len(page["content"].encode())
        assert len(json.dumps(page["content"], ensure_ascii=False).encode()) <= get_tool_result.PAGE_BYTES + 2
        cursor = page.get("next_cursor")
        if cursor is None:
            assert page["end"] == page["size_bytes"]
            return pages


def test_pages_are_read_as_ranges(store: Counting) -> None:
    text = "".join(f"{number} größe 🦆 \ud800\n" for number in range(100_000))
    size = len(text.encode("utf-8", "surrogatepass"))
    with agent_otel.execution("run-1"):
        ref = stored(text)
        store.read_bytes = 0
        pages = read_all(ref)
    assert "".join(pages) == text.replace("\ud800", "?")  # no request can be sent with half a character
    # A page lies in two chunks at most; header and digests come with it.
    assert store.read_bytes <= len(pages) * (2 * CHUNK_BYTES + 1024 + 64 * (size // CHUNK_BYTES + 1))


def test_a_text_without_lines_is_cut_between_characters(store: Counting) -> None:
    del store
    text = "🦆ß" * 20_000
    with agent_otel.execution("run-1"):
        assert "".join(read_all(stored(text))) == text


def test_pages_of_a_text_with_half_a_character_follow_each_other(store: Counting) -> None:
    del store
    text = "\ud83d" + "Straßenverkehrsordnung, Menü\n" * 2_000
    with agent_otel.execution("run-1"):
        ref = stored(text)
        pages: list[str] = []
        page: dict[str, Any] = {}
        while not pages or "next_cursor" in page:
            page = agent_otel.remedies.get_tool_result(ref, page.get("next_cursor"))
            pages.append(page["content"])
    assert "".join(pages) == text.replace("\ud83d", "?")


def test_a_selection_of_a_summarised_result_is_that_of_its_owner_and_of_what_is_stored_now(store: Counting) -> None:
    del store
    for turn in ("first", "second"):
        for owner in ("alice", "bob"):
            text = "\n".join(f"{turn} of {owner} {number}" for number in range(2_000))
            archive = policy.archive()
            assert archive is not None
            origin = Origin(owner, owner, semconv.CONTEXT_SUMMARIZE, "search", "call_1")
            archive.writer.put(text, origin)
        for owner in ("alice", "bob"):
            with agent_otel.execution(owner):
                assert "".join(read_all("call_1", lines="1-2000")) == text.replace("bob", owner)


def test_a_selection_has_pages_too(store: Counting) -> None:
    del store
    rows = [{"id": number, "body": "ß" * 20} for number in range(5_000)]
    with agent_otel.execution("run-1"):
        ref = stored(json.dumps({"rows": rows, "note": "ß" * 20_000}, ensure_ascii=False))
        assert "".join(read_all(ref, json_path="rows")) == json.dumps(rows, ensure_ascii=False)
        assert "".join(read_all(ref, json_path="note")) == "ß" * 20_000


@pytest.mark.parametrize("asked", [{"json_path": "rows"}, {"lines": "1-1000000"}, {"grep": "ROW"}])
def test_the_pages_of_a_selection_read_the_result_once(store: Counting, asked: dict[str, str]) -> None:
    lines = ",\n".join(f'"row {number} {"x" * 100_000}"' for number in range(200))
    text = f'{{"rows": [{lines}]}}'
    with agent_otel.execution("run-1"):
        ref = stored(text)
        store.read_bytes = 0
        pages = read_all(ref, **asked)
    assert len(pages) > 1_000
    assert store.read_bytes < 2 * len(text)  # the whole once, and with each page the header and the digests


def test_a_selection_is_its_owners_and_goes_with_the_result(store: Counting) -> None:
    del store
    rows = json.dumps(["x" * 100] * 1_000)
    with agent_otel.execution("run-1"):
        ref = stored(rows)
        first = agent_otel.remedies.get_tool_result(ref, json_path="$")
    cursor = first["next_cursor"]
    with agent_otel.execution("run-2"):
        for asked in (None, cursor):
            assert "error" in agent_otel.remedies.get_tool_result(ref, asked, json_path="$")
    with agent_otel.execution("run-1"):
        assert agent_otel.remedies.get_tool_result(ref, json_path="$") == first
        agent_otel.remedies.forget("run-1")
        assert "error" in agent_otel.remedies.get_tool_result(ref, cursor, json_path="$")
        assert "error" in asyncio.run(agent_otel.remedies.aget_tool_result(ref, cursor, json_path="$"))


def test_a_selection_that_cannot_be_kept_is_refused(store: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    del store
    monkeypatch.setattr(get_tool_result, "MOST_BYTES", 50_000)
    with agent_otel.execution("run-1"):
        found = agent_otel.remedies.get_tool_result(stored("x" * 60_000), lines="1")
    assert found["hint"] == "60000 bytes are selected, too many to page through; select less."


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "asked", [{"json_path": "items[-1].body"}, {"json_path": "items[99999].id"}, {"grep": "99999"}]
)
def test_the_event_loop_goes_on(store: Counting, asked: dict[str, str]) -> None:
    del store
    rows = ",\n".join(f'{{"id": {number}, "body": "{"x" * 50}"}}' for number in range(100_000))

    async def main(ref: str) -> tuple[float, float]:
        """Return what the loop's thread computed at a stretch, at most, and what all threads computed."""
        reading = asyncio.ensure_future(agent_otel.remedies.aget_tool_result(ref, **asked))
        begun, before = time.process_time(), time.thread_time()
        longest = 0.0
        while not reading.done():
            await asyncio.sleep(0)
            now = time.thread_time()
            longest, before = max(longest, now - before), now
        assert "99999" in reading.result().get("content", "99999")
        return longest, time.process_time() - begun

    with agent_otel.execution("run-1"):
        longest, whole = asyncio.run(main(stored(f'{{"items": [{rows}]}}')))
    assert longest < whole / 2


# --- as json and str.splitlines have it ---------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('ab.[]"\\é', min_size=1), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, (",", ":")]))
def test_every_value_is_found_where_json_has_it(value: Any, separators: tuple[str, str] | None) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=separators)
    for path, inner in _paths(value, "$"):
        expected = inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False, separators=separators)
        assert at_path(text, path) == expected


def _paths(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every path that can be written down, and the value there."""
    yield path, value
    if isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _paths(inner, f"{path}[{number}]")
    elif isinstance(value, dict):
        for key, inner in value.items():
            if not set(key) & set(".[]"):
                yield from _paths(inner, f"{path}.{key}")


@each_row(
    ("text", "path"),
    [
        ("", "$"),
        ("x", "a"),
        ("[1,", "[1]"),
        ("[1 2]", "[1]"),
        ('{"a" 1}', "a"),
        ('{"a', "a"),
        ('{"a":', "a.b"),
        ('{"a":', "a[0]"),
        ("[1,", "[1].b"),
        ('["a]', "[0]"),
        ("{1: 2}", "a"),
        ("[" * 50_000, "[0]"),
    ],
)
def test_what_is_no_json_is_said_to_be_none(text: str, path: str) -> None:
    with pytest.raises(ValueError, match="The result is no JSON; use lines or grep"):
        at_path(text, path)


def test_of_json_that_is_cut_off_the_beginning_can_be_read() -> None:
    assert at_path('{"rows": [{"id": 1}, {"id": 2}, {"i', "rows[1].id") == "2"


@given(st.text("ab\n\r\x0b\x0c\x1c\x85\u2028", max_size=40), st.integers(1, 5))
def test_lines_are_those_of_splitlines(text: str, split: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(get_tool_result, "_SPLIT", split)
        assert list(chain.from_iterable(get_tool_result._line_batches(text))) == text.splitlines()


def test_a_text_of_one_line_is_split_once() -> None:
    text = "x" * 40 * get_tool_result._SPLIT
    split = 0

    def profile(_frame: FrameType, event: str, called: Any) -> None:
        nonlocal split
        if event == "c_call" and called.__name__ == "splitlines":
            split += len(called.__self__)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        lines = list(chain.from_iterable(get_tool_result._line_batches(text)))
    finally:
        sys.setprofile(before)
    assert lines == [text]
    assert split <= 2.1 * len(text)  # in steps, and joined


def test_a_read_has_a_limit() -> None:
    """A full search gives the expected answers. Beyond the limit they name the next action."""
    by_path = "The result is too large to search by path; use lines or grep, or read it by its cursor."
    by_line = "The result has too many lines to search; ask for some of its lines with this text."
    numbers = "[" + ",".join(["12345"] * 600_000) + "]"
    texts = json.dumps(["x" * 10, 'a"b'] * 100_000)
    rows = json.dumps([{"id": number, "body": 'say "é"', "tags": ["a", "[b"]} for number in range(60_000)])
    cases: list[tuple[str, str, str | None, str | None]] = [
        (numbers, "[99999999]", None, "There is nothing at [99999999]; there is a list of 600000."),
        (numbers, "[599999]", "12345", None),
        (texts, "[99999999]", None, "There is nothing at [99999999]; there is a list of 200000."),
        (texts, "[199999]", 'a"b', None),
        (rows, "[59999].id", "59999", None),
        (rows, "[60000].id", None, "There is nothing at [60000]; there is a list of 60000."),
        ("[" + "[]," * 1_000_000 + "[]]", "[99999999]", None, by_path),
        (json.dumps(['\\"' * 2_000_000]), "[1]", None, "There is nothing at [1]; there is a list of 1."),
        ("[" * 2_000_000, "[0][0][0][0][0][0]", None, "The result is no JSON; use lines or grep."),
    ]
    for text, path, expected, error in cases:
        if error is None:
            assert at_path(text, path) == expected
        else:
            with pytest.raises(ValueError, match=re.escape(error)):
                at_path(text, path)
    lines = "1\n" * 2_000_000
    assert get_tool_result._between(lines + "last", "2000001") == "last"
    assert get_tool_result._matching(lines + "last", "LAST") == "2000001: last"
    with pytest.raises(ValueError, match=re.escape(by_line)):
        get_tool_result._matching(lines, "1")
