"""What is remembered of executions, and how little."""

from __future__ import annotations

import tracemalloc
from array import array
from typing import TYPE_CHECKING

from agent_otel.core.execution_state import SeenParts
from agent_otel.core.executions import Executions, new_call
from agent_otel.core.thread.threads import OpenCalls

if TYPE_CHECKING:
    from collections.abc import Iterable

INPUT = ("input", "call_model", "")
OUTPUT = ("output", "call_model", "")


def test_the_same_arguments_again_are_a_repeat() -> None:
    ledger = Executions()
    asked = [ledger.began("run", "search", digest, call)[1] for digest, call in (("a", "1"), ("b", "2"), ("a", "3"))]
    assert [False, False, True] == asked


def test_another_tool_or_execution_is_no_repeat() -> None:
    ledger = Executions()
    ledger.began("run", "search", "a", None)
    assert not ledger.began("run", "fetch", "a", None)[1]
    assert not ledger.began("other run", "search", "a", None)[1]


def test_the_same_call_id_again_is_a_retry_and_not_a_repeat() -> None:
    ledger = Executions()
    assert [False, False] == [ledger.began("run", "search", "a", "1")[1] for _ in range(2)]
    finished = ledger.finish("run")
    assert finished is not None
    assert 1 == finished.tool_calls


def test_an_execution_is_forgotten_when_it_is_finished() -> None:
    ledger = Executions()
    ledger.began("run", "search", "a", None)
    ledger.produced(ledger.touched("run"), "search", 300, None)
    ledger.produced(ledger.touched("run"), "search", 45, None)
    finished = ledger.finish("run")
    assert finished is not None
    assert (1, 345) == (finished.tool_calls, finished.result_bytes)
    assert ledger.finish("run") is None
    assert not ledger.began("run", "search", "a", None)[1]


def test_the_oldest_execution_goes_first() -> None:
    ledger = Executions(max_executions=2)
    for name in ("first", "second"):
        ledger.began(name, "search", "a", None)
    ledger.began("first", "search", "b", None)
    ledger.began("third", "search", "a", None)
    assert 2 == len(ledger)
    assert ledger.began("first", "search", "a", None)[1]
    assert not ledger.began("second", "search", "a", None)[1]


def test_an_idle_execution_is_forgotten() -> None:
    now = [0.0]
    ledger = Executions(idle_seconds=60, clock=lambda: now[0])
    ledger.began("idle", "search", "a", None)
    now[0] = 61.0
    ledger.began("new", "search", "a", None)
    assert 1 == len(ledger)


def test_one_endless_execution_does_not_grow_for_ever() -> None:
    ledger = Executions(max_entries_per_execution=100)
    for number in range(10_000):
        ledger.began("run", "search", str(number), str(number))
    finished = ledger.finish("run")
    assert finished is not None
    assert 10_000 == finished.tool_calls
    assert (100, 100) == (len(finished.asked), len(finished.call_ids))


def test_entries_are_bounded_over_all_executions() -> None:
    ledger = Executions(max_entries=50)
    for number in range(1_000):
        ledger.began(f"run {number // 10}", "search", str(number), None)
    assert 50 >= 10 * (len(ledger) - 1)


def test_payloads_of_one_kind_are_turns() -> None:
    ledger = Executions()
    for size in range(100, 1500, 100):
        execution, track = ledger.carried("run", INPUT, size)
    assert [300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1200, 1300, 1400] == track.sizes
    assert 1400 == execution.payload_bytes
    _, other = ledger.carried("run", OUTPUT, 50)
    assert [50] == other.sizes
    finished = ledger.finish("run")
    assert finished is not None
    assert 1400 == finished.payload_bytes


def test_a_payload_that_comes_again_is_no_further_turn() -> None:
    ledger = Executions()
    ledger.carried("run", INPUT, 100)
    _, track = ledger.carried("run", INPUT, 100, again=True)
    assert [100] == track.sizes


def test_the_same_payload_refused_again_is_no_further_turn_and_a_stuck_retry() -> None:
    ledger = Executions()
    ledger.carried("run", INPUT, 100)
    refusals = []
    for _ in range(3):
        _, track = ledger.carried("run", INPUT, 900)
        refusals.append(ledger.refused("run", INPUT))
    assert [1, 2, 3] == refusals
    assert [100, 900] == track.sizes
    _, track = ledger.carried("run", INPUT, 300)
    assert [100, 900, 300] == track.sizes
    assert 1 == ledger.refused("run", INPUT)


def test_an_analysis_is_due_once_at_each_step_and_few_turns_are_told_once() -> None:
    ledger = Executions()
    execution, _ = ledger.carried("run", ("state", None, ""), 100)
    assert [True, False, True, False] == [ledger.is_first(execution, analysis=step) for step in (5, 5, 7, 6)]
    assert [True, False] == [ledger.is_first(execution) for _ in range(2)]


