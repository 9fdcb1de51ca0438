"""Ids of LangChain's messages stand beside the messages of each provider's format."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from agent_otel.remedies.history.request_rewriter import Views, aligned
from agent_otel.semconv import ASSISTANT, SYSTEM, TOOL_RESULTS, USER

#: A system prompt, a question, two calls at once, their results, and an answer; then the same without the prompt.
ONCE = [(USER, "u1"), (ASSISTANT, "a1"), (TOOL_RESULTS, "t1"), (TOOL_RESULTS, "t2"), (ASSISTANT, "a2")]
ANNOUNCED = [(SYSTEM, "s"), *ONCE, *ONCE, (USER, "u2")]


def test_a_format_with_a_message_for_each_has_its_id() -> None:
    assert aligned(ANNOUNCED, 12) == ["s", "u1", "a1", "t1", "t2", "a2", "u1", "a1", "t1", "t2", "a2", "u2"]


def test_a_format_has_the_system_prompt_apart() -> None:
    assert aligned([(SYSTEM, "s"), (USER, "u1")], 1) == ["u1"]


def test_a_format_has_all_results_of_a_turn_in_one_message() -> None:
    assert aligned(ANNOUNCED, 9) == ["u1", "a1", "t1\nt2", "a2", "u1", "a1", "t1\nt2", "a2", "u2"]


def test_a_format_has_the_users_text_behind_the_results() -> None:
    assert aligned([(ASSISTANT, "a1"), (TOOL_RESULTS, "t1"), (USER, "u1")], 2) == ["a1", "t1\nu1"]
    assert aligned([(ASSISTANT, "a1"), (TOOL_RESULTS, "t1"), (USER, None)], 2) == ["a1", None]


def test_of_an_unknown_format_no_id_is_known() -> None:
    assert aligned(ANNOUNCED, 7) == aligned((), 3) == ()


@pytest.mark.shows("003.deduplicated")
def test_a_restored_conversation_of_gemini_is_sent_once() -> None:
    calls = [{"functionCall": {"name": "read", "args": {}}}] * 2
    answers = [{"functionResponse": {"name": "read", "response": {"output": text}}} for text in ("r1", "r2")]
    once: list[Any] = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": answers},
        {"role": "model", "parts": [{"text": "yes"}]},
    ]
    asked = {"role": "user", "parts": [{"text": "go"}]}
    restored = [*once, *copy.deepcopy(once), asked]
    ids = aligned(ANNOUNCED, len(restored))
    assert Views(trim=False, compact=False).of(restored, ids=ids).messages == [*once, asked]
    assert Views(trim=False, compact=False).of(restored).messages == restored
