"""The commands of the pages that lead a newcomer: each runs as it stands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
AGENT = "import agent_otel\n\n@agent_otel.tool\ndef search():\n    return 'größe'\n\nsearch()\n"
COMMANDS = [
    command.partition(" #")[0]
    for page in ("docs/start.md", "docs/kubernetes.md")
    for block in re.findall(r"```console\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    for command in re.findall(r"^\$ (agent-otel .*)$", block, re.MULTILINE)
]


def test_there_are_commands() -> None:
    assert 3 == len(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs(command: str, tmp_path: Path) -> None:
    (tmp_path / "your_agent.py").write_text(AGENT, encoding="utf-8")
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(shlex.split(command), cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    if " doctor " in command:
        assert "search  1      7 " in done.stdout
    else:
        assert list(tmp_path.rglob("*.yaml"))
