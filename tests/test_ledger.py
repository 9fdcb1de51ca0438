"""What is remembered of executions, and how little."""

from __future__ import annotations

from agent_otel.ledger import Ledger


def test_the_same_arguments_again_are_a_repeat() -> None:
    ledger = Ledger()
    asked = [ledger.asked("run", "search", digest, call) for digest, call in (("a", "1"), ("b", "2"), ("a", "3"))]
    assert [False, False, True] == asked


def test_another_tool_or_execution_is_no_repeat() -> None:
    ledger = Ledger()
    ledger.asked("run", "search", "a", None)
    assert not ledger.asked("run", "fetch", "a", None)
    assert not ledger.asked("other run", "search", "a", None)


def test_the_same_call_id_again_is_a_retry_and_not_a_repeat() -> None:
    ledger = Ledger()
    assert [False, False] == [ledger.asked("run", "search", "a", "1") for _ in range(2)]
    finished = ledger.finish("run")
    assert finished is not None
    assert 1 == finished.tool_calls


def test_an_execution_is_forgotten_when_it_is_finished() -> None:
    ledger = Ledger()
    ledger.asked("run", "search", "a", None)
    ledger.produced("run", 300)
    ledger.produced("run", 45)
    finished = ledger.finish("run")
    assert finished is not None
    assert (1, 345) == (finished.tool_calls, finished.result_bytes)
    assert ledger.finish("run") is None
    assert not ledger.asked("run", "search", "a", None)


def test_the_oldest_execution_goes_first() -> None:
    ledger = Ledger(max_executions=2)
    for name in ("first", "second"):
        ledger.asked(name, "search", "a", None)
    ledger.asked("first", "search", "b", None)
    ledger.asked("third", "search", "a", None)
    assert 2 == len(ledger)
    assert ledger.asked("first", "search", "a", None)
    assert not ledger.asked("second", "search", "a", None)


def test_an_idle_execution_is_forgotten() -> None:
    now = [0.0]
    ledger = Ledger(idle_seconds=60, clock=lambda: now[0])
    ledger.asked("idle", "search", "a", None)
    now[0] = 61.0
    ledger.asked("new", "search", "a", None)
    assert 1 == len(ledger)


def test_one_endless_execution_does_not_grow_for_ever() -> None:
    ledger = Ledger(max_entries_per_execution=100)
    for number in range(10_000):
        ledger.asked("run", "search", str(number), str(number))
    finished = ledger.finish("run")
    assert finished is not None
    assert 10_000 == finished.tool_calls
    assert (100, 100) == (len(finished.asked), len(finished.call_ids))


def test_entries_are_bounded_over_all_executions() -> None:
    ledger = Ledger(max_entries=50)
    for number in range(1_000):
        ledger.asked(f"run {number // 10}", "search", str(number), None)
    assert 50 >= 10 * (len(ledger) - 1)
