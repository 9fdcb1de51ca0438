"""A call of a retried step gets its result from the store, where that is switched on, and is not made again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

PROGRAM = Path(__file__).parent / "retried_program.py"
ON = {
    "AGENT_OTEL": "1",
    "AGENT_OTEL_CLAIM_CHECK_KEY": "k" * 32,
    "AGENT_OTEL_CLAIM_CHECK": "memory:",
    "AGENT_OTEL_ANSWER_RETRIES": "on",
}


def outcome(answers: list[Any], ran: list[str], answered: int) -> dict[str, Any]:
    return {"answers": answers, "ran": ran, "answered": answered}


@pytest.fixture(scope="module")
def cases(environment: Callable[[str], Environment]) -> Any:
    child = environment("bare").run(PROGRAM, env=ON, check=True)
    assert child.stderr == ""
    return json.loads(child.stdout)


@pytest.mark.shows("000.replay")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "equal calls",
            outcome(
                [["sent a as number 1", "sent a as number 2", "sent b as number 3"]] * 3, ["a", "a", "b"], answered=6
            ),
        ),
        ("an object", outcome([{"number": 1}] * 3, ["a"], answered=2)),
        ("a list", outcome([[1], [2], [3]], ["a"] * 3, answered=0)),
        ("no JSON", outcome([f"{{1: {n}, 'pair': (1, 2)}}" for n in (1, 2, 3)], ["a"] * 3, answered=0)),
        ("a large text", outcome([["line", True, 1]] * 3, ["a"], answered=2)),
        (
            "a large object",
            outcome([["dict", ["content", "note", "ref", "shown_bytes", "size_bytes"]]] * 3, ["a"], answered=2),
        ),
        ("async", outcome(["sent a as number 1"] * 3, ["a"], answered=2)),
        ("a failure", outcome(["ValueError('a')", "sent", "sent"], ["a", "a"], answered=1)),
        (
            "other arguments",
            outcome([f"sent {number} as number {number + 1}" for number in range(3)], ["0", "1", "2"], answered=0),
        ),
    ],
)
def test_calls_in_three_attempts(cases: Any, name: str, expected: dict[str, Any]) -> None:
    assert cases[name] == expected


def test_it_is_off_by_default(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(PROGRAM, env={**ON, "AGENT_OTEL_ANSWER_RETRIES": "off"}, check=True)
    cases = json.loads(child.stdout)
    assert cases["async"]["ran"] == ["a", "a", "a"]
    assert sum(case["answered"] for case in cases.values()) == 0
