"""What all engines need to start: a free port, a process, somebody who waits until it answers, and who ends it."""

from __future__ import annotations

import contextlib
import os
import pwd
import random
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from tests.interpreters import UnavailableError
from tests.patience import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

_SERVED_PORTS = (10_000, 32_768)  # Linux gives higher ones to connections, and macOS those from 49,152 on

_P = ParamSpec("_P")
_T = TypeVar("_T")


@contextlib.contextmanager
def or_skip(engine: AbstractContextManager[_T]) -> Iterator[_T]:
    """Start an engine; where it cannot be had the test is skipped, and fails in CI if the machine could have had it."""
    from tests.conftest import skip  # only where pytest is: children use this module, too

    with contextlib.ExitStack() as stack:
        try:
            started = stack.enter_context(engine)
        except UnavailableError as error:
            skip(error)
        yield started


def obtained(get: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
    """Return what an engine's ``programs(...)`` returns; where that cannot be had, do what `or_skip` does."""
    from tests.conftest import skip

    try:
        return get(*arguments, **named)
    except UnavailableError as error:
        skip(error)


def cache(name: str) -> Path:
    """Where an engine that is not a Python package is kept from one run to the next."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agent_otel" / name


def free_port() -> int:
    """Return a TCP port of the loopback interface that nobody listens on.

    It is none of those that the system gives to connections, one of which would take it before the server does.
    """
    while True:
        port = random.randrange(*_SERVED_PORTS)  # noqa: S311 - no secret
        with contextlib.suppress(OSError), socket.socket() as free:
            free.bind(("127.0.0.1", port))
            return port


def listens(port: int) -> bool:
    """Return true when somebody of this machine listens."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def wait_for_port(port: int, seconds: float = 30) -> None:
    """Wait until somebody of this machine listens."""
    deadline = Deadline(seconds)
    while not listens(port):
        assert not deadline.has_passed(), f"nobody listens on port {port}"
        time.sleep(0.02)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder with a short name, because the path of a socket has at most 107 characters."""
    with tempfile.TemporaryDirectory(prefix="engine-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextlib.contextmanager
def process(  # noqa: PLR0913 - what a process is given, named
    *command: str | Path,
    answers: Callable[[], bool],
    env: Mapping[str, str],
    cwd: Path,
    user: str | None = None,
    stop: signal.Signals = signal.SIGKILL,
    seconds: float = 60,
) -> Iterator[Path]:
    """Run a server until the block is left; give the file with what it says, once it answers.

    One that ends, or has not answered after so many seconds, is an AssertionError with what it said.
    """
    said = cwd / "said"
    with (
        said.open("w") as output,
        subprocess.Popen(
            command,
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=user,
            group=group(user),
            extra_groups=None if user is None else (),
        ) as server,
    ):
        try:
            deadline = Deadline(seconds)
            while not answers():
                assert server.poll() is None, f"{command[0]} ended: {server.returncode}\n{said.read_text()}"
                assert not deadline.has_passed(), f"{command[0]} does not answer\n{said.read_text()}"
                time.sleep(0.02)
            yield said
        finally:
            _end(server, stop)


def group(user: str | None) -> int | None:
    """The main group of a user."""
    return None if user is None else pwd.getpwnam(user).pw_gid


def _end(server: subprocess.Popen[bytes], stop: signal.Signals) -> None:
    """End a server and its children, by force if it takes its time."""
    for each in (stop, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, each)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(10)
            return
