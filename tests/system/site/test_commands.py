"""The commands of the page on containers run unchanged."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
COMMANDS = [
    command.partition(" #")[0]
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    for command in re.findall(r"^\$ (agent-otel .*)$", block, re.MULTILINE)
]


def test_there_are_commands() -> None:
    assert 2 == len(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs(command: str, tmp_path: Path) -> None:
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(shlex.split(command), cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    assert list(tmp_path.rglob("*.yaml"))
