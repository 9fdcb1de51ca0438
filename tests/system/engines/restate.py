"""A real Restate server: its binary, from npm, with its state in a temporary folder."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.interpreters import UnavailableError, lock
from tests.system.engines import starting

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION = "1.7.12"

_BINARIES = "node_modules/@restatedev/restate-server-*/bin/restate-server"


@dataclass(frozen=True)
class Restate:
    """A server that answers. Handlers are called at ``{ingress}/{service}/{handler}``, by POST."""

    ingress: str
    admin: str

    def register(self, url: str) -> Any:
        """Make a deployment that serves at this address known; return what Restate says of it."""
        status, said = _ask("POST", f"{self.admin}/deployments", {"uri": url, "force": True})
        assert status in (200, 201), f"{status}: {said!r}"
        return json.loads(said)


@contextlib.contextmanager
def server(**settings: str) -> Iterator[Restate]:
    """Start one, with settings as its environment variables: ``RESTATE_WORKER__INVOKER__MESSAGE_SIZE_LIMIT="1MiB"``.

    UnavailableError when it is not on this machine and npm does not bring it.
    """
    binary = install()
    node, admin, ingress = (starting.free_port() for _ in range(3))
    with starting.folder() as folder:
        env = {
            "HOME": str(folder),
            "RESTATE_ADMIN__BIND_PORT": str(admin),
            "RESTATE_BASE_DIR": str(folder / "data"),
            "RESTATE_BIND_IP": "127.0.0.1",
            "RESTATE_BIND_PORT": str(node),
            "RESTATE_DEFAULT_NUM_PARTITIONS": "1",
            "RESTATE_DISABLE_TELEMETRY": "true",
            "RESTATE_INGRESS__BIND_PORT": str(ingress),
            "RESTATE_LISTEN_MODE": "tcp",
            "RESTATE_LOG_DISABLE_ANSI_CODES": "true",
            **settings,
        }
        restate = Restate(f"http://127.0.0.1:{ingress}", f"http://127.0.0.1:{admin}")
        healthy = (f"{restate.admin}/health", f"{restate.ingress}/restate/health")
        with starting.process(
            *(binary, "--no-logo"), answers=lambda: all(map(_is_healthy, healthy)), env=env, cwd=folder
        ):
            yield restate


def install() -> Path:
    """Return the server's binary, from npm if it is not there yet."""
    folder = starting.cache("restate") / VERSION
    with lock(folder.with_name(f"{VERSION}.lock")):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            _npm(folder)
            (folder / "complete").touch()
    return next(folder.glob(_BINARIES))


def _npm(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise UnavailableError("npm is not installed; on Debian: apt-get install npm", obtainable=True)
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock")
    command = (npm, "install", "--prefix", str(folder), *options, f"@restatedev/restate-server@{VERSION}")
    done = subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, check=False)
    if done.returncode or not any(folder.glob(_BINARIES)):
        raise UnavailableError(f"npm install failed: {done.stderr.strip()[-2000:]}", obtainable=True)


def _is_healthy(url: str) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException):
        return _ask("GET", url)[0] == 200
    return False


def _ask(method: str, url: str, body: Any = None) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    with contextlib.closing(connection):
        given = (None, {}) if body is None else (json.dumps(body), {"content-type": "application/json"})
        connection.request(method, parts.path, *given)
        answer = connection.getresponse()
        return answer.status, answer.read()
