"""The error in place of a result: what it says, by hand, and which hint it gives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agent_otel.remedies import result_ceiling
from agent_otel.remedies.claim_check.serialization import raw_of

if TYPE_CHECKING:
    from collections.abc import Sequence

WITHHELD = "Nothing was cut: the whole result was withheld. "


@pytest.mark.parametrize(
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
    assert WITHHELD + hint == result_ceiling.too_large("search", 2, 1, parameters)["hint"]


def test_the_error_is_what_the_model_can_act_on() -> None:
    found = result_ceiling.too_large("größe", 70_000, 65_536, iter(["query"]))
    expected = {
        "error": "result_too_large",
        "tool": "größe",
        "size_bytes": 70_000,
        "limit_bytes": 65_536,
        "hint": WITHHELD + "Narrow it with `query`.",
    }
    assert expected == found
    assert expected == json.loads(result_ceiling.as_text(found))


def test_a_hint_of_the_program_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_ceiling, "_hints", {})
    result_ceiling.result_hint("search", "Ask for one repository.")
    assert result_ceiling.too_large("search", 2, 1, ("cursor",))["hint"] == "Ask for one repository."
    assert result_ceiling.too_large("other", 2, 1, ("cursor",))["hint"] == WITHHELD + "Ask page by page with `cursor`."


class Thing:
    """An object of the program's, with fields."""

    def __init__(self) -> None:
        self.size = "größe"


def _circle() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


@pytest.mark.parametrize(
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
        ({(1, 2): "a"}, b"{(1, 2): 'a'}", "text/plain; charset=utf-8"),
        (_circle(), b"[[...]]", "text/plain; charset=utf-8"),
    ],
)
def test_whatever_a_tool_returns_has_bytes(value: object, data: bytes, content_type: str) -> None:
    raw = raw_of(value)
    assert (data, content_type) == (raw.data, raw.content_type)
    assert (raw.text is None) == (content_type == "application/octet-stream")
