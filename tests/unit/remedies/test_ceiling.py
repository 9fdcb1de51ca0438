"""The error in place of a result: what it says, by hand, and which hint it gives."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from pydantic import BaseModel, model_serializer

import agent_otel
from agent_otel.core import handler
from agent_otel.core.types import Invocation, ToolCall, ToolReader, ToolResult
from agent_otel.measure.size import Size
from agent_otel.remedies import limits
from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.claim_check.serialization import raw_of, size_up_to
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

WITHHELD = "Nothing was cut: the whole result was withheld. "


@each_row(
    ("parameters", "hint"),
    [
        ((), "Ask for something smaller, or use another tool."),
        (("query", "cursor"), "Ask page by page with `cursor`."),
        (("query", "page_token", "page_size"), "Ask page by page with `page_token` and a smaller `page_size`."),
        (("limit", "offset"), "Ask page by page with `offset` and a smaller `limit`."),
        (("query", "top_k"), "Ask for less with a smaller `top_k`."),
        (("query", "since"), "Narrow it with `query`, `since`."),
        (tuple("abcdefg"), "Narrow it with `a`, `b`, `c`, `d`, `e`."),
    ],
)
def test_the_default_hint_names_what_the_tool_has(parameters: Sequence[str], hint: str) -> None:
    assert WITHHELD + hint == limits.too_large("search", Size(2, exact=True), 1, parameters)["hint"]


@pytest.mark.shows("001.ceiling")
def test_the_error_is_what_the_model_can_act_on() -> None:
    found = limits.too_large("größe", Size(70_000, exact=True), 65_536, iter(["query"]))
    expected = {
        "error": "result_too_large",
        "tool": "größe",
        "size_bytes": 70_000,
        "limit_bytes": 65_536,
        "hint": WITHHELD + "Narrow it with `query`.",
    }
    assert expected == found
    assert expected == json.loads(json.dumps(found))


def test_of_a_result_far_above_the_limit_a_lower_bound_is_named() -> None:
    found = limits.too_large("search", Size(20_001, exact=False), 10_000)
    assert (found["size_bytes"], found["at_least"], found["limit_bytes"]) == (20_001, True, 10_000)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        (3_000, None),  # 51,001 bytes
        (3_500, None),  # 59,501
        (4_000, {"size_bytes": 68_001}),
        (7_000, {"size_bytes": 119_001}),
        (8_000, {"size_bytes": 120_001, "at_least": True}),
        (50_000, {"size_bytes": 120_001, "at_least": True}),
    ],
)
def test_a_structured_result_is_read_up_to_twice_the_ceiling(
    set_variables: Callable[..., None], *, is_async: bool, numbers: int, told: dict[str, int] | None
) -> None:
    set_variables(AGENT_OTEL="1", AGENT_OTEL_RESULT_CEILING_BYTES="60000")
    flat = [[1, "a"], 10_000_000] * numbers  # values of two kinds, which are not sized in one step
    reader = ToolReader(lambda invocation: invocation.instance, ToolResult, replace=lambda _, found, __: found.data)
    visit = handler.enter_tool(reader, Invocation(ToolCall("search", {}, "call_1"), (), {}))
    assert isinstance(visit, handler.Visit)
    with visit:
        call = Invocation(None, (), {})
        put = asyncio.run(visit.aremedied(flat, call)) if is_async else visit.remedied(flat, call)
    if told is None:
        assert put is flat
    else:
        assert {name: put[name] for name in told} == told
        assert put["error"] == "result_too_large"


def test_a_hint_of_the_program_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_hints", {})
    limits.result_hint("search", "Ask for one repository.")
    assert limits.too_large("search", Size(2, exact=True), 1, ("cursor",))["hint"] == "Ask for one repository."
    assert (
        limits.too_large("other", Size(2, exact=True), 1, ("cursor",))["hint"]
        == WITHHELD + "Ask page by page with `cursor`."
    )


class Thing:
    """An object of the program's, with fields."""

    def __init__(self) -> None:
        self.size = "größe"


def _circle() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


@each_row(
    ("value", "data", "content_type"),
    [
        ("größe", "größe".encode(), "text/plain; charset=utf-8"),
        ("\ud800", b"\xed\xa0\x80", "text/plain; charset=utf-8"),
        (b"\x00\xff", b"\x00\xff", "application/octet-stream"),
        (memoryview(b"ab"), b"ab", "application/octet-stream"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "ß"}], "aß".encode(), "text/plain; charset=utf-8"),
        (["a", "b"], b'["a","b"]', "application/json"),
        ({"a": [1, "ß"]}, '{"a":[1,"ß"]}'.encode(), "application/json"),
        ({"a": {1}, "b": (2,), "c": b"\x0f"}, b'{"a":[1],"b":[2],"c":"0f"}', "application/json"),
        (Thing(), '{"size":"größe"}'.encode(), "application/json"),
        (None, b"null", "application/json"),
        ({(1, 2): "a"}, b'{"[1,2]":"a"}', "application/json"),
        (_circle(), b'["<list>"]', "application/json"),
    ],
)
def test_whatever_a_tool_returns_has_bytes(value: object, data: bytes, content_type: str) -> None:
    raw = raw_of(value)
    assert (data, content_type) == (raw.data, raw.content_type)
    assert (raw.text is None) == (content_type == "application/octet-stream")


def test_reading_a_size_ends_at_the_limit() -> None:
    rows: list[Any] = [{"id": number} for number in range(300)]
    size = len(raw_of(rows).data)
    assert (size_up_to(rows, size), size_up_to(rows, size - 1)) == ((size, True), (size, False))
    rows.append({(1, 2): "has a key that json refuses"})  # in the second batch
    assert size_up_to(rows, 10) == (11, False)
    assert size_up_to(rows, 100_000) == (size + len(',{"[1,2]":"has a key that json refuses"}'), True)
    for value in ("größe", b"\x00\xff", memoryview(b"ab"), [{"type": "text", "text": "ß"}], _circle(), None):
        size = len(raw_of(value).data)
        assert (size_up_to(value, size), size_up_to(value, size - 1)) == ((size, True), (size, False))


class Slow(BaseModel):
    """An object whose JSON is made in a thread, if it is."""

    threads: ClassVar[set[str]] = set()

    @model_serializer
    def text(self) -> str:
        """Say what it is."""
        Slow.threads.add(threading.current_thread().name)
        return "x" * 8


@pytest.mark.parametrize("remedy", ["ceiling", "store fails"])
def test_no_event_loop_waits_for_a_size(set_variables: Callable[..., None], remedy: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ceiling = {"AGENT_OTEL_RESULT_CEILING_BYTES": "60000"}
    broken = {"AGENT_OTEL_CLAIM_CHECK": (tmp_path / "file").as_uri(), "AGENT_OTEL_CLAIM_CHECK_BUDGET": "60"}
    set_variables(AGENT_OTEL="1", **(ceiling if remedy == "ceiling" else broken))
    policy.current.cache_clear()
    Slow.threads.clear()
    reader = ToolReader(lambda invocation: invocation.instance, ToolResult, replace=lambda _, found, __: found)
    value = [Slow() for _ in range(20_000)]
    with agent_otel.execution("run-1"):
        visit = handler.enter_tool(reader, Invocation(ToolCall("search", {}, "call_1"), (), {}))
        assert isinstance(visit, handler.Visit)
        with visit:
            asyncio.run(visit.aremedied(value, Invocation(None, (), {})))
    policy.current.cache_clear()
    assert Slow.threads
    assert all(name.startswith("agent_otel-") for name in Slow.threads)
