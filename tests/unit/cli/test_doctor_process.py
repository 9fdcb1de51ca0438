"""``agent-otel doctor --pid``: a process that runs, by its variables, its status file and its port."""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from agent_otel.doctor import findings
from tests.system.engines import starting
from tests.unit.cli.running import run
from tests.unit.cli.watched import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

# It tells its status with a forked child, measures a call in both, and waits.
_AGENT = """
import os, sys, threading
import agent_otel

@agent_otel.tool
def search(query):
    return "found"

if "measure" in sys.argv:
    search("x")
    if "fork" in sys.argv and os.fork() == 0:
        search("y")
        sys.stdout = open(os.devnull, "w")
print("ready", flush=True)
threading.Event().wait()
"""
_ON = {"AGENT_OTEL": "1"}


@pytest.fixture
def bare(environment: Callable[[str], Environment]) -> Environment:
    return environment("bare")


def test_a_process_with_a_status_file_and_a_port(bare: Environment, tmp_path: Path) -> None:
    port = starting.free_port()
    env = {
        **_ON,
        "AGENT_OTEL_STATUS_FILE": "status-{pid}.json",  # below the process's folder
        "AGENT_OTEL_PROMETHEUS_PORT": str(port),
        "AGENT_OTEL_HASH_KEY": "0123456789abcdef",
        "AGENT_OTEL_SPNS": "off",
    }
    with bare.start(str(bare.python), "-c", _AGENT, "measure", "fork", env=env, cwd=tmp_path) as agent:
        assert agent.stdout
        assert "ready\n" == agent.stdout.readline()
        path = tmp_path / f"status-{agent.pid}.json"
        wait_for(path.exists)
        ran = run("doctor", "--pid", agent.pid, "--json")
        found = json.loads(ran.out)
        of_file = json.loads(run("doctor", "--status", path, "--json").out)
        wait_for(lambda: 2 == len([*tmp_path.glob("status-*.json")]))  # the child's
        files = [*tmp_path.glob("status-*.json")]
    texts = [(finding["level"], finding["text"]) for finding in found["findings"]]
    assert 0 == ran.code
    assert ("ok", f"on in process {agent.pid}, agent_otel 0.1.0 in Python {_python(path)}") in texts
    assert ("ok", "Spans are exported once the program sets a TracerProvider.") in texts
    message = "AGENT_OTEL_SPNS is no setting of agent_otel and has no effect. Do you mean AGENT_OTEL_SPANS?"
    assert ("warning", message) in texts
    assert (
        "ok",
        f"port {port} has the metrics of tool calls: 1; `agent-otel metrics localhost:{port}` prints them",
    ) in texts
    assert "(secret)" == found["facts"]["variables"]["AGENT_OTEL_HASH_KEY"]
    assert agent.pid == of_file["facts"]["status"]["pid"]
    assert {path.name for path in files} == {f"status-{json.loads(file.read_text())['pid']}.json" for file in files}


def _python(path: Path) -> str:
    return str(json.loads(path.read_text())["python"])


@pytest.mark.parametrize(
    ("env", "code", "first"),
    [
        ({}, 1, "agent_otel is off in process {pid}: AGENT_OTEL is not set: set AGENT_OTEL=1 and start it again"),
        (
            {"AGENT_OTEL": "0"},
            1,
            "agent_otel is off in process {pid}: AGENT_OTEL=0: set AGENT_OTEL=1 and start it again",
        ),
        (_ON, 0, "process {pid} writes no status: set AGENT_OTEL_STATUS_FILE"),
        (
            {**_ON, "AGENT_OTEL_STATUS_FILE": "/nowhere/status"},
            0,
            "/nowhere/status is not there: process {pid} has measured nothing yet, or its start-up file did not run",
        ),
    ],
)
def test_a_process_without_a_status(bare: Environment, env: dict[str, str], code: int, first: str) -> None:
    with bare.start(str(bare.python), "-c", _AGENT, env=env) as agent:
        assert agent.stdout
        assert "ready\n" == agent.stdout.readline()
        ran = run("doctor", "--pid", agent.pid)
    assert code == ran.code
    assert ran.out.startswith(first.format(pid=agent.pid))


def test_a_status_that_is_old_names_it(bare: Environment, tmp_path: Path) -> None:
    path = tmp_path / "status"
    env = {**_ON, "AGENT_OTEL_STATUS_FILE": str(path)}
    with bare.start(str(bare.python), "-c", _AGENT, "measure", env=env) as agent:
        wait_for(path.exists)
    status = json.loads(path.read_text())
    path.write_text(json.dumps({**status, "time": status["time"] - 600}))
    assert run("doctor", "--status", path).out.startswith(f"process {agent.pid} wrote its status 60")


def test_what_cannot_be_read(tmp_path: Path) -> None:
    for text in ("{}", '{"agent_otel": "1"}', "[]"):
        (tmp_path / "other").write_text(text)
        ran = run("doctor", "--status", tmp_path / "other")
        assert f"Error: {tmp_path / 'other'} is no status of agent_otel\n" == ran.err
    with subprocess.Popen(("true",)) as ended:
        pass
    assert f"Error: there is no process {ended.pid}\n" == run("doctor", "--pid", ended.pid).err


def test_a_system_without_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS and Windows nothing tells the variables of a process: the status file does."""
    missing = tmp_path / "proc"
    monkeypatch.setattr(findings, "_PROCESSES", missing)
    ran = run("doctor", "--pid", 4711)
    assert (1, "") == (ran.code, ran.out)
    assert (
        f"Error: this system has no {missing}, so that the variables of process 4711 cannot be read: start it with "
        "AGENT_OTEL_STATUS_FILE=agent-{pid}.json, and give that file: agent-otel doctor --status agent-4711.json"
    ) == " ".join(ran.err.split())

    status = {"pid": 4711, "agent_otel": "0.1.0", "python": "3.14.2", "time": time.time(), "integrations": {}}
    status |= {"spans": "spans go nowhere", "metrics": "metrics: port 9464", "warnings": [], "internal_errors": {}}
    (tmp_path / "status").write_text(json.dumps(status))
    for arguments in (("--status", tmp_path / "status"), ("--pid", 4711, "--status", tmp_path / "status")):
        ran = run("doctor", *arguments)
        assert (0, "") == (ran.code, ran.err)
        assert ran.out.startswith("on in process 4711, agent_otel 0.1.0 in Python 3.14.2\n")
