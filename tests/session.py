"""Runs the commands of ``scripts/test``, counts their processor time, and ends every process that they leave.

`python tests/session.py COMMAND... [--- COMMAND...]` runs the commands in order until one fails. On Ctrl-C,
SIGTERM or SIGHUP it kills the commands and all their descendants at once, also in other sessions. Only the
standard library is imported.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_SEPARATOR = "---"
_PR_SET_CHILD_SUBREAPER = 36
_PROC = Path("/proc")


def adopt_orphans() -> None:
    """Become the parent of descendants that lose theirs, where the system can do that (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants() -> dict[int, bool]:
    """Return the processes that this one and its children have started, and whether each still runs.

    The main thread of a process may have ended before its other threads: it still has the children of the process then.
    """
    children: dict[int, list[int]] = {}
    runs: dict[int, bool] = {}
    for stat in _PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            # A name in parentheses may have blanks; the state and the parent follow it.
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            children.setdefault(int(parent), []).append(int(stat.parent.name))
            runs[int(stat.parent.name)] = state != "Z"
    found: dict[int, bool] = {}
    waiting = [os.getpid()]
    while waiting:
        new = children.get(waiting.pop(), [])
        found.update((process, runs[process]) for process in new)
        waiting += new
    return found


def kill_descendants() -> int:
    """Kill all descendants and wait for them. Return how many there were."""
    killed: set[int] = set()
    for _ in range(1000):  # one that is killed may have started another meanwhile
        found = descendants()
        if not found:
            break
        for process in (process for process, runs in found.items() if runs):
            killed.add(process)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        _reap()
        time.sleep(0.01)
    return len(killed)


def _reap() -> None:
    """Wait for children that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


class Session:
    """A few commands, in order."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.group = 0

    def run(self, command: list[str]) -> int:
        """Run a command and return its exit status, 128 and more for a signal."""
        # A separate session keeps Ctrl-C from the command: it would print tracebacks while it is killed.
        child = subprocess.Popen(command, start_new_session=True)
        self.group = child.pid
        status = self._wait(child.pid)
        child.returncode = status
        return status if status >= 0 else 128 - status

    @staticmethod
    def _wait(child: int) -> int:
        """Wait for a child, and for each orphan that ends before it."""
        while True:
            ended, status = os.wait()
            if ended == child:
                return os.waitstatus_to_exitcode(status)

    def interrupted(self, number: int, _: FrameType | None) -> NoReturn:
        """End everything because of a signal."""
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        killed = kill_descendants()
        if self.group:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # without /proc
                os.killpg(self.group, signal.SIGKILL)
        print(f"\nscripts/test: {signal.Signals(number).name}; ended {killed} processes", flush=True)
        self.report()
        os._exit(128 + number)

    def report(self) -> None:
        """Print the processor time of all processes that have ended, and the time on the clock."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"scripts/test: {used.ru_utime + used.ru_stime:.1f} CPU seconds ({used.ru_utime:.1f} user,"
            f" {used.ru_stime:.1f} system), {time.monotonic() - self.began:.0f} seconds on the clock",
            flush=True,
        )


def commands(arguments: list[str]) -> Iterator[list[str]]:
    """Yield the commands between separators."""
    command: list[str] = []
    for argument in chain(arguments, [_SEPARATOR]):
        if argument == _SEPARATOR:
            yield command
            command = []
        else:
            command.append(argument)


def main(arguments: list[str]) -> int:
    """Run the commands and return the exit status of the last one that ran."""
    adopt_orphans()
    session = Session()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # nohup ignores SIGHUP. A shell ignores SIGINT in the background, but who sends it there means it.
        if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, session.interrupted)
    status = 0
    for command in commands(arguments):
        status = session.run(command)
        if status:
            break
    left = kill_descendants()
    if left:
        print(f"scripts/test: ended {left} processes that tests left running", flush=True)
    session.report()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
