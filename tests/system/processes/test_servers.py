"""Servers with a tool call in each request: every span arrives, once, when they are told to stop."""

from __future__ import annotations

import contextlib
import http.client
import socket
import time
from collections import Counter
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import pytest

from tests.patience import Deadline, communicate
from tests.servers.otlp import OtlpReceiver

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import Popen

    from tests.environments import Environment

_TOOL = """
from langchain_core.tools import tool

@tool
def repeat(number: int) -> str:
    "So many letters."
    return "x" * number
"""
_WSGI = """
def application(environ, start_response):
    start_response("200 OK", [])
    return [repeat.invoke({"number": int(environ["PATH_INFO"][1:])}).encode()]
"""
_ASGI = """
async def application(scope, receive, send):
    body = (await repeat.ainvoke({"number": int(scope["path"][1:])})).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
"""
_GUNICORN = ("gunicorn", _WSGI, ("-w", "2", "-b", "unix:{socket}"))
_GEVENT = ("gunicorn", _WSGI, ("-k", "gevent", *_GUNICORN[2]))
_PRELOADED = ("gunicorn", _WSGI, ("-w", "2", "--preload", "-b", "unix:{socket}"))
_UVICORN = ("uvicorn", _ASGI, ("--lifespan", "off", "--uds", "{socket}"))
_UVICORN_2 = ("uvicorn", _ASGI, ("--lifespan", "off", "--workers", "2", "--uds", "{socket}"))
_INSTRUMENTED = ("opentelemetry-instrument", _WSGI, ("gunicorn", *_GUNICORN[2]))
_REQUESTS = range(1, 9)
#: So long that nothing is sent but at an end; and ours, a second.
_LONG = {"OTEL_BSP_SCHEDULE_DELAY": "60000"}
_FLUSH = {"AGENT_OTEL_FLUSH_ON_SIGTERM": "1"}
#: Workers with the same key give the same arguments the same hash.
_KEY = "q1Zk0mX7uB2rT9vL4sYc"


@pytest.mark.parametrize(
    ("name", "server", "env"),
    [
        pytest.param("servers", _GUNICORN, _LONG, id="gunicorn"),
        pytest.param("servers", _GEVENT, _LONG, id="gunicorn gevent"),
        pytest.param("servers", _PRELOADED, _LONG, id="gunicorn preloaded"),
        pytest.param("servers-newest", _GUNICORN, _LONG, id="gunicorn newest"),
        pytest.param("servers", _UVICORN, _LONG | _FLUSH, id="uvicorn flushing"),
        pytest.param("servers", _UVICORN_2, _LONG | _FLUSH, id="uvicorn workers flushing"),
        pytest.param("servers-newest", _UVICORN_2, _LONG | _FLUSH, id="uvicorn workers flushing newest"),
        pytest.param("servers", _UVICORN, {}, id="uvicorn"),
        pytest.param("servers", _UVICORN_2, {}, id="uvicorn workers"),
    ],
)
def test_servers(
    environment: Callable[[str], Environment],
    tmp_path: Path,
    name: str,
    server: tuple[str, str, tuple[str, ...]],
    env: dict[str, str],
) -> None:
    with OtlpReceiver() as receiver:
        _serve(environment(name), tmp_path, server, receiver, {**env, "AGENT_OTEL": "1"}, wait=not env)

    assert {_hash(number): 1 for number in _REQUESTS} == _arrived(receiver)
    assert sorted(_REQUESTS) == sorted(span.attributes["tool.result.bytes"] for span in receiver.spans)


@pytest.mark.parametrize(
    ("switch", "times"), [({}, 1), ({"AGENT_OTEL": "1"}, 1), ({"AGENT_OTEL": "0"}, 0)], ids=["unset", "on", "off"]
)
def test_opentelemetry_instrument(
    environment: Callable[[str], Environment], tmp_path: Path, switch: dict[str, str], times: int
) -> None:
    with OtlpReceiver() as receiver:
        env = {"OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none", **switch}
        _serve(environment("servers"), tmp_path, _INSTRUMENTED, receiver, env)

    assert ({_hash(number): 1 for number in _REQUESTS} if times else {}) == _arrived(receiver)


def _serve(  # noqa: PLR0913 - what a server takes
    servers: Environment,
    folder: Path,
    server: tuple[str, str, tuple[str, ...]],
    receiver: OtlpReceiver,
    env: dict[str, str],
    *,
    wait: bool = False,
) -> None:
    """Ask the server for each number, stop it with SIGTERM, wait for its end."""
    program, source, options = server
    (folder / "application.py").write_text(_TOOL + source)
    path = folder / "socket"
    command = (str(servers.program(program)), *(option.format(socket=path) for option in options))
    env = {"PYTHONPATH": str(folder), "AGENT_OTEL_HASH_KEY": _KEY, **receiver.environment(), **env}
    with servers.start(*command, "application:application", env=env, cwd=folder) as running:
        for number in _REQUESTS:
            assert "x" * number == _get(path, f"/{number}", running)
        if wait:
            receiver.wait_for_spans(len(_REQUESTS))
        running.terminate()
        _, stderr = communicate(running, 60)
    assert running.returncode in (0, -15), stderr
    assert "Traceback" not in stderr


def _hash(number: int) -> str:
    return blake2b(b'{"number":%d}' % number, digest_size=6, key=_KEY.encode()).hexdigest()


def _arrived(receiver: OtlpReceiver) -> dict[str, int]:
    return dict(Counter(span.attributes["tool.args_hash"] for span in receiver.spans))


def _get(path: Path, url: str, server: Popen[str]) -> str:
    """Ask a server that listens on a Unix socket; wait until it does."""
    deadline = Deadline(60)
    while not deadline.has_passed() and server.poll() is None:
        with contextlib.suppress(OSError), contextlib.closing(_Connection(path)) as connection:
            connection.request("GET", url)
            return connection.getresponse().read().decode()
        time.sleep(0.05)
    server.kill()
    raise AssertionError("\n".join(server.communicate()))


class _Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket: no port to be taken."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=10)
        self._path = path

    def connect(self) -> None:
        self.sock: Any = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))
