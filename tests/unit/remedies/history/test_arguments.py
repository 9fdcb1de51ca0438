"""Old arguments as marks, and old errors by their ends: expected values by hand."""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from typing import Any

import pytest

from agent_otel import semconv
from agent_otel.core.types import Denial, LimitReached
from agent_otel.remedies import limits
from agent_otel.remedies.dispatch_policy.gate import error_of
from agent_otel.remedies.history.argument_compaction import compact, marked
from tests.rows import each_row
from tests.unit.remedies.history.histories import SHAPES, Asked, Turn, reading, rendered

LARGE = 'print("字")\n' * 200  # 13 bytes a line
MARK = "[argument removed: 2600 bytes]"
WRITTEN = {"path": "a.py", "content": LARGE, "mode": 0o644}
LEFT = {"path": "a.py", "content": MARK, "mode": 0o644}
each_shape = each_row("shape", list(SHAPES))


def history(shape: str = "chat", turns: int = 7, result: str = "done") -> list[Any]:
    return rendered(shape, [reading(number, result, WRITTEN) for number in range(turns)])


def arguments(messages: list[Any]) -> list[Any]:
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    return [json.loads(call["function"]["arguments"]) for call in calls]


@each_row("turns", [1, 2, 7, 12])
def test_a_completed_call_is_compacted_at_once(turns: int) -> None:
    assert [LEFT] * turns == arguments(compact(history(turns=turns)))


@each_shape
@each_row(("calls", "copies"), [(1, 0), (5, 10), (20, 190)])
@pytest.mark.shows("004.first_resend")
def test_no_later_request_carries_what_a_call_has_written(shape: str, calls: int, copies: int) -> None:
    """One call per turn; request n carries the n - 1 calls before it: 10 copies in 5 requests, 190 in 20."""
    content = "x" * 100_000
    script = [reading(number, "Written.", {"path": "report.md", "content": content}) for number in range(calls)]
    requests = [rendered(shape, script[:number]) for number in range(calls)]
    raw = 2 if shape == "langchain" else 1  # the provider's own copy is beside it
    assert copies * raw == sum(json.dumps(request).count(content) for request in requests)
    views = [compact(request) for request in requests]
    assert 0 == sum(json.dumps(view).count(content) for view in views)
    # A request begins with all of the one before it: a prompt cache keeps hitting.
    assert all(later[: len(view)] == view for view, later in pairwise(views))


def test_what_is_left_in_each_shape() -> None:
    text = json.dumps(LEFT)
    call = {"id": "call_0", "type": "function", "function": {"name": "read", "arguments": text}}
    expected: dict[str, Any] = {
        "chat": {"role": "assistant", "content": None, "tool_calls": [call]},
        "responses": {"type": "function_call", "call_id": "call_0", "name": "read", "arguments": text},
        "anthropic": {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "tool_use", "id": "call_0", "name": "read", "input": LEFT},
            ],
        },
        "gemini": {"role": "model", "parts": [{"functionCall": {"name": "read", "args": LEFT}}]},
        "bedrock": {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "call_0", "name": "read", "input": LEFT}}],
        },
        "langchain": {
            "type": "ai",
            "content": "",
            "tool_calls": [{"type": "tool_call", "id": "call_0", "name": "read", "args": LEFT}],
            "additional_kwargs": {"tool_calls": [call]},
        },
    }
    for shape in SHAPES:
        place = 1 if shape == "responses" else 0
        assert expected[shape] == compact(history(shape))[place], shape


@each_shape
@pytest.mark.shows("004.view")
def test_the_history_is_not_touched(shape: str) -> None:
    messages = history(shape)
    before = copy.deepcopy(messages)
    compact(messages)
    assert before == messages


def test_what_is_not_marked_keeps_its_value() -> None:
    messages = history()
    function = messages[0]["tool_calls"][0]["function"]
    function["arguments"] = f'{{ "a" : [ 1.50, null ],\n"content":{json.dumps(LARGE)} ,"b": "\\u0041"}}'
    expected = f'{{"a": [1.5, null], "content": "{MARK}", "b": "A"}}'
    assert expected == compact(messages)[0]["tool_calls"][0]["function"]["arguments"]
    function["arguments"] = f'{{"a": NaN, "content": {json.dumps(LARGE)}}}'  # no provider takes it
    assert messages[0] is compact(messages)[0]


@each_row(
    "text",
    ["", "{", "[]", f'"{"x" * 3000}"', f'{{"a": "{"x" * 3000}"', f'{{"a": "{"x" * 3000}",}}', f'{{"a" "{"x" * 3000}"}}',
     f'{{a: "{"x" * 3000}"}}', f'{{"a": "{"x" * 3000}"}} and more', "x" * 3000, '{"a":' * 3000],
)  # fmt: skip
def test_what_is_no_json_object_stays(text: str) -> None:
    messages = history()
    messages[0]["tool_calls"][0]["function"]["arguments"] = text
    assert messages[0] is compact(messages)[0]


