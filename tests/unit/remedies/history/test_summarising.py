"""Summarising a long history: what is old becomes one pair, the originals stay readable."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

import agent_otel
from agent_otel import settings
from agent_otel.remedies.claim_check import policy
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable

_TURNS = 6


def _chat(turns: int = _TURNS) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = [{"role": "system", "content": "Answer."}, {"role": "user", "content": "Find it."}]
    for turn in range(turns):
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "search", "arguments": '{"q":"a"}'}}
        history.append({"role": "assistant", "content": None, "tool_calls": [call]})
        history.append({"role": "tool", "tool_call_id": f"c{turn}", "content": f"result {turn} " + "x " * 200})
    return history


def _responses(turns: int = _TURNS) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = [{"role": "user", "content": "Find it."}]
    for turn in range(turns):
        history.append({"type": "function_call", "call_id": f"c{turn}", "name": "search", "arguments": "{}"})
        history.append(
            {"type": "function_call_output", "call_id": f"c{turn}", "output": f"result {turn} " + "x " * 200}
        )
    return history


def _anthropic(turns: int = _TURNS) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = [{"role": "user", "content": "Find it."}]
    for turn in range(turns):
        asked = {"type": "tool_use", "id": f"c{turn}", "name": "search", "input": {}}
        answered = {"type": "tool_result", "tool_use_id": f"c{turn}", "content": f"result {turn} " + "x " * 200}
        history += [{"role": "assistant", "content": [asked]}, {"role": "user", "content": [answered]}]
    return history


def _gemini(turns: int = _TURNS) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": "Find it."}]}]
    for turn in range(turns):
        response = {"name": "search", "response": {"result": f"result {turn} " + "x " * 200}}
        history.append({"role": "model", "parts": [{"functionCall": {"name": "search", "args": {}}}]})
        history.append({"role": "user", "parts": [{"functionResponse": response}]})
    return history


def _short(chunk: str) -> str:
    return f"<{chunk.count('result ')} results>"


def test_what_fits_stays_as_it_is() -> None:
    history = _chat()
    asked: list[str] = []

    def summarize(chunk: str) -> str:
        asked.append(chunk)
        return ""

    made = agent_otel.remedies.summarize_history(history, summarize=summarize, above_tokens=10_000, target_tokens=100)

    assert (history, []) == (made, asked)


def test_the_old_part_is_one_pair_and_the_rest_is_untouched() -> None:
    history = _chat()

    made = agent_otel.remedies.summarize_history(history, summarize=_short, above_tokens=100, target_tokens=100)

    assert history[:2] == made[:2]
    call_id = made[2]["tool_calls"][0]["id"]
    assert "context_summarize" == made[2]["tool_calls"][0]["function"]["name"]
    assert {"role": "tool", "tool_call_id": call_id, "content": "<4 results>"} == made[3]
    assert history[10:] == made[4:]  # the last two turns
    assert _chat() == history


@each_row(
    ("history", "pair"),
    [
        (
            _responses(),
            lambda call, answer: (
                call["type"] == "function_call"
                and call["call_id"] == answer["call_id"]
                and answer["output"] == "<4 results>"
            ),
        ),
        (
            _anthropic(),
            lambda call, answer: (
                call["content"][0]["id"] == answer["content"][0]["tool_use_id"]
                and answer["content"][0]["content"] == "<4 results>"
            ),
        ),
        (
            _gemini(),
            lambda call, answer: (
                call["parts"][0]["functionCall"]["name"] == "context_summarize"
                and answer["parts"][0]["functionResponse"]["response"] == {"result": "<4 results>"}
            ),
        ),
    ],
    ids=["responses", "anthropic", "gemini"],
)
@pytest.mark.shows("002.summary_steps")
def test_the_pair_has_the_shape_of_its_history(history: list[Any], pair: Any) -> None:
    made = agent_otel.remedies.summarize_history(history, summarize=_short, above_tokens=100, target_tokens=100)

    assert 7 == len(made)
    assert pair(made[1], made[2])
    assert [history[0], *history[-4:]] == [made[0], *made[3:]]


@pytest.mark.shows("002.summary_steps")
def test_chunks_keep_calls_with_their_results_and_are_merged_to_the_target() -> None:
    chunks: list[str] = []

    def summarize(chunk: str) -> str:
        chunks.append(chunk)
        return chunk[: len(chunk) // 8]

    agent_otel.remedies.summarize_history(
        _chat(30), summarize=summarize, above_tokens=100, target_tokens=120, chunk_tokens=400, keep_turns=2
    )

    first_round = chunks[:14]  # of 28 old turns, two in each
    for chunk in first_round:
        lines = [json.loads(line) for line in chunk.splitlines()]
        asked = [call["id"] for line in lines for call in line.get("tool_calls") or ()]
        answered = [line["tool_call_id"] for line in lines if line["role"] == "tool"]
        assert 2 == len(asked)
        assert asked == answered
    assert len(chunks) > len(first_round)  # what was said was summarised again


def test_an_open_call_and_what_follows_it_stay() -> None:
    history = _chat()
    open_call = {"id": "late", "type": "function", "function": {"name": "slow", "arguments": "{}"}}
    history.insert(4, {"role": "assistant", "content": None, "tool_calls": [open_call]})

    made = agent_otel.remedies.summarize_history(history, summarize=_short, above_tokens=100, target_tokens=100)

    assert history[4:] == made[4:]


def _fails(_: str) -> str:
    raise RuntimeError("no model")


@each_row(
    "fails",
    [_fails, lambda _: None, lambda _: " ", lambda text: text, lambda text: text * 2],
    ids=["raises", "nothing", "blank", "all", "more"],
)
def test_a_model_that_fails_leaves_the_history_untouched(
    fails: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[str] = []
    monkeypatch.setattr("agent_otel._internal.errors.handler", failures.append)

    made = agent_otel.remedies.summarize_history(_chat(), summarize=fails, above_tokens=100, target_tokens=100)

    assert (_chat(), ["remedies.summarize"]) == (made, failures)


def test_a_history_of_unknown_shape_is_untouched() -> None:
    history = [{"who": "me", "says": "x" * 4_000}, {"who": "you", "says": "y" * 4_000}]

    assert history == agent_otel.remedies.summarize_history(history, summarize=_short, above_tokens=10, target_tokens=5)


def test_no_sequence_is_an_error() -> None:
    with pytest.raises(TypeError, match="sequence"):
        agent_otel.remedies.summarize_history("text", summarize=_short, above_tokens=10, target_tokens=5)


def test_coroutines() -> None:
    async def summarize(chunk: str) -> str:
        await asyncio.sleep(0)
        return _short(chunk)

    made = asyncio.run(
        agent_otel.remedies.asummarize_history(_chat(), summarize=summarize, above_tokens=100, target_tokens=100)
    )

    assert "<4 results>" == made[3]["content"]


@pytest.mark.shows("002.archive")
def test_the_originals_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_OTEL_CLAIM_CHECK", "memory:")
    monkeypatch.setenv("AGENT_OTEL_CLAIM_CHECK_KEY", "the secret of this test")
    for cached in (settings.current, policy.current):
        cached.cache_clear()
    history = _chat()
    try:
        with agent_otel.execution("e1"):
            made = agent_otel.remedies.summarize_history(history, summarize=_short, above_tokens=100, target_tokens=100)
            ref = made[3]["content"].split('ref="')[1].split('"')[0]
            stored = agent_otel.remedies.resolve(ref)
            page = agent_otel.remedies.get_tool_result(ref, json_path="[1].content")
    finally:
        monkeypatch.undo()
        for cached in (settings.current, policy.current):
            cached.cache_clear()

    assert history[2:10] == json.loads(stored.data)
    assert "result 0 " + "x " * 200 == page["content"]
