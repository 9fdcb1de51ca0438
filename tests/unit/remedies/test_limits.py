"""Limits of an execution: what they count, what they answer, and what they forget."""

from __future__ import annotations

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import agent_otel
from agent_otel.core import handler
from agent_otel.core.types import Invocation, LimitReached, Replacement, ToolCall, ToolReader, ToolResult
from agent_otel.remedies import limits
from agent_otel.remedies.limits import Limits, answer
from agent_otel.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

ANSWER_NOW = "This call was not run. Answer now with what you have; do not call any more tools."


def chosen(**maxima: Any) -> Limits:
    return Limits(dataclasses.replace(Settings(), **maxima))


@pytest.mark.shows("002.max_tool_calls")
def test_calls_are_counted_for_each_execution_by_itself() -> None:
    found = chosen(max_tool_calls=2)
    assert [found.enter("a", "thread"), found.enter("a", "thread"), found.enter("b", "thread")] == [None] * 3
    assert found.enter("a", "thread") == LimitReached("tool_calls", 2)
    found.finish("a")
    assert found.enter("a", "thread") is None


def test_calls_of_a_conversation_are_counted_over_its_executions() -> None:
    found = chosen(max_tool_calls=2, max_conversation_tool_calls=3)
    assert [found.enter("run-1", "thread"), found.enter("run-1", "thread")] == [None, None]
    assert found.enter("run-1", "thread") == LimitReached("tool_calls", 2)
    found.finish("run-1")
    assert found.enter("run-2", "thread") is None
    assert found.enter("run-2", "thread") == LimitReached("conversation_tool_calls", 3)
    assert found.enter("run-2", "another") is None


@pytest.mark.parametrize(
    ("maxima", "reached"),
    [
        ({"max_result_bytes": 10}, LimitReached("result_bytes", 10)),
        ({"max_result_tokens": 3}, LimitReached("result_tokens", 3)),
    ],
)
def test_what_results_come_to_is_a_limit_once_it_is_reached(maxima: dict[str, int], reached: LimitReached) -> None:
    found = chosen(**maxima)
    found.spend("a", 9, 2)
    assert found.enter("a", "thread") is None
    found.spend("a", 1, 1)
    assert found.enter("a", "thread") == reached


def test_the_answer_tells_the_model_what_to_do() -> None:
    assert answer(LimitReached("tool_calls", 3)) == {
        "error": "limit_reached",
        "limit": "tool_calls",
        "maximum": 3,
        "message": ANSWER_NOW,
    }


def test_threads_do_not_get_more_than_there_is() -> None:
    found = chosen(max_tool_calls=50)
    with ThreadPoolExecutor(8) as pool:
        entered = list(pool.map(lambda _: found.enter("a", "thread"), range(400)))
    assert entered.count(None) == 50


def test_the_oldest_executions_are_forgotten() -> None:
    found = chosen(max_tool_calls=1)
    for number in range(10_001):
        found.enter(str(number), "thread")
    assert found.enter("0", "thread") is None
    assert found.enter("10000", "thread") == LimitReached("tool_calls", 1)


def test_the_execution_that_was_idle_longest_is_forgotten() -> None:
    found = chosen(max_tool_calls=2, max_conversation_tool_calls=10)
    for number in range(10_000):
        found.enter(str(number), str(number))
    assert found.enter("0", "0") is None  # the oldest, in use again
    found.enter("new", "new")
    assert found.enter("0", "0") == LimitReached("tool_calls", 2)
    assert [found.enter("1", "1") for _ in range(3)] == [None, None, LimitReached("tool_calls", 2)]


@pytest.mark.usefixtures("set_variables")
@pytest.mark.shows("002.token_estimate")
def test_tokens_are_estimated_or_counted_by_the_program() -> None:
    assert limits.tokens("größe") == 2  # five characters
    agent_otel.remedies.token_counter(lambda text: len(text.split()))
    assert limits.tokens("three words here") == 3
    for wrong in (int, lambda _: None, lambda _: float("nan")):  # raises, and returns no number
        agent_otel.remedies.token_counter(wrong)  # type: ignore[arg-type]
        assert limits.tokens("größe") == 2
    agent_otel.remedies.token_counter(lambda _: 12.4)  # type: ignore[arg-type, return-value]
    assert limits.tokens("größe") == 12


