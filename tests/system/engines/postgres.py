"""A real PostgreSQL of one's own: Debian's, installed or unpacked into the user's cache; it needs no root, no service.

Installed packages are used where there are any. Otherwise apt, with folders of its own, downloads them as it does
Debian's Pythons, and what this machine has not got of them is unpacked.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from tests import debian
from tests.system.engines import starting

if TYPE_CHECKING:
    from collections.abc import Iterator

_SETTINGS = {
    "fsync": "off",
    "jit": "off",
    "listen_addresses": "",
    "log_timezone": "GMT",
    "port": "5432",
    "timezone": "GMT",
}
_CLUSTER = ("--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync", "--username=postgres")
#: PostgreSQL refuses to run as root, who runs it as somebody with no other rights.
_NOBODY = "nobody"
_NEEDED = ("lib", "usr/lib", "usr/share/postgresql")


@dataclass(frozen=True)
class Postgres:
    """A server that answers, with one empty database."""

    #: What ``psycopg.connect`` takes; it leads to a Unix socket.
    dsn: str


@dataclass(frozen=True)
class Programs:
    """Debian's PostgreSQL under a root folder, with the libraries that the machine has not got."""

    root: Path

    def command(self, name: str, *options: str) -> tuple[str, ...]:
        """Return the command of a program, of the newest version that is there."""
        found = self.root.glob(f"usr/lib/postgresql/*/bin/{name}")
        return str(max(found, key=lambda path: int(path.parts[-3]))), *options

    @property
    def environ(self) -> dict[str, str]:
        """The variables that the programs want."""
        if self.root == Path("/"):
            return {"LC_ALL": "C"}
        libraries = [str(path) for lib in ("lib", "usr/lib") for path in self.root.glob(f"{lib}/*-linux-gnu*")]
        return {"LC_ALL": "C", "LD_LIBRARY_PATH": os.pathsep.join(libraries)}


@contextlib.contextmanager
def server(**settings: str) -> Iterator[Postgres]:
    """Start one, with settings of ``postgresql.conf``; UnavailableError when it is not to be had."""
    programs = find()
    user = _NOBODY if os.geteuid() == 0 else None
    with starting.folder() as folder:
        if user is not None:
            programs = _readable(programs, folder)
            shutil.chown(folder, user)
        _initialise(programs, folder, user)
        chosen = {**_SETTINGS, "unix_socket_directories": str(folder), **settings}
        options = (f"--{name}={value}" for name, value in chosen.items())
        with starting.process(
            *programs.command("postgres", "-D", "data", *options),
            answers=lambda: _is_ready(programs, folder, chosen["port"]),
            env=programs.environ,
            cwd=folder,
            user=user,
            stop=signal.SIGINT,
        ):
            yield Postgres(f"postgresql://postgres@/postgres?host={quote(str(folder), safe='')}")


def find() -> Programs:
    """Return the installed PostgreSQL, or Debian's, unpacked if it is not there yet."""
    installed = Programs(Path("/"))
    if any(installed.root.glob("usr/lib/postgresql/*/bin/initdb")):
        return installed
    return Programs(debian.beside_installed(starting.cache("postgres"), "PostgreSQL", "postgresql"))


def _readable(programs: Programs, folder: Path) -> Programs:
    """Links to the programs where everybody can read them: root's home is closed to others."""
    folder.chmod(0o755)
    if programs.root == Path("/"):
        return programs
    for needed in _NEEDED:
        if (programs.root / needed).exists():
            shutil.copytree(programs.root / needed, folder / needed, symlinks=True, copy_function=_link)
    return Programs(folder)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system
        shutil.copy2(source, target, follow_symlinks=False)


def _initialise(programs: Programs, folder: Path, user: str | None) -> None:
    done = subprocess.run(
        programs.command("initdb", *_CLUSTER, "data"),
        env=programs.environ,
        cwd=folder,
        user=user,
        group=starting.group(user),
        extra_groups=None if user is None else (),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _is_ready(programs: Programs, folder: Path, port: str) -> bool:
    command = programs.command("pg_isready", "--quiet", "--host", str(folder), "--port", port)
    return subprocess.run(command, env=programs.environ, check=False).returncode == 0
