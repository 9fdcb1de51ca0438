"""Every block of docs/command-line.md runs as it stands, in a new environment, against servers that answer."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests import environments
from tests.cli import watched
from tests.engines import prometheus, starting
from tests.environments import ROOT
from tests.servers.grafana import TOKEN, Grafana

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

PAGE = (ROOT / "docs" / "command-line.md").read_text()
INSTALL, *BLOCKS = (
    [line.removeprefix("$ ") for line in block.splitlines()]
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
)
(OPTIONS,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_there_are_no_other_blocks() -> None:
    kinds = [name for name in re.findall(r"^```(\w*)", PAGE, re.MULTILINE) if name]
    assert ["console"] * 4 + ["yaml"] + ["console"] * 2 == kinds


@pytest.mark.timeout(300)
def test_every_command(environment: Callable[[str], Environment], tmp_path: Path) -> None:
    environments.uv("venv", "--seed", "--python", sys.executable, str(tmp_path / "venv"))
    path = f"{tmp_path}/venv/bin{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "NO_PROXY": "*"}
    _shell(INSTALL, ROOT, environ)
    (tmp_path / "options.yaml").write_text(OPTIONS)
    commands = [command for block in BLOCKS for command in block]
    checks = [command for command in commands if command.startswith("agent-otel alerts check")]
    assert 2 == len(checks)
    with Grafana() as grafana:
        grafana.datasources[0]["name"] = "Prometheus"
        said = _shell(
            [_addressed(command, grafana.url, "") for command in commands if command not in checks], tmp_path, environ
        )
    assert "would be created" in said
    assert ["agent-otel-executions", "agent-otel-health", "agent-otel-payload", "agent-otel-tools"] == sorted(
        grafana.dashboards
    )
    assert {"Agents"} == {folder["title"] for folder in grafana.folders}
    names = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/**/*") if "venv" not in path.parts}
    assert {
        "grafana/agent-otel-tools.json",
        "grafana/configmaps/agent-otel-tools.yaml",
        "grafana/provisioned/provisioning/dashboards/agent-otel.yaml",
        "rules/agent-otel.mimir.yaml",
        "rules/agent-otel.prometheusrule.yaml",
        "rules/agent-otel.rules.yaml",
    } <= names
    rules = tmp_path / "rules" / "agent-otel.rules.yaml"
    programs = starting.obtained(prometheus.programs, prometheus.NEWEST)
    with watched.server(environment("bare"), programs, (rules,)) as engine:
        said = _shell([_addressed(command, "", engine.url) for command in checks], tmp_path, environ)
    assert "AgentToolResultTooLarge" in said
    assert '"problems": []' in said


def _addressed(command: str, grafana: str, engine: str) -> str:
    command = command.replace("glsa_...", TOKEN).replace("http://localhost:3000", grafana)
    return re.sub(r"http://localhost:(9090|8428|8880)", engine, command)


def _shell(commands: list[str], cwd: Path, environ: dict[str, str]) -> str:
    script = "set -e\n" + "\n".join(commands)
    done = subprocess.run(("bash", "-c", script), cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout
