"""The durable agent on a real Temporal server, and on Dapr, lives on when the store of its claim check dies."""

from __future__ import annotations

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


def ends_with_an_answer(runtime: str, **variables: str) -> None:
    """Run the agent, and look at its answer and at the bytes of its payloads."""
    try:
        redis.find()
    except UnavailableError as error:
        skip(error)
    environ = {**os.environ, "OTEL_TRACES_EXPORTER": "none", **variables}
    command = (_python(), "-m", "tests.system.examples.dead_store_program", runtime, str(TURNS), str(DIES_AT))
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert (told["seen"], told["cause"], told["rejected"]) == ("", "", 0)
    assert told["answer"].strip('"').startswith(f"I have read {SEARCHES * TURNS} search results, ")
    assert told["stored"] == SEARCHES * (DIES_AT - 1)
    assert len(told["bytes"]) == TURNS + 1
    # As with a store: so far below the cap that the history of all turns fits, too.
    assert max(told["bytes"]) < CAP
    assert sum(told["bytes"]) < HISTORY