def test_a_call_is_known_by_its_tool_and_what_it_produced() -> None:
    ledger = Executions()
    ledger.began("run", "search", "a", "call_1")
    ledger.produced(ledger.touched("run"), "search", 300, "call_1")
    known = ledger.known("run")
    assert known is not None
    assert {"call_1": ("search", 300)} == {name: (one.tool, one.produced) for name, one in known.call_ids.items()}


def test_an_id_that_a_model_numbers_anew_is_another_call() -> None:
    ledger = Executions()
    ledger.began("run", "search", "a", "call_0")
    first = ledger.produced(ledger.touched("run"), "search", 300, "call_0")
    assert first is not None
    first.delivered = 300
    assert ledger.began("run", "search", "a", "call_0")[1], "another call, which asks the same"
    second = ledger.produced(ledger.touched("run"), "search", 400, "call_0")
    assert second is not None
    assert (400, -1) == (second.produced, second.delivered)
    ledger.began("run", "fetch", "a", "call_0")
    third = ledger.produced(ledger.touched("run"), "fetch", 500, "call_0")
    assert third is not None
    assert "fetch" == third.tool
    finished = ledger.finish("run")
    assert finished is not None
    assert 3 == finished.tool_calls


def test_calls_without_an_execution_are_found_by_ids_that_are_theirs_alone() -> None:
    ledger, calls = Executions(), OpenCalls()
    noted = new_call("search", id="call_a")
    calls.add(noted)
    assert noted is calls.of_result(None, "call_a")
    ledger.began("run", "search", "a", "call_b")
    assert noted is calls.of_result(ledger.known("run"), "call_a")
    calls.add(new_call("search", id="call_a"))
    assert None is calls.of_result(None, "call_a"), "two runs have the same id"
    for number in range(10_000):
        calls.add(new_call("search", id=str(number)))
    assert None is calls.of_result(None, "0")
    assert 8_192 == len(calls)


def test_whose_an_id_is() -> None:
    ledger = Executions()
    for name in ("first", "second"):
        ledger.began(name, "search", "a", "call_1")
    assert "second" == ledger.owner(["call_1"])
    assert "first" == ledger.owner(["call_1"], "first")
    assert "second" == ledger.owner(["call_1"], "third")
    assert None is ledger.owner(["call_9"], "first")


def test_the_kinds_of_payloads_of_one_execution_are_limited() -> None:
    ledger = Executions()
    for number in range(100):
        execution, _ = ledger.carried("run", ("input", f"activity_{number}", ""), 10)
    assert execution.tracks is not None
    assert 64 == len(execution.tracks)


def test_small_payloads_wait_in_a_place_of_their_own() -> None:
    ledger = Executions()
    assert [True, True] == [ledger.small("run", INPUT, size) for size in (10, 20)]
    assert 0 == len(ledger)
    _, track = ledger.carried("run", INPUT, 5_000)
    assert [10, 20, 5_000] == track.sizes
    assert not ledger.small("run", INPUT, 30), "its execution is remembered by now"
    for number in range(10_000):
        ledger.small(f"task {number}", INPUT, 10)
    _, late = ledger.carried("task 9999", INPUT, 5_000)
    _, first = ledger.carried("task 0", INPUT, 5_000)
    assert ([10, 5_000], [5_000]) == (late.sizes, first.sizes)


def test_a_refusal_may_come_before_any_size_is_known() -> None:
    ledger = Executions()
    assert 1 == ledger.refused("run", INPUT)
    _, track = ledger.carried("run", INPUT, 100)
    assert [100] == track.sizes


def parts(prints: Iterable[int]) -> SeenParts:
    """Return parts of 100 bytes with these fingerprints."""
    known = array("q", prints)
    return SeenParts(known, array("q", [100] * len(known)), bytes(len(known)))


def test_transcripts_count_against_the_memory() -> None:
    """With 3 transcripts of 400 messages and 16 calls, an execution weighs 3 * (2 + 400 / 8) + 16 = 172 entries."""
    ledger = Executions()
    tracemalloc.start()
    try:
        for number in range(3_000):
            for call in range(16):
                ledger.began(f"run {number}", "search", str(call), None)
            execution = ledger.touched(f"run {number}")
            for key in range(3):
                stream = ledger.conversation(execution, key)
                ledger.requested(execution, stream, parts(hash((number, key, at)) for at in range(400)))
        kept_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert 160_000 // 172 == len(ledger)
    assert kept_bytes < 32_000_000


def test_transcripts_that_come_and_go_leave_no_entries() -> None:
    ledger = Executions()
    execution = ledger.touched("run")
    for key in range(20):
        stream = ledger.conversation(execution, key)
        for length in (100, 1_000, 50):
            ledger.requested(execution, stream, parts(range(length)))
    assert 8 == len(execution.streams or {})
    assert 8 * (2 + 50 // 8) == len(execution) == ledger._entries

    assert ledger.finish("run") is execution
    ledger.requested(execution, ledger.conversation(execution, 21), parts(range(1_000)))
    assert 0 == ledger._entries
