"""What the start-up file costs an interpreter: unset, and set without a framework."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import clock

_ROUNDS = 200
_MILLISECOND = 1000 / 3.1  # in U, on the server where the budgets were set
_REPOSITORY = Path(__file__).resolve().parent.parent


def rows() -> list[tuple[str, float, float]]:
    """Return (what, budget in U, measured in U): interpreter starts with the .pth line, minus those without."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        line = (_REPOSITORY / "startup" / "agent_otel_startup.pth").read_text()
        # The line itself in an interpreter that has nothing installed; site, which runs it, has imported os by then.
        before = f"import os, sys; sys.path.insert(0, {str(_REPOSITORY)!r})"
        (site / "with.py").write_text(f"{before}; {line}")
        (site / "without.py").write_text(before)
        cases = {
            "without": (str(site / "without.py"), {}),
            "unset": (str(site / "with.py"), {}),
            "set": (str(site / "with.py"), {"AGENT_OTEL": "1"}),
        }
        best = dict.fromkeys(cases, float("inf"))
        for _ in range(_ROUNDS):
            for name, (script, variables) in cases.items():
                best[name] = min(best[name], _start(script, variables))
    unit = clock.measure({})["seconds per U"]
    return [
        ("variable unset, at start-up", _MILLISECOND, (best["unset"] - best["without"]) / unit),
        ("variable set, at start-up, no framework", 2 * _MILLISECOND, (best["set"] - best["without"]) / unit),
    ]


def _start(script: str, variables: dict[str, str]) -> float:
    environ = {"PATH": os.environ["PATH"], **variables}
    started = time.perf_counter()
    child = os.posix_spawn(sys.executable, [sys.executable, "-I", "-S", script], environ)
    os.waitpid(child, 0)
    return time.perf_counter() - started
