"""A signal handler may raise anywhere: nothing stays current of what it interrupted, and all is counted afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

PROGRAM = Path(__file__).parent / "interrupts.py"
REMEDIES = {
    "AGENT_OTEL": "1",
    "AGENT_OTEL_RESULT_CEILING_BYTES": "1000",
    "AGENT_OTEL_MAX_PARALLEL_TOOL_CALLS": "5",
}


@pytest.mark.parametrize("name", ["bare", "oldest", "bare-3.13"])
@pytest.mark.parametrize("spans", ["spans", "metrics"])
def test_two_thousand_interrupts_leave_nothing_behind(
    environment: Callable[[str], Environment], name: str, spans: str
) -> None:
    child = environment(name).run(PROGRAM, spans, env=REMEDIES, check=True, timeout=300)
    said = json.loads(child.stdout)
    assert said["left"] == {}
    assert (said["results"], said["running"]) == (1_000, 0)
    assert said["large"] < 1_000, "the ceiling acts"
    if spans == "spans":
        assert (said["spans"], said["roots"]) == (101, 1)
