"""Servers and wrapper commands that start Python for the user: each process that serves is active, once."""

import contextlib
import http.client
import socket
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from tests.environments import Environment
from tests.startup.conftest import STATE

_WSGI = """
def application(environ, start_response):
    start_response("200 OK", [])
    return [f"{state()} {os.getpid()}".encode()]
"""
_ASGI = """
async def application(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": f"{state()} {os.getpid()}".encode()})
"""
_SILENT = {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}


@pytest.fixture
def servers(environment: Callable[[str], Environment]) -> Environment:
    """Return the environment with gunicorn, uvicorn and opentelemetry-instrument."""
    return environment("servers")


@pytest.mark.parametrize(
    ("program", "source", "options"),
    [
        ("gunicorn", _WSGI, ("-w", "1", "-b", "unix:{socket}")),
        ("gunicorn", _WSGI, ("-w", "2", "--preload", "-b", "unix:{socket}")),
        ("uvicorn", _ASGI, ("--lifespan", "off", "--uds", "{socket}")),
        ("uvicorn", _ASGI, ("--lifespan", "off", "--workers", "2", "--uds", "{socket}")),
    ],
)
def test_servers(servers: Environment, tmp_path: Path, program: str, source: str, options: tuple[str, ...]) -> None:
    (tmp_path / "application.py").write_text("import os" + STATE + source)
    path = tmp_path / "socket"
    arguments = [option.format(socket=path) for option in options]
    command = (str(servers.program(program)), *arguments, "application:application")
    with servers.start(*command, env={"AGENT_OTEL": "1", "PYTHONPATH": str(tmp_path)}, cwd=tmp_path) as server:
        answers = [_get(path, server) for _ in range(5)]

    assert {"True 1"} == {answer.rsplit(" ", 1)[0] for answer in answers}


@pytest.mark.parametrize(
    ("expected", "env"),
    [
        ("True 1", {}),
        ("True 1", {"AGENT_OTEL": "1"}),
        ("False 0", {"AGENT_OTEL": "0"}),
        ("False 0", {"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "agent_otel"}),
        ("True 1", {"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "agent_otel", "AGENT_OTEL": "1"}),
    ],
)
def test_opentelemetry_instrument(servers: Environment, expected: str, env: dict[str, str]) -> None:
    command = (str(servers.program("opentelemetry-instrument")), str(servers.python), "-c", f"{STATE}print(state())")
    with servers.start(*command, env={**_SILENT, **env}) as child:
        out, complaints = child.communicate(timeout=60)

    assert (f"{expected}\n", "") == (out, complaints)


def _get(path: Path, server: Popen[str]) -> str:
    """Ask a server that listens on a Unix socket; wait until it does."""
    deadline = time.monotonic() + 30
    while (answer := _answer(path)) is None:
        if server.poll() is not None or time.monotonic() > deadline:
            server.kill()
            raise AssertionError("\n".join(server.communicate()))
        time.sleep(0.05)
    return answer


def _answer(path: Path) -> str | None:
    with contextlib.closing(_Connection(path)) as connection:
        try:
            connection.request("GET", "/")
            return connection.getresponse().read().decode()
        except OSError:
            return None


class _Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket: no port to be taken."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=10)
        self._path = path

    def connect(self) -> None:
        self.sock: Any = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))