@each_row(
    ("value", "left"),
    [
        ("x" * 2000, "x" * 2000),
        ("x" * 2001, "[argument removed: 2001 bytes]"),
        ([{"old": "a", "new": "x" * 3000}], [{"old": "a", "new": "[argument removed: 3000 bytes]"}]),
        ({"deep": {"er": "字" * 1000}}, {"deep": {"er": "[argument removed: 3000 bytes]"}}),
        (["x" * 100] * 30, "[argument removed: 3091 bytes]"),  # 30 of 102, 29 commas, 2 brackets
        ([1] * 1000, "[argument removed: 2001 bytes]"),
        ([1] * 999, [1] * 999),
        (None, None),
        (7, 7),
    ],
)
def test_values(value: Any, left: Any) -> None:
    for given, expected in (({"v": value}, {"v": left}), (json.dumps({"v": value}), json.dumps({"v": left}))):
        found = marked(given, 2000)
        assert expected == (given if found is None else found.arguments)


def test_a_lone_half_of_a_surrogate_pair_stays_an_escape() -> None:
    found = marked('{"v":["\\ud800","' + "x" * 3000 + '"]}', 2000)
    assert found is not None
    assert '{"v": ["\\ud800", "[argument removed: 3000 bytes]"]}' == found.arguments


def test_the_text_of_a_custom_tool_is_one_argument() -> None:
    turns = [
        [
            {"type": "custom_tool_call", "call_id": f"c{turn}", "name": "patch", "input": LARGE},
            {"type": "custom_tool_call_output", "call_id": f"c{turn}", "output": "done"},
        ]
        for turn in range(7)
    ]
    assert MARK == compact([item for turn in turns for item in turn])[0]["input"]


# --- which calls are done ------------------------------------------------------------------------------------------


@pytest.mark.shows("004.in_flight")
def test_a_call_in_flight_keeps_its_arguments() -> None:
    call = Asked("call_0", "write", WRITTEN, None)
    done = Asked("call_1", "write", WRITTEN, "done")
    messages = rendered("chat", [Turn((call, done)), Turn((call,), user="go on"), *[reading(n, "r") for n in range(7)]])
    assert [WRITTEN, LEFT, WRITTEN] == arguments(compact(messages))[:3]


@each_row(
    "placeholder",
    [
        "Tool call write with id call_0 did not complete - no result was recorded. It may have been cancelled.",
        "The tool call was interrupted before a result was produced.",
        "Tool not executed - a final result was already processed.",
        "User rejected the tool call for `write` with id call_0. The tool was not executed.",
        "Tool was interrupted.",
        "Tool call limit exceeded. Do not call 'write' again.",
        "Tool call was rejected",
        "This tool call is rejected.",
        "Tool 'write' has reached its usage limit of 3 times and cannot be used anymore.",
        "Tool execution cancelled.",
        "Tool execution was not approved.",
        "The tool call was denied.",
        "Tool cancelled by hook",
        "Tool call cancelled. Ask first. You MUST follow this guidance immediately.",
        "Tool execution cancelled locally; remote execution may have continued",
        "Tool execution for 'write' was rejected by the user. With user feedback: another file",
        "Error: Tool call invocation was rejected by user.",
        "User denied the tool call request",
        "The turn was cancelled before this tool finished.",
        "This tool call was not completed: the turn ended because a human-input request could not be answered.",
        json.dumps(limits.answer(LimitReached("tool_calls", 40))),
        json.dumps(error_of("write", Denial(semconv.RULE_REQUIRE, semconv.ENFORCE, "path"))),
        "[Tool call was interrupted and did not return a result.]",
        "[Tool call could not be executed because its arguments were invalid: Unterminated string]",
        "[write_file failed before execution: the tool-call arguments were not valid JSON, so no file was written.]",
        "Error: Missing tool result (tool execution may have been interrupted before a response was recorded).",
        "[System: Tool execution skipped/interrupted by user. No result provided for tool 'write'.]",
    ],
)
@each_shape
@pytest.mark.shows("004.in_flight")
def test_a_call_with_a_placeholder_keeps_its_arguments(shape: str, placeholder: str) -> None:
    messages = history(shape)
    pending = rendered(shape, [reading(0, placeholder, WRITTEN)])
    assert pending == compact([*pending, *messages])[: len(pending)]


