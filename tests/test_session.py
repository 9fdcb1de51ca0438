"""What ``scripts/test`` runs is ended with all that it started, and its processor time is counted."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from tests.patience import communicate

SESSION = str(Path(__file__).with_name("session.py"))
#: Starts a child in a session of its own, as tests do, and a daemon; prints their ids and its own.
STARTS = """if True:
    import os, subprocess, sys, time

    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    reading, writing = os.pipe()
    if not os.fork():
        os.setsid()
        if not os.fork():
            os.write(writing, str(os.getpid()).encode())
            burnt = time.process_time() + float(sys.argv[1])
            while time.process_time() < burnt:
                pass
            time.sleep(600 * float(sys.argv[2]))
        os._exit(0)
    os.wait()
    daemon = os.read(reading, 100).decode()
    print(os.getpid(), child.pid, daemon, flush=True)
"""


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen((sys.executable, "-I", SESSION, *arguments), stdout=subprocess.PIPE, text=True)


def is_running(process: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _line(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_everything_at_once(number: signal.Signals) -> None:
    with start(sys.executable, "-c", f"{STARTS}    time.sleep(600)", "0", "1", "---", "echo", "never") as session:
        processes = [int(each) for each in _line(session.stdout).split()]
        assert [True] * 3 == [is_running(each) for each in processes]
        session.send_signal(number)
        said, _ = communicate(session, 20)
    assert [False] * 3 == [is_running(each) for each in processes]
    assert 128 + number == session.returncode
    assert f"scripts/test: {number.name}; ended " in said
    assert "CPU seconds" in said
    assert "never" not in said


def test_what_is_left_at_the_end_is_ended_and_named() -> None:
    with start(sys.executable, "-c", STARTS, "0", "1") as session:
        processes = [int(each) for each in _line(session.stdout).split()]
        said, _ = communicate(session, 20)
    assert 0 == session.returncode
    assert [False] * 3 == [is_running(each) for each in processes]
    assert "ended 2 processes that tests left running" in said


def test_processor_time_of_orphans_counts() -> None:
    until_it_ends = "    while os.path.exists(f'/proc/{daemon}'): time.sleep(0.1)"
    with start(sys.executable, "-c", STARTS + until_it_ends, "0.5", "0") as session:
        said, _ = communicate(session, 60)
    found = re.search(r"([\d.]+) CPU seconds", said)
    assert found
    assert 0.5 <= float(found[1])


def test_the_first_failure_is_the_status_and_the_end() -> None:
    with start("sh", "-c", "exit 3", "---", "echo", "never") as session:
        said, _ = communicate(session, 20)
    assert 3 == session.returncode
    assert "never" not in said
    with start("sh", "-c", "kill -9 $$") as session:
        communicate(session, 20)
    assert 137 == session.returncode
    with start("echo", "first", "---", "echo", "second") as session:
        said, _ = communicate(session, 20)
    assert 0 == session.returncode
    assert ["first", "second"] == said.split("\n")[:2]
