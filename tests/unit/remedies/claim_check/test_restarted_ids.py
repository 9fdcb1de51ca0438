"""Ids of calls that a model uses again in each turn, and processes that know nothing of each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

PROGRAM = Path(__file__).parent / "restarted_ids_program.py"
A, B = {"q": "a"}, {"q": "b"}


def _meant(environment: Environment, folder: Path, *processes: list[Any]) -> tuple[list[str], list[str]]:
    """Run the calls of one process after the other; return the references and what they mean at the end."""
    env = {
        "AGENT_OTEL": "1",
        "AGENT_OTEL_CLAIM_CHECK": folder.as_uri(),
        "AGENT_OTEL_CLAIM_CHECK_KEY": "k" * 32,
        "AGENT_OTEL_CLAIM_CHECK_BUDGET": "30",
    }
    references: list[str] = []
    letters: list[str] = []
    for calls in processes:
        done = environment.run(PROGRAM, json.dumps(calls), json.dumps(references), env=env, check=True)
        references, letters = json.loads(done.stdout.splitlines()[-1])
    return references, letters


@pytest.mark.shows("000.key")
def test_an_id_that_another_process_uses_again_leaves_the_older_result(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    first, again = ["call_0", A, "a"], ["call_0", B, "b"]
    references, letters = _meant(environment("bare"), tmp_path, [first], [again])
    assert letters == ["a", "b"]
    keys = [reference.split(":")[2] for reference in references]
    assert keys[0] == "tool-result/=/run-1/search/call_0"
    assert keys[1].startswith("tool-result/=/run-1/search/call_0-")


@pytest.mark.shows("000.key")
def test_retries_in_other_processes_leave_one_object_for_each_call(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    first, again, nameless = ["call_0", A, "a"], ["call_0", B, "b"], [None, A, "c"]
    processes = ([first, nameless], [again], [["call_0", B, "d"], [None, A, "e"], ["call_0", A, "f"]])
    references, letters = _meant(environment("bare"), tmp_path, *processes)
    assert letters == ["nothing", "nothing", "nothing", "d", "e", "f"]
    keys = [reference.split(":")[2] for reference in references]
    assert keys == [keys[0], keys[1], keys[2], keys[2], keys[1], keys[0]]
    assert len(list(tmp_path.glob("*/??/*"))) == 3