def test_a_counter_counts_results_that_go_on_as_they_are(set_variables: Callable[..., None]) -> None:
    set_variables(AGENT_OTEL="1", AGENT_OTEL_MAX_RESULT_TOKENS="3")
    agent_otel.remedies.token_counter(lambda text: len(text.split()))
    read = ToolReader(lambda invocation: invocation.instance, ToolResult, replace=lambda _, found, __: found)
    found = []
    with agent_otel.execution("run-counted"):
        for _ in range(2):
            visit = handler.enter_tool(read, Invocation(ToolCall("search", {}), (), {}))
            assert isinstance(visit, handler.Visit)
            with visit:
                found.append(visit.skipped(Invocation(None, (), {})))
                visit.remedied("a b c", Invocation(None, (), {}))
        assert [isinstance(each, Replacement) for each in found] == [False, True]
        assert json.loads(found[1].text)["limit"] == "result_tokens"


def test_a_call_that_is_tried_again_is_one_call(set_variables: Callable[..., None]) -> None:
    set_variables(AGENT_OTEL="1", AGENT_OTEL_MAX_TOOL_CALLS="2", AGENT_OTEL_MAX_PARALLEL_TOOL_CALLS="1")
    read = ToolReader(lambda invocation: invocation.instance, ToolResult, replace=lambda _, found, __: found)
    with agent_otel.execution("run-again"):
        for _ in range(2):
            visit = handler.enter_tool(read, Invocation(ToolCall("search", {}), (), {}))
            assert isinstance(visit, handler.Visit)
            with visit:
                tries = [visit.skipped(Invocation(None, (), {})) for _ in range(3)]
            assert not any(isinstance(each, Replacement) for each in tries)


def test_a_call_that_an_adapter_has_counted_is_known_by_its_id_and_where_that_has_none_by_its_name() -> None:
    found = chosen(max_tool_calls=2)
    found.recorded("a", "call_1", "fetch")
    found.recorded("a", None, "wide")
    known = [("call_1", "fetch"), ("call_2", "fetch"), ("call_3", "wide")]
    assert [found.is_recorded("a", *call, by_name=False) for call in known] == [True, False, False]
    assert [found.is_recorded("a", *call, by_name=True) for call in known] == [True, True, True]
    assert not found.is_recorded("b", "call_1", "fetch", by_name=True)
    # An id that is the name of a tool is the id of another call, and so the other way round.
    assert not any(found.is_recorded("a", each, None, by_name=True) for each in ("fetch", "wide"))
    assert not any(found.is_recorded("a", each, "other", by_name=True) for each in ("fetch", "wide"))
    assert not found.is_recorded("a", None, "call_1", by_name=True)
    assert [found.is_recorded(each, None, None, by_name=True) for each in ("a", "b")] == [True, False]


def test_calls_that_requests_show_are_kept_with_the_limit_that_they_were_above() -> None:
    found, reached = chosen(max_tool_calls=2), LimitReached("tool_calls", 2)
    found.show("a", 1, None)
    found.show("a", 2, reached)
    assert (found.shown("a"), found.shown("b")) == ({1: None, 2: reached}, {})
    for number in range(3, 1_003):
        found.show("a", number, None)
    assert list(found.shown("a")) == [*range(3, 1_003)]
    found.finish("a")
    assert found.shown("a") == {}


def test_a_call_that_repeats_others_is_answered_with_what_the_model_has(set_variables: Callable[..., None]) -> None:
    set_variables(AGENT_OTEL="1", AGENT_OTEL_MAX_REPEATS="1")
    ran: list[str] = []

    def ask(query: str, call_id: str | None = None, *, fails: bool = False) -> Any:
        reader = ToolReader(lambda call: call.instance, ToolResult, replace=lambda _, found, __: found.data)
        call = ToolCall("search", {"q": query}, call_id)
        visit = handler.enter_tool(reader, Invocation(call, (), {}))
        assert visit is not None
        asked: Any = Invocation(None, (), {})
        with visit:
            answer = visit.skipped(asked)
            if isinstance(answer, dict):
                return answer
            ran.append(query)
            return None if fails else visit.remedied("x" * 100, asked)

    with agent_otel.execution("run-repeats"):
        assert [ask("a", "call_1"), ask("a", "call_1"), ask("a", "call_2")] == ["x" * 100] * 3  # a retry, and a repeat
        assert ask("b") == "x" * 100
        assert ask("a", "call_3") == {
            "error": "repeated_call",
            "tool": "search",
            "call_id": "call_1",
            "result_bytes": 100,
            "maximum": 1,
            "hint": "This call was not run: its result is the answer to call_1, 100 bytes. Use it, or call with other "
            "arguments.",
        }
        assert ask("c", fails=True) is ask("c", fails=True) is None
        assert ask("c")["hint"] == (
            "This call was not run: the answer to the same call of search has no result, and the same arguments give "
            "no other. Answer without it, or call with other arguments."
        )
        assert ask("d") == "x" * 100
    with agent_otel.execution("run-other"):
        assert ask("a", "call_4") == "x" * 100
    assert ran == ["a", "a", "a", "b", "c", "c", "d", "a"]
