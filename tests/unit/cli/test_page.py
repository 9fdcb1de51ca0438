"""Every block of docs/command-line.md, and that of the README, runs as it stands against servers that answer."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests import environments
from tests.environments import ROOT
from tests.servers.grafana import TOKEN, Grafana
from tests.system.engines import prometheus, starting
from tests.unit.cli import watched

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

PAGE = (ROOT / "docs" / "command-line.md").read_text()
INSTALL, *BLOCKS = (
    [line.removeprefix("$ ") for line in block.splitlines()]
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
)
(EVERY_DAY,) = (block for block in BLOCKS if block[0].startswith("agent-otel run"))
README = (ROOT / "README.md").read_text()
(IMPORT,) = (
    [line.removeprefix("$ ") for line in block.splitlines()]
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    if "agent-otel dashboards" in block
)
(OPTIONS,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_there_are_no_other_blocks() -> None:
    kinds = [name for name in re.findall(r"^```(\w*)", PAGE, re.MULTILINE) if name]
    assert ["console"] * 9 + ["yaml"] + ["console"] * 3 == kinds


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the variables of a shell in which the command has been installed as both pages say."""
    folder = tmp_path_factory.mktemp("installed")
    environments.uv("venv", "--seed", "--python", sys.executable, str(folder / "venv"))
    environ = {**os.environ, "PATH": f"{folder}/venv/bin{os.pathsep}{os.environ['PATH']}", "NO_PROXY": "*"}
    _shell(INSTALL, ROOT, environ)
    return environ


def test_every_command(environment: Callable[[str], Environment], environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "options.yaml").write_text(OPTIONS)
    elsewhere = ("agent-otel doctor", "pip install", "agent-otel top", *EVERY_DAY)
    commands = [command for block in BLOCKS for command in block if not command.startswith(elsewhere)]
    checks = [command for command in commands if command.startswith(("agent-otel alerts check", "agent-otel report"))]
    assert 5 == len(checks)
    with Grafana() as grafana:
        said = _shell(
            [_addressed(command, grafana.url, "") for command in commands if command not in checks], tmp_path, environ
        )
    assert "written" in said
    assert 5 == len(grafana.dashboards)
    assert {"Agents"} == {folder["title"] for folder in grafana.folders}
    names = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/**/*")}
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
        checks = [re.sub(" --until .* --format", " --format", command) for command in checks]
        said = _shell([_addressed(command, "", engine.url) for command in checks], tmp_path, environ)
    assert (tmp_path / "review.md").read_text().startswith("# Daily review")
    assert (tmp_path / "review.html").read_text().startswith("<!doctype html>")
    assert "AgentToolResultGrown" in said
    assert '"problems": []' in said


def test_the_doctor(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("import agent_otel\nagent_otel.tool(len)('four')\n")
    examine, without_site, watch, process = (command for block in BLOCKS for command in block if "doctor" in command)
    environ = {**environ, "AGENT_OTEL": "1"}
    assert "on, agent_otel 0.1.0 in Python" in _shell([examine], tmp_path, environ)
    assert "python3 -S has no site-packages, because of -S" in _shell([f"! {without_site} 2>&1"], tmp_path, environ)
    assert "1 tool calls, 0 payloads, 0 internal errors" in _shell([watch], tmp_path, environ)
    assert str(os.getpid()) in _shell([f"! {process.replace('4711', str(os.getpid()))} 2>&1"], tmp_path, environ)


def test_every_day(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import agent_otel\nagent_otel.tool(len)('four')\nprint('ran')\n")
    run, run_with_port, listed, installed, metrics, version, completion = EVERY_DAY
    port = str(starting.free_port())
    program = f"from prometheus_client import *; start_http_server({port}, '127.0.0.1'); import time; time.sleep(3600)"
    assert "ran\nran\n" == _shell([run, run_with_port.replace("9464", port)], tmp_path, environ)
    assert "AGENT_OTEL_HASH_KEY" in _shell([listed], tmp_path, {**environ, "AGENT_OTEL_HASH_KEY": "k" * 16})
    assert "agent_otel" in _shell([installed, version, completion, "type _agent_otel_completion"], tmp_path, environ)
    with subprocess.Popen((sys.executable, "-c", program)) as server:
        try:
            wait = f"until (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.1; done"
            assert "nothing of agent_otel has been counted there" in _shell(
                [wait, metrics.replace("9464", port)], tmp_path, environ
            )
        finally:
            server.kill()


def test_the_four_lines_of_the_readme(
    environment: Callable[[str], Environment], environ: dict[str, str], tmp_path: Path
) -> None:
    token, push, export, check = IMPORT
    with Grafana() as grafana:
        _shell([_addressed(command, grafana.url, "") for command in (token, push, export)], tmp_path, environ)
    assert 5 == len(grafana.dashboards)
    programs = starting.obtained(prometheus.programs, prometheus.NEWEST)
    rules = tmp_path / "rules" / "agent-otel.rules.yaml"
    with watched.server(environment("bare"), programs, (rules,)) as engine:
        said = _shell([_addressed(check, "", engine.url)], tmp_path, environ)
    assert "rules are loaded as exported." in said


def _addressed(command: str, grafana: str, engine: str) -> str:
    command = command.replace("glsa_...", TOKEN).replace("http://localhost:3000", grafana)
    return re.sub(r"http://localhost:(9090|8428|8880)", engine, command)


def _shell(commands: list[str], cwd: Path, environ: dict[str, str]) -> str:
    script = "set -e\n" + "\n".join(commands)
    done = subprocess.run(("bash", "-c", script), cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout
