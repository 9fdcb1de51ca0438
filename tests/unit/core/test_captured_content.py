"""Copies of content as the settings limit and redact them, against texts written out by hand."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel import semconv, settings
from agent_otel.core.captured_content import capture, failure_text

if TYPE_CHECKING:
    from agent_otel.settings import Settings

RESULT = "gen_ai.tool.call.result"
seen: list[tuple[Any, ...]] = []


def redact(*given: Any) -> Any:
    """Redact as a program does."""
    seen.append(given)
    text = given[2]
    if "boom" in text:
        raise ValueError(text)
    return None if "nothing" in text else text.replace("secret", "[gone]")


def chosen(**fields: Any) -> Settings:
    """Return settings with these fields."""
    return dataclasses.replace(settings.Settings(), capture_content=True, **fields)


@pytest.fixture
def redacting() -> Settings:
    seen.clear()
    return chosen(capture_bytes=64, redact=f"{__name__}:redact", capture_tools=frozenset({"sea*"}))


def test_a_copy_is_cut_at_its_limit() -> None:
    eight = chosen(capture_bytes=8)
    assert {RESULT: "01234567"} == capture(None, RESULT, "01234567", eight, "search")
    cut = {RESULT: "01234567", semconv.CONTENT_TRUNCATED: (RESULT,)}
    assert cut == capture(None, RESULT, "012345678", eight, "search")
    both = {**cut, "other": '{"a":"é', semconv.CONTENT_TRUNCATED: (RESULT, "other")}
    assert both == capture(cut, "other", {"a": "é" * 9}, eight, "search")
    assert "01234567" == failure_text(ValueError("0123456789"), eight, "search")


def test_the_programs_function_gets_tool_attribute_and_text(redacting: Settings) -> None:
    assert {RESULT: "a [gone]"} == capture({}, RESULT, "a secret", redacting, "Search")
    assert "the [gone] key" == failure_text(ValueError("the secret key"), redacting, "search")
    assert [("Search", RESULT, "a secret"), ("search", "error.type", "the secret key")] == seen


def test_nothing_is_captured_that_is_not_redacted(redacting: Settings) -> None:
    before = {"other": "x"}
    for text in ("boom", "nothing"):
        assert before == capture(before, RESULT, text, redacting, "search")
        assert failure_text(ValueError(text), redacting, "search") is None


def test_other_tools_are_not_captured(redacting: Settings) -> None:
    assert {"other": "x"} == capture({"other": "x"}, RESULT, "a secret", redacting, "read")
    assert failure_text(ValueError("a secret"), redacting, "read") is None
    assert [] == seen


def test_the_end_of_a_text_that_may_hold_half_a_secret_is_left_out(redacting: Settings) -> None:
    # 4 * 64 bytes are read, of which the last 64 are left out; the rest is over the limit.
    found = capture(None, RESULT, "x" * 62 + "secret" + "y" * 1_000, redacting, "search")
    assert {RESULT: "x" * 62 + "[g", semconv.CONTENT_TRUNCATED: (RESULT,)} == found
    assert 256 == len(seen[0][2])
