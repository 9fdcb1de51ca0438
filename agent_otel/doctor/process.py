"""Findings about a process that runs, from its variables and from its file of ``AGENT_OTEL_STATUS_FILE``."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal import env
from agent_otel.doctor.findings import ERROR, OK, WARNING, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

STATUS_FILE: Final = "AGENT_OTEL_STATUS_FILE"
_PROCESSES: Final = Path("/proc")
#: Age from which a status is old: the process writes it every ten seconds.
_OLD_SECONDS: Final = 60.0


class UnreadableError(Exception):
    """A process whose variables cannot be read; the text is the reason."""


def variables(pid: int) -> dict[str, str]:
    """Return the environment variables that a process was started with.

    Raises:
        UnreadableError: there is no such process, it is another user's, or the system has no ``/proc``.
    """
    if not _PROCESSES.is_dir():
        raise UnreadableError(
            f"this system has no {_PROCESSES}, so that the variables of process {pid} cannot be read: start it with "
            f"{STATUS_FILE}=agent-{{pid}}.json, and give that file: agent-otel doctor --status agent-{pid}.json"
        )
    try:
        text = (_PROCESSES / str(pid) / "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        raise UnreadableError(f"there is no process {pid}") from None
    except PermissionError:
        raise UnreadableError(f"process {pid} is another user's") from None
    lines = text.decode("utf-8", "surrogateescape").split("\0")
    return {name: value for name, is_set, value in (line.partition("=") for line in lines) if is_set}


def status_path(pid: int, environ: Mapping[str, str]) -> Path | None:
    """Return the status file of a process; a relative path is below its current folder."""
    named = environ.get(STATUS_FILE, "").strip()
    if not named:
        return None
    path = Path(named.replace("{pid}", str(pid)))
    return path if path.is_absolute() else (_PROCESSES / str(pid) / "cwd").resolve() / path


_LONGEST_STATUS: Final = 4 * 1024 * 1024
#: Fields that the file has in each version.
_OF_STATUS: Final = frozenset(
    {"agent_otel", "pid", "python", "time", "integrations", "spans", "metrics", "warnings", "internal_errors"}
)


def read_status(path: Path) -> dict[str, Any] | None:
    """Return a status; None where there is none."""
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # noqa: PTH123 - a descriptor
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            status = json.loads(file.read(_LONGEST_STATUS)) if is_file else None
    except (OSError, ValueError, RecursionError):
        return None
    return status if isinstance(status, dict) and status.keys() >= _OF_STATUS else None


def of_variables(pid: int, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the findings about the switch of a process that has no status."""
    switch = environ.get("AGENT_OTEL", "").strip()
    if switch.lower() not in env.ON:
        why = f"AGENT_OTEL={switch}" if switch else "AGENT_OTEL is not set"
        yield Finding(
            ERROR, "switch", f"agent_otel is off in process {pid}: {why}", "set AGENT_OTEL=1 and start it again"
        )
        return
    yield Finding(OK, "switch", f"AGENT_OTEL={switch} in process {pid}")
    path = status_path(pid, environ)
    if path is None:
        hint = f"set {STATUS_FILE}, and start it again, to see what it measures"
        yield Finding(WARNING, "status", f"process {pid} writes no status", hint)
        return
    text = f"{path} is not there: process {pid} has measured nothing yet, or its start-up file did not run"
    yield Finding(WARNING, "status", text, "`agent-otel doctor` with the same variables names the cause")


def of_status(status: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the findings about a process that has a status."""
    text = f"on in process {status['pid']}, agent_otel {status['agent_otel']} in Python {status['python']}"
    yield Finding(OK, "switch", text)
    age = time.time() - float(status["time"])
    if age > _OLD_SECONDS:
        hint = "it has ended, hangs, or cannot write the file"
        yield Finding(WARNING, "status", f"process {status['pid']} wrote its status {age:,.0f} s ago", hint)
    for name, targets in status["integrations"].items():
        if "unmatched" in targets:
            yield Finding(ERROR, "integrations", f"{name} is in a version that is not measured", "docs/integrations.md")
        else:
            yield Finding(OK, "integrations", f"{name}: {', '.join(targets)}")
    if not status["integrations"]:
        yield Finding(OK, "integrations", "no framework is imported; calls that the program hands over are measured")
    for sentence in ("spans", "metrics"):
        yield Finding(OK, "export", status[sentence])
    for row in status.get("costliest", ()):
        yield Finding(OK, "costliest", _costly(row))
    for message in status["warnings"]:
        yield Finding(WARNING, "log", message)
    for place, count in status["internal_errors"].items():
        yield Finding(ERROR, "internal errors", f"{place}: {count:,}", "the log has the first of each place")


def _costly(row: Mapping[str, Any]) -> str:
    """Return the sentence about an execution that is one of the costliest."""
    names = " ".join(filter(None, (row["workflow"], row["agent"], row["execution"])))
    price = "without a price" if row["dollars"] is None else f"${row['dollars']:,.4f}"
    trace = f", trace {row['trace']}" if row["trace"] else ""
    return f"{names}: {price}, {row['tokens']:,} tokens in {row['requests']:,} model requests{trace}"
