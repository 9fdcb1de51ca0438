"""A real Dapr: daprd, placement and scheduler, built with Go from its module proxy, with their state in memory."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.interpreters import UnavailableError, lock
from tests.system.engines import starting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

VERSION = "1.18.2"  # 1.18.3 wants a durabletask-go, 0.12.4, that the module proxy refuses

_PROGRAMS = ("daprd", "placement", "scheduler")
_MODULE = "github.com/dapr/dapr"
_STORE = {
    "apiVersion": "dapr.io/v1alpha1",
    "kind": "Component",
    "metadata": {"name": "state"},
    "spec": {
        "type": "state.in-memory",
        "version": "v1",
        "metadata": [{"name": "actorStateStore", "value": "true"}],
    },
}


@dataclass(frozen=True)
class Daprd:
    """A sidecar that answers, on the loopback interface; it has no application but who connects to it."""

    grpc_port: int
    http_port: int
    #: Where Prometheus scrapes it.
    metrics: str
    #: The log of daprd, and the scheduler's.
    said: Path
    scheduler_said: Path

    @property
    def address(self) -> str:
        """What a gRPC channel connects to, ``host:port``."""
        return f"127.0.0.1:{self.grpc_port}"

    def environ(self) -> dict[str, str]:
        """The variables by which Dapr's Python SDK finds it."""
        ports = {"DAPR_GRPC_PORT": str(self.grpc_port), "DAPR_HTTP_PORT": str(self.http_port)}
        return {"DAPR_RUNTIME_HOST": "127.0.0.1", **ports}


@contextlib.contextmanager
def daprd(version: str = VERSION, *, max_body_size: str = "4Mi", options: Sequence[str] = ()) -> Iterator[Daprd]:
    """Start all three, with more options of daprd, such as ``--log-level=debug``; give the sidecar.

    UnavailableError when they are not on this machine and cannot be built.
    """
    binaries = build(version)
    with contextlib.ExitStack() as stack:
        yield _first(stack, 3, lambda: _daprd(binaries, max_body_size, options))


def _first(stack: contextlib.ExitStack, attempts: int, start: Callable[[], AbstractContextManager[Daprd]]) -> Daprd:
    """Start it, again where somebody has taken one of its nine ports before it got there."""
    while True:
        attempts -= 1
        try:
            return stack.enter_context(start())
        except AssertionError as error:
            if "address already in use" not in str(error) or not attempts:
                raise


@contextlib.contextmanager
def _daprd(binaries: Path, max_body_size: str, options: Sequence[str]) -> Iterator[Daprd]:
    with starting.folder() as folder, contextlib.ExitStack() as stack:
        folders = {program: folder / program for program in _PROGRAMS}
        for each in folders.values():
            each.mkdir()
        placement, raft, scheduler, etcd, peer, grpc, internal, web, metrics = (starting.free_port() for _ in range(9))
        stack.enter_context(
            _service(
                binaries,
                folders["placement"],
                f"--port={placement}",
                f"--initial-cluster=dapr-placement-0=127.0.0.1:{raft}",
            )
        )
        scheduler_said = stack.enter_context(
            _service(
                binaries,
                folders["scheduler"],
                f"--port={scheduler}",
                f"--override-broadcast-host-port=127.0.0.1:{scheduler}",
                f"--etcd-data-dir={folders['scheduler'] / 'data'}",
                "--etcd-client-listen-address=127.0.0.1",
                f"--etcd-client-port={etcd}",
                f"--etcd-initial-cluster=dapr-scheduler-server-0=http://127.0.0.1:{peer}",
            )
        )
        said = stack.enter_context(
            starting.process(
                *_tied(binaries / "daprd"),
                "--app-id=app",
                f"--resources-path={_resources(folder)}",
                f"--config={_configuration(folder)}",
                f"--placement-host-address=127.0.0.1:{placement}",
                f"--scheduler-host-address=127.0.0.1:{scheduler}",
                "--dapr-listen-addresses=127.0.0.1",
                f"--dapr-grpc-port={grpc}",
                f"--dapr-http-port={web}",
                "--dapr-internal-grpc-listen-address=127.0.0.1",
                f"--dapr-internal-grpc-port={internal}",
                "--metrics-listen-address=127.0.0.1",
                f"--metrics-port={metrics}",
                f"--max-body-size={max_body_size}",
                *options,
                answers=lambda: _is_healthy(web, "/v1.0/healthz"),
                env={"HOME": str(folder), "DAPR_HOST_IP": "127.0.0.1"},
                cwd=folders["daprd"],
            )
        )
        yield Daprd(grpc, web, f"http://127.0.0.1:{metrics}/metrics", said, scheduler_said)


