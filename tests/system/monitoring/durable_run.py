"""The durable example in a process of its own, held where its payload is near the cap, until it may go on and die.

It is the one on LangGraph and SQLite: it fails three times within a second, while Temporal would retry for minutes.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from examples.durable_agent import repository
from examples.durable_agent.model_server import SEARCHES, scripted_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from subprocess import Popen

ROOT = Path(__file__).resolve().parents[3]
#: The request in which the model is asked to go on with three turns' results, 0.82 of what SQLite takes.
HELD_AT = 4
#: The turns that it could make; the fifth's state is over the cap.
TURNS = 8
_SECONDS = 60


@dataclass(frozen=True)
class DurableRun:
    """An agent that runs."""

    _process: Popen[str]
    _held: threading.Event
    _go_on: threading.Event

    def wait_until_near_cap(self) -> None:
        """Wait until the model has been asked to go on with a state near the cap; it does not answer before `go_on`."""
        while not self._held.wait(0.1):
            assert self._process.poll() is None, "the agent ended before its payload was near the cap"

    def go_on(self) -> dict[str, Any]:
        """Let the model answer, and return how the run ended; the process stays, as workers do."""
        self._go_on.set()
        line = next((line for line in self._process.stdout or () if line.startswith("{")), None)
        assert line is not None, "the agent ended without a word"
        ending: dict[str, Any] = json.loads(line)
        return ending

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()


def interpreter() -> Path:
    """Make the environment of ``scripts/durable``, unless it is there, and return its interpreter."""
    lines = (ROOT / "examples" / "durable_agent" / "requirements.txt").read_text().splitlines()
    requirements = [line for line in lines if not line.startswith("#")]
    done = subprocess.run(
        (ROOT / "scripts" / "environment", "durable", *requirements), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    python = Path(done.stdout.strip())
    limits = "import sqlite3; exit(not hasattr(sqlite3.Connection, 'setlimit'))"
    if subprocess.run((python, "-c", limits), check=False).returncode:
        pytest.skip("sqlite3 cannot limit a connection before Python 3.11")
    return python


@contextlib.contextmanager
def durable_run(python: Path, folder: Path, telemetry: Mapping[str, str]) -> Iterator[DurableRun]:
    """Start the agent, unchanged, with these variables of telemetry, until the block is left."""
    held, go_on = threading.Event(), threading.Event()

    def heard(turn: int) -> None:
        if turn == HELD_AT:
            held.set()
            go_on.wait(_SECONDS)

    made = repository.make(folder / "repository", SEARCHES * TURNS)
    given = (
        *("--repository", str(made.path), "--question", "Which handlers are registered for which topic?"),
        *("--folder", str(folder), "--patience", str(_SECONDS)),
    )
    with scripted_model(TURNS, heard) as model, (folder / "said").open("w+") as said:
        environ = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(Path.home()), "LANG": "C.UTF-8"}
        environ |= {"AGENT_OTEL": "1", "OTEL_TRACES_EXPORTER": "none", **telemetry, **model.environment}
        with subprocess.Popen(
            (python, "-I", "-m", "examples.durable_agent.langgraph_agent", *given),
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        ) as process:
            try:
                yield DurableRun(process, held, go_on)
            except AssertionError as error:
                said.seek(0)
                raise AssertionError(f"{error}\n{said.read()}") from error
            finally:
                go_on.set()
                process.kill()
