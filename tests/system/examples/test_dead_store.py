"""The durable agent on a real Temporal server, and on Dapr, lives on when the store of its claim check dies."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from examples.durable_agent.model_server import SEARCHES
from tests.conftest import skip
from tests.interpreters import UnavailableError
from tests.system.engines import redis

ROOT = Path(__file__).resolve().parents[3]
CAP = 2 * 1024 * 1024
TURNS, DIES_AT = 50, 3
FLAPPING = dict(zip(range(2, 10), ("down", "up") * 4, strict=True))
#: Bytes of a history that Temporal takes.
HISTORY = 50 * 1024 * 1024


def _python() -> str:
    """Make the environment of the example, as ``scripts/durable`` does."""
    lines = (ROOT / "examples" / "durable_agent" / "requirements.txt").read_text().splitlines()
    requirements = [line for line in lines if not line.startswith("#")]
    script = str(ROOT / "scripts" / "environment")
    made = subprocess.run((script, "durable", *requirements), capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@pytest.mark.shows("000.store_fails", "000.infrastructure_failure")
@pytest.mark.parametrize("runtime", ["temporal", "dapr"])
def test_with_the_store_dead_from_turn_3_on_the_workflow_ends_with_an_answer(runtime: str) -> None:
    ends_with_an_answer(runtime)


@pytest.mark.shows("000.store_fails", "000.model_view")
@pytest.mark.parametrize(
    "changes", [{}, {3: "down"}, {1: "down"}, dict(zip(range(2, 10), ("down", "up") * 4, strict=True))]
)
def test_each_view_has_4_kib_whatever_the_store_does(changes: dict[int, str]) -> None:
    """Three searches of 176 kB a turn, and two copies of each view in the state."""
    told = told_of("temporal", 10, changes)
    assert told["answer"].strip('"').startswith(f"I have read {SEARCHES * 10} search results, ")
    assert (told["seen"], told["cause"], told["rejected"]) == ("", "", 0)
    grown = [after - before for before, after in itertools.pairwise(told["bytes"])]
    assert min(grown) >= SEARCHES * 2 * 4 * 1024
    assert max(grown) <= SEARCHES * 2 * 33 * 1024
    assert max(told["bytes"]) < CAP


def ends_with_an_answer(runtime: str, **variables: str) -> None:
    """Run the agent, and look at its answer and at the bytes of its payloads."""
    told = told_of(runtime, TURNS, {DIES_AT: "down"}, **variables)
    assert (told["seen"], told["cause"], told["rejected"]) == ("", "", 0)
    assert told["answer"].strip('"').startswith(f"I have read {SEARCHES * TURNS} search results, ")
    assert told["stored"] == SEARCHES * (DIES_AT - 1)
    assert len(told["bytes"]) == TURNS + 1
    # As with a store: so far below the cap that the history of all turns fits, too.
    assert max(told["bytes"]) < CAP
    assert sum(told["bytes"]) < HISTORY


def told_of(runtime: str, turns: int, changes: dict[int, str], **variables: str) -> dict[str, Any]:
    """Run the agent; its store goes down or comes back before these turns."""
    try:
        redis.find()
    except UnavailableError as error:
        skip(error)
    environ = {**os.environ, "OTEL_TRACES_EXPORTER": "none", **variables}
    command = (_python(), "-m", "tests.system.examples.dead_store_program", runtime, str(turns), json.dumps(changes))
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told
