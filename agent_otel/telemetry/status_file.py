"""The file of ``AGENT_OTEL_STATUS_FILE``: the state of a process, which ``agent-otel doctor --pid`` reads.

One daemon thread writes it at first use and then every ten seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
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
        status = {
            "pid": os.getpid(),
            "time": time.time(),
            "agent_otel": __version__,
            "python": platform.python_version(),
            "executable": sys.executable,
            "internal_errors": dict(errors.errors),
            **self._described(),
        }
        path = Path(self._path.replace("{pid}", str(os.getpid())))
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(status, file, indent=2)
            Path(temporary).replace(path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                Path(temporary).unlink()
