"""The command itself: without its extra, its version, its help, and what it leaves unloaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.unit.cli.running import run

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

PROGRAM = Path(sys.executable).parent / "agent-otel"
LOADED = """
import sys
sys.argv = ["agent-otel", "dashboards", "list"]
from agent_otel.cli import main
try:
    main()
finally:
    ours = ("opentelemetry", "prometheus_client", "wrapt", "agent_otel.telemetry", "agent_otel.core.handler")
    print([name for name in sys.modules if name in ours], file=sys.stderr)
"""


def test_without_the_extra_it_says_how_to_get_it(environment: Callable[[str], Environment]) -> None:
    bare = environment("bare")
    with bare.start(str(bare.program("agent-otel")), "dashboards", "list") as child:
        out, err = child.communicate()
    expected = (
        "agent-otel needs click, httpx, markdown_it, rich, yaml: pip install 'click>=8.1' 'httpx>=0.27' "
        "'markdown-it-py>=2.2' 'msgpack>=1.0.3' 'pyyaml>=6' 'rich>=13'\n"
    )
    assert (2, "", expected) == (child.returncode, out, err)


def test_version() -> None:
    done = subprocess.run((PROGRAM, "--version"), capture_output=True, text=True, check=False)
    assert (0, "agent-otel, version 0.1.0\n", "") == (done.returncode, done.stdout, done.stderr)


def test_help_names_the_commands() -> None:
    ran = run("--help")
    assert 0 == ran.code
    assert ["alerts", "Rules for Prometheus, and whether they work there."] in ran.rows
    assert ["dashboards", "Dashboards for Grafana."] in ran.rows


def test_a_command_that_there_is_not() -> None:
    ran = run("dashboard")
    assert 2 == ran.code
    assert "No such command 'dashboard'. Do you mean dashboards?" in ran.err
    assert "No such command 'x'" in run("x").err


def test_it_runs_as_a_module() -> None:
    command = (sys.executable, "-m", "agent_otel", "--version")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (0, "agent-otel, version 0.1.0\n", "") == (done.returncode, done.stdout, done.stderr)


def test_a_reader_that_closes_the_pipe_is_no_error_to_print() -> None:
    with subprocess.Popen((PROGRAM, "caps"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.close()
        assert child.stderr is not None
        assert b"" == child.stderr.read()


def test_caps() -> None:
    ran = run("caps", "temporal")
    assert (0, "") == (ran.code, ran.err)
    assert ["runtime", "boundary", "variant", "versions", "cap", "confidence", "changed by"] == ran.rows[0]
    assert {"temporal"} == {row[0] for row in ran.rows[1:]}
    assert ["temporal", "activity_input", "2,097,152"] in [[*row[:2], row[3]] for row in ran.rows[1:]]
    assert 10 < len(run("caps").rows)


def test_caps_of_what_is_not_known() -> None:
    ran = run("caps", "temporal", "tempral")
    assert (1, "") == (ran.code, ran.out)
    assert ran.err.startswith("Error: no caps are known of tempral; there are those of ")


def test_it_does_not_watch_itself() -> None:
    """In a shell where the package is switched on, nothing of it is loaded and nothing more is printed."""
    said = []
    for environ in ({}, {"AGENT_OTEL": "1", "AGENT_OTEL_PROMETHEUS_PORT": "1"}):
        done = subprocess.run((sys.executable, "-c", LOADED), capture_output=True, text=True, check=True, env=environ)
        said.append((done.stdout, done.stderr))
    assert said[0] == said[1]
    assert "agent-otel-tools" in said[0][0]
    assert "[]\n" == said[0][1]
