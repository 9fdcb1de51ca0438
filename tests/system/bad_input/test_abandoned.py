"""The garbage collector ends abandoned streams in the middle of any code: nothing hangs, and each counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

PROGRAM = Path(__file__).parent / "abandoned.py"
SETTINGS = {
    "AGENT_OTEL": "1",
    "AGENT_OTEL_METRICS": "both",
    "AGENT_OTEL_TOKENS_PER_MINUTE": "100000000",
    "AGENT_OTEL_MAX_PARALLEL_TOOL_CALLS": "50",
}


@pytest.mark.parametrize("name", ["bare", "oldest", "bare-3.13"])
def test_the_end_of_a_stream_in_the_middle_of_any_code_hangs_nothing(
    environment: Callable[[str], Environment], name: str
) -> None:
    child = environment(name).run(PROGRAM, env=SETTINGS, check=True, timeout=300)
    assert json.loads(child.stdout) == {"counts": {"search": 400, "letters": 400}, "errors": {}}
