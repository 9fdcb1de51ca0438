"""What holds for every history: views keep pairs, order and meaning, and what was rewritten once stays."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_otel.remedies.history import turns
from agent_otel.remedies.history.argument_compaction import compact, parsed
from agent_otel.remedies.history.request_rewriter import Views
from agent_otel.remedies.history.trimming import deduplicate, trim
from tests.unit.remedies.history.histories import SHAPES, Asked, Turn, rendered

TEXTS = (
    "ok",
    "",
    "x" * 150,
    "line\n" * 100,
    "字" * 300 + " ref_id=art_7",
    "Error: " + "x" * 5000,
    "Tool was interrupted.",
    "{" + '"a": 1, ' * 500 + '"ref": "claim://m/1"}',
)
ARGUMENTS: tuple[Any, ...] = ("short", "y" * 3000, "字\n" * 1500, 7, None, ["z" * 2500, 1], {"deep": "w" * 4000})
VIEWS = (trim, compact, lambda messages: Views(deduplicate=False).of(messages).messages)
each_shape = pytest.mark.parametrize("shape", list(SHAPES))

calls = st.builds(
    Asked,
    id=st.sampled_from(["call_0", "call_1", "call_2"]),
    tool=st.sampled_from(["read", "write"]),
    arguments=st.dictionaries(st.sampled_from(["path", "content", "更"]), st.sampled_from(ARGUMENTS), max_size=3),
    result=st.sampled_from(TEXTS) | st.none(),
)


def examples(count: int) -> settings:
    """So many, the same ones every time."""
    return settings(max_examples=count, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


def closed(turn: Turn) -> Turn:
    """A turn that something ends: a result, or the user."""
    return replace(turn, user="go on") if all(call.result is None for call in turn.calls) else turn


turn = st.builds(
    Turn, calls=st.lists(calls, min_size=1, max_size=3).map(tuple), user=st.sampled_from([None, "next"])
).map(closed)
histories = st.lists(turn, max_size=6) | st.lists(turn, min_size=7, max_size=18)


def cut(turns_so_far: int) -> int:
    return max(turns_so_far - 2, 0) // 5 * 5


def skeleton(messages: list[Any]) -> list[Any]:
    """Who asks what and who answers it, in order, without the contents."""
    history = turns.read(messages)
    return [
        (call.at, call.asked.path, call.asked.id, call.asked.name, list(parsed(call.asked.arguments) or ()))
        for call in history.calls
    ] + [
        (result.at, result.answered.id, result.answered.name, result.call and result.call.at)
        for result in history.results
    ]


@each_shape
@given(script=histories)
@examples(25)
def test_pairs_order_and_keys_are_kept_and_nothing_is_mutated(shape: str, script: list[Turn]) -> None:
    messages = rendered(shape, script)
    before = copy.deepcopy(messages)
    for view in VIEWS:
        made = view(messages)
        assert before == messages
        assert skeleton(messages) == skeleton(made)
        assert [message.keys() for message in messages] == [message.keys() for message in made]


@each_shape
@given(script=histories)
@examples(25)
def test_turns_after_the_cut_are_the_same_objects(shape: str, script: list[Turn]) -> None:
    messages = rendered(shape, script)
    recent = len(rendered(shape, script[cut(len(script)) :]))
    for view in (trim, lambda messages: Views(compact=False, deduplicate=False).of(messages).messages):
        made = view(messages)
        after = zip(made[len(made) - recent :], messages[len(messages) - recent :], strict=True)
        assert all(one is other for one, other in after)


@each_shape
@given(script=histories)
@examples(25)
def test_a_view_of_a_view_is_that_view(shape: str, script: list[Turn]) -> None:
    messages = rendered(shape, script)
    for view in VIEWS:
        made = view(messages)
        assert all(one is other for one, other in zip(view(made), made, strict=True))


@each_shape
@given(script=histories)
@examples(12)
def test_only_the_turns_of_a_step_change(shape: str, script: list[Turn]) -> None:
    messages = rendered(shape, script)
    ends = [len(rendered(shape, script[:count])) for count in range(len(script) + 1)]
    asking = 2 if shape == "responses" else 1  # messages until something is asked for
    for view in VIEWS:
        earlier: list[Any] = []
        for count in range(1, len(script) + 1):
            # Also with the turn half done: asked, and not yet answered. No request is sent then, so that only the
            # messages before it have to stay.
            half = view(messages[: ends[count - 1] + asking])
            made = view(messages[: ends[count]])
            stable = ends[cut(count - 1)] if cut(count) > cut(count - 1) else len(earlier)
            assert earlier[:stable] == half[:stable] == made[:stable]
            # What a step does not concern stays as it was sent: a shortened error becomes a line in a step.
            after = ends[cut(count)] if stable < len(earlier) else stable
            assert earlier[after:] == half[after : len(earlier)] == made[after : len(earlier)]
            earlier = made


@each_shape
@given(script=histories)
@examples(25)
def test_lines_are_short_and_arguments_are_themselves_or_marks(shape: str, script: list[Turn]) -> None:
    messages = rendered(shape, script)
    trimmed, compacted = turns.read(trim(messages)), turns.read(compact(messages))
    original = turns.read(messages)
    for result, was in zip(trimmed.results, original.results, strict=True):
        if result.answered.content is not was.answered.content:
            text = json.dumps(result.answered.content, ensure_ascii=False)
            assert len(text) <= 2 * 150 + 80  # in JSON a quote of the content is two characters
            assert "[trimmed " in text
            assert str(was.name) in text
            for reference in ("ref_id=art_7", "claim://m/1"):
                assert (reference.split("=")[-1] in text) == (
                    reference.split("=")[-1] in json.dumps(was.answered.content)
                )
    for call, asked in zip(compacted.calls, original.calls, strict=True):
        before, after = parsed(asked.asked.arguments), parsed(call.asked.arguments)
        if asked.answer is None:
            assert before == after
        for key, value in (before or {}).items():
            marks = "[argument removed: " in json.dumps(after[key])
            assert marks or after[key] == value
            assert not marks or len(json.dumps(value, ensure_ascii=False).encode()) > 2000


@each_shape
@given(script=histories, other=histories)
@examples(25)
def test_all_at_once_is_one_after_the_other_and_nothing_is_remembered(
    shape: str, script: list[Turn], other: list[Turn]
) -> None:
    messages = rendered(shape, script)
    messages = [*messages, *(copy.deepcopy(messages[-1:]))]  # as restored
    view = Views().of(messages)
    Views().of(rendered(shape, other))
    assert view == Views().of(messages)
    assert view.messages == compact(trim(deduplicate(messages)))


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("x" * 300) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["role", "type", "content", "parts", "tool_calls", "id", "function", "args", "input", "output",
                         "functionResponse", "response", "tool_use_id", "tool_call_id", "name", "text"])
        | st.sampled_from([1, None, b"k"]),
        inner | st.sampled_from(["user", "assistant", "tool", "tool_result", "tool_use", "function_call", "model"]),
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip


@given(messages=st.lists(junk, max_size=6), script=st.lists(turn, min_size=7, max_size=9))
@examples(100)
def test_whatever_a_message_is_nothing_is_raised_lost_or_mutated(messages: list[Any], script: list[Turn]) -> None:
    mixed = [*messages, *rendered("chat", script), *messages]
    before = copy.deepcopy(mixed)
    for view in VIEWS:
        assert len(mixed) == len(view(mixed))
        assert messages == view(messages)[: len(messages)] or len(messages) > 2
    assert len(deduplicate(mixed)) <= len(mixed)
    assert before == mixed