@pytest.mark.shows("004.occurrence")
def test_ids_that_come_again_are_matched_by_occurrence() -> None:
    first = Asked("call_0", "write", WRITTEN, None)  # never answered
    again = Asked("call_0", "write", WRITTEN, "done")
    messages = rendered("chat", [Turn((first,), user="again"), Turn((again,)), Turn((first,), user="no"), *filler()])
    assert [WRITTEN, LEFT, WRITTEN] == arguments(compact(messages))[:3]
    twins = rendered("chat", [Turn((again, first)), *filler()])
    assert [LEFT, WRITTEN] == arguments(compact(twins))[:2]


@each_row(("more", "left"), [(4, WRITTEN), (5, LEFT), (9, LEFT)])
def test_a_result_that_comes_in_a_later_turn_changes_nothing_between_two_steps(more: int, left: Any) -> None:
    late = Asked("late", "write", WRITTEN, None)
    answer = {"role": "tool", "tool_call_id": "late", "content": "done"}
    done = Asked("soon", "write", WRITTEN, "done")
    messages = [*rendered("chat", [Turn((late, done)), Turn((done,))]), answer, *rendered("chat", filler()[:more])]
    assert [left, LEFT, LEFT] == arguments(compact(messages))[:3]


def filler() -> list[Turn]:
    return [reading(number, "r") for number in range(10, 19)]


# --- copies in the metadata ------------------------------------------------------------------------------------------


@pytest.mark.shows("004.provider_copies")
def test_every_copy_is_rewritten_and_nobody_elses() -> None:
    flight = {"content": LARGE}
    messages = rendered("langchain", [reading(number, "done", WRITTEN) for number in range(7)])
    text, asked = json.dumps(WRITTEN), messages[0]
    asked["tool_calls"].append({"type": "tool_call", "id": "flight", "name": "read", "args": flight})
    asked["content"] = [
        {"type": "thinking", "thinking": LARGE, "signature": "c2ln"},
        {"type": "tool_use", "id": "call_0", "name": "read", "input": WRITTEN},
        {"type": "function_call", "id": "fc_1", "call_id": "call_0", "name": "read", "arguments": text},
        {"type": "tool_use", "id": "flight", "name": "read", "input": flight},
    ]
    asked["additional_kwargs"]["function_call"] = {"name": "read", "arguments": text}
    asked["tool_call_chunks"] = [{"id": "call_0", "index": 0, "name": "read", "args": text}]
    asked["response_metadata"] = {"message": {"tool_calls": [{"id": "other", "function": {"arguments": WRITTEN}}]}}
    left, view = json.dumps(LEFT), compact(messages)[0]
    assert [LEFT, flight] == [call["args"] for call in view["tool_calls"]]
    assert asked["content"][0] is view["content"][0]
    assert [LEFT, left] == [view["content"][1]["input"], view["content"][2]["arguments"]]
    assert asked["content"][3] is view["content"][3]
    assert [left] == [call["function"]["arguments"] for call in view["additional_kwargs"]["tool_calls"]]
    assert {"name": "read", "arguments": left} == view["additional_kwargs"]["function_call"]
    assert left == view["tool_call_chunks"][0]["args"]
    assert LEFT == view["response_metadata"]["message"]["tool_calls"][0]["function"]["arguments"]


def test_a_call_in_flight_with_the_same_arguments_keeps_its_copy() -> None:
    both = Turn((Asked("done", "write", WRITTEN, "done"), Asked("flight", "write", WRITTEN, None)))
    view = compact(rendered("langchain", [both, *filler()]))[0]
    assert [LEFT, WRITTEN] == [call["args"] for call in view["tool_calls"]]
    raw = view["additional_kwargs"]["tool_calls"]
    assert [LEFT, WRITTEN] == [json.loads(call["function"]["arguments"]) for call in raw]


# --- errors ------------------------------------------------------------------------------------------------------


@each_shape
@pytest.mark.shows("004.failures")
def test_a_large_error_keeps_its_beginning_and_its_end(shape: str) -> None:
    error = "Error: " + "字" * 2000 + " the end"  # 6,015 bytes
    messages = rendered(shape, [reading(number, error) for number in range(7)])
    bounded = "Error: " + "字" * 320 + "\n[error shortened: 4080 bytes removed]\n" + "字" * 320 + " the end"
    plain = rendered(shape, [reading(number, bounded) for number in range(7)])
    assert plain == compact(messages)
    assert plain == compact(plain)


def test_a_large_result_that_is_no_error_stays_and_so_does_a_small_error() -> None:
    for result in ("x" * 6000, "Error: " + "x" * 1993):
        messages = history(result=result)
        assert [result] * 7 == [message["content"] for message in compact(messages)[1::2]]


def test_options_that_are_too_small() -> None:
    for options in ({"keep_turns": 0}, {"step_turns": 0}, {"above_bytes": 63}, {"failure_bytes": 127}):
        with pytest.raises(ValueError, match="at least"):
            compact([], **options)
