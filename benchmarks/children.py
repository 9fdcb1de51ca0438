"""Parts of the benchmarks that run in processes of their own, with few variables of this one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def environment(**variables: str) -> dict[str, str]:
    """Return the variables of a child: what it needs to start, the root of the repository, and these."""
    needed = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**needed, "PYTHONPATH": str(ROOT), **variables}


def last_line(python: str, *arguments: str, **variables: str) -> str:
    """Run a child and return the last line that it prints; exit with the end of its errors where it fails."""
    command, env = (python, *arguments), environment(**variables)
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{done.stderr[-2000:]}")
    return done.stdout.splitlines()[-1]
