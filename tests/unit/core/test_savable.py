"""The savings of remedies that are off: what a request shows of them is what the remedies themselves remove."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel import semconv, settings
from agent_otel.core.thread import delivery
from agent_otel.core.thread.request_parts import LARGE_ARGUMENTS, NO_SHARES, Sized
from agent_otel.integrations.request_bodies import chat
from agent_otel.measure.size import size
from agent_otel.remedies.history.argument_compaction import ABOVE_BYTES
from agent_otel.remedies.history.request_rewriter import Views

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_otel.core.thread.request_parts import Shares

TURNS = 9
RESULT = 40_000
FILE = 6_000


def _turn(number: int, arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    function = {"name": "work", "arguments": json.dumps(arguments)}
    call = {"id": f"call-{number}", "type": "function", "function": function}
    yield {"role": "assistant", "content": None, "tool_calls": [call]}
    yield {"role": "tool", "tool_call_id": f"call-{number}", "content": "row " * (RESULT // 4)}


def _messages(turns: int) -> list[dict[str, Any]]:
    """Return a conversation in which each third call writes a file."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Look for it."}]
    for number in range(turns):
        more = {} if number % 3 else {"content": "x" * FILE}
        messages += _turn(number, {"path": f"{number}.txt", **more})
    return messages


def _shares(messages: list[dict[str, Any]], before: Shares = NO_SHARES) -> Shares:
    sized = [Sized(part, size(part.value).bytes, 0) for part in chat({"messages": messages})]
    return delivery.add_shares(before, sized[before.parts :], {}, ())[0]


def _savable(shares: Shares, **more: Any) -> dict[str, int]:
    return shares.savable.by_remedy(settings.Settings(**more))


def test_a_conversation_that_grows_shows_what_the_remedies_remove() -> None:
    shares = NO_SHARES
    for turns in range(1, TURNS + 1):
        messages = _messages(turns)
        shares = _shares(messages, shares)
        removed = Views().of(messages).removed_bytes
        found = _savable(shares)
        assert found.get(semconv.TRIM, 0) == pytest.approx(removed.get(semconv.TRIM, 0), rel=0.01)
        assert found[semconv.COMPACT] == pytest.approx(removed[semconv.COMPACT], rel=0.02)
        assert found[semconv.CLAIM_CHECK] == turns * (RESULT - 32 * 1024)
        assert found == _savable(_shares(messages))  # read at once, as after a restart
    assert found[semconv.TRIM] > 4 * RESULT


def test_a_call_without_its_result_is_not_compacted() -> None:
    messages = _messages(1)[:-1]
    assert Views().of(messages).removed_bytes == {}
    assert _savable(_shares(messages)) == {}


def test_a_remedy_that_is_on_saves_no_more() -> None:
    shares = _shares(_messages(TURNS))
    assert _savable(shares, trim_results=True, compact_arguments=True).keys() == {semconv.CLAIM_CHECK}
    assert _savable(shares, claim_check="memory:").keys() == {semconv.TRIM, semconv.COMPACT}


def test_the_request_before_keeps_its_own() -> None:
    messages = _messages(TURNS)
    before = _shares(messages[:-1])
    first = _savable(before)
    _shares(messages, before)
    assert _savable(before) == first


def test_small_results_and_arguments_save_nothing() -> None:
    messages = [{"role": "user", "content": "x" * 100_000}]
    for number in range(TURNS):
        messages += _turn(number, {"path": "a.txt"})
        messages[-1]["content"] = "no such file"
    assert Views().of(messages).removed_bytes == {}
    assert _savable(_shares(messages)) == {}


def test_arguments_are_large_as_for_the_remedy() -> None:
    assert LARGE_ARGUMENTS == ABOVE_BYTES
