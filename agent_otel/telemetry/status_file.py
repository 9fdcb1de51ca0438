"""The file of ``AGENT_OTEL_STATUS_FILE``: the state of a process, which ``agent-otel doctor --pid`` reads.

One daemon thread writes it at first use and then every ten seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import stat
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal import errors, fork
from agent_otel._internal.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

INTERVAL_SECONDS: Final = 10.0
#: The first bytes of a status; a file of another program has others.
_BEGINNING: Final = b'{\n  "pid": '


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
        path = Path(self._path.replace("{pid}", str(os.getpid())))
        try:
            if not _is_replaceable(path):
                _say(path, "is not a status: it is left alone, and nothing is written")
                return
            self._replace(path)
        except OSError as error:
            _say(path, f"cannot be written: {os.strerror(error.errno or 0)}")

    def _replace(self, path: Path) -> None:
        status = {
            "pid": os.getpid(),
            "time": time.time(),
            "agent_otel": __version__,
            "python": platform.python_version(),
            "executable": sys.executable,
            "internal_errors": dict(errors.errors),
            **self._described(),
        }
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(status, file, indent=2)
            Path(temporary).replace(path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                Path(temporary).unlink()


def _is_replaceable(path: Path) -> bool:
    """Return true where nothing is at the path, an empty file, or a status; links and devices are not followed."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return True
    if not stat.S_ISREG(found.st_mode):
        return False
    with path.open("rb") as file:
        return file.read(len(_BEGINNING)) in (b"", _BEGINNING)


def _say(path: Path, what: str) -> None:
    errors.warn_once(f"status {path}", f"AGENT_OTEL_STATUS_FILE: {path} {what}.")
