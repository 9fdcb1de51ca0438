"""The file of ``AGENT_OTEL_STATUS_FILE``: the state of a process, which ``agent-otel doctor --pid`` reads.

One daemon thread writes it at first use and then every ten seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
import stat
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal import errors, fork
from agent_otel._internal.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INTERVAL_SECONDS: Final = 10.0
#: The first field of a status, and the first bytes; a file of another program has others.
_MARK: Final = "agent_otel_status"
_BEGINNING: Final = b'{\n  "' + _MARK.encode() + b'": '
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class StatusFile:
    """The file of this process; ``{pid}`` in its path is the process's id, so that workers do not share one."""

    def __init__(self, path: str, described: Callable[[], dict[str, Any]]) -> None:
        self._path = path
        self._described = described
        self._start()
        fork.after_fork(errors.guarded("status.fork")(self._start))

    def _start(self) -> None:
        threading.Thread(target=self._serve, name="agent_otel-status", daemon=True).start()

    def _serve(self) -> None:
        while True:
            self.write()
            time.sleep(INTERVAL_SECONDS)

    @errors.guarded("status.write")
    def write(self) -> None:
        """Write the file as a whole: a reader sees the status before or after, never a part."""
        path = Path(self._path.replace("{pid}", str(os.getpid()))).absolute()
        try:
            with _folder(path.parent) as folder:
                if _is_replaceable(folder, path.name):
                    self._replace(folder, path.name)
                else:
                    _say(path, "is not a status: it is left alone, and nothing is written")
        except errors.ours(NotADirectoryError):  # so says the system of a link that is not followed
            _say(path, "cannot be written: a folder of its path is a link or no folder")
        except errors.ours(OSError) as error:
            _say(path, f"cannot be written: {os.strerror(error.errno or 0)}")

    def _replace(self, folder: int, name: str) -> None:
        status = {
            _MARK: __version__,
            "pid": os.getpid(),
            "time": time.time(),
            "agent_otel": __version__,
            "python": platform.python_version(),
            "executable": sys.executable,
            "internal_errors": dict(errors.errors),
            **self._described(),
        }
        temporary = f".{name}.{secrets.token_hex(8)}"
        try:
            with os.fdopen(os.open(temporary, _NEW, 0o600, dir_fd=folder), "w", encoding="utf-8") as file:
                json.dump(status, file, indent=2)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with errors.suppressed(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)


@contextlib.contextmanager
def _folder(path: Path) -> Iterator[int]:
    """Open a folder, and follow no link on the way but one of the system's, such as ``/var/run``; OSError."""
    with contextlib.ExitStack() as opened:
        at = os.open(path.anchor, _FOLDER)
        opened.callback(os.close, at)
        for depth, name in enumerate(path.parts[1:], 1):
            is_of_system = path.parts[1:depth] in ((), ("var",))
            at = os.open(name, _FOLDER | (0 if is_of_system else os.O_NOFOLLOW), dir_fd=at)
            opened.callback(os.close, at)
        yield at


def _is_replaceable(folder: int, name: str) -> bool:
    """Return true where nothing has the name, or a status that this user has written."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except errors.ours(FileNotFoundError):
        return True
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        return False
    with os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder), "rb") as file:
        return file.read(len(_BEGINNING)) == _BEGINNING


def _say(path: Path, what: str) -> None:
    errors.warn_once(f"status {path}", f"AGENT_OTEL_STATUS_FILE: {path} {what}.")