def build(version: str = VERSION) -> Path:
    """Return the folder with the three programs of this version, built, in some minutes, if they are not there yet.

    UnavailableError when there is no Go, or its module proxy does not have what this version needs.
    """
    folder = starting.cache("dapr") / version
    with lock(folder.with_name(f"{version}.lock")):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            _build(version, folder)
            (folder / "complete").touch()
    return folder


def _build(version: str, folder: Path) -> None:
    """Build from a module of our own that requires Dapr's: `go install` refuses a go.mod that replaces modules."""
    go = shutil.which("go", path=os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/local/go/bin")))
    if go is None:
        raise UnavailableError("Go is not installed, and Dapr is not on PyPI", obtainable=False)
    with starting.folder() as scratch:
        (scratch / "go.mod").write_text(f"module scratch\n\ngo 1.26\n\nrequire {_MODULE} v{version}\n")
        flags = f"-s -w -X {_MODULE}/pkg/buildinfo.version={version}"
        command = ("nice", go, "build", "-mod=mod", "-tags=stablecomponents", "-trimpath", f"-ldflags={flags}")
        packages = [f"{_MODULE}/cmd/{program}" for program in _PROGRAMS]
        done = subprocess.run(
            (*command, "-o", f"{folder}/", *packages), cwd=scratch, capture_output=True, text=True, check=False
        )
    if done.returncode:
        said = "\n".join(line for line in done.stderr.splitlines() if not line.startswith("go: downloading"))
        raise UnavailableError(f"Dapr {version} cannot be built: {said.strip()[-2000:]}", obtainable=False)


def _service(binaries: Path, folder: Path, *options: str) -> AbstractContextManager[Path]:
    """Start placement or scheduler, whichever the folder is named after."""
    health = starting.free_port()
    return starting.process(
        *_tied(binaries / folder.name),
        "--listen-address=127.0.0.1",
        "--healthz-listen-address=127.0.0.1",
        f"--healthz-port={health}",
        "--enable-metrics=false",
        *options,
        answers=lambda: _is_healthy(health, "/healthz"),
        env={"HOME": str(folder)},
        cwd=folder,
    )


def _tied(program: Path) -> tuple[str | Path, ...]:
    """Let a program end with us, even when we are killed, as a child of the contract is that takes too long."""
    setpriv = shutil.which("setpriv")
    return (program,) if setpriv is None else (setpriv, "--pdeathsig=KILL", program)


def _resources(folder: Path) -> Path:
    resources = folder / "resources"
    resources.mkdir()
    (resources / "state.yaml").write_text(json.dumps(_STORE))
    return resources


def _configuration(folder: Path) -> Path:
    """Look for no other sidecars: by default daprd announces itself to the whole network."""
    about = {"apiVersion": "dapr.io/v1alpha1", "kind": "Configuration", "metadata": {"name": "configuration"}}
    names = {"nameResolution": {"component": "none", "version": "v1"}}  # an unknown one is logged, and no more
    (folder / "configuration.yaml").write_text(json.dumps({**about, "spec": names}))
    return folder / "configuration.yaml"


def _is_healthy(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", path)
        return connection.getresponse().status in (200, 204)
    return False
