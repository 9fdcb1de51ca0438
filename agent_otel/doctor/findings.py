"""Findings about an interpreter or a process that runs, with their causes and hints.

Those about an interpreter come from the facts of the probe. Those about a process come from its variables and from its
file of ``AGENT_OTEL_STATUS_FILE``.
"""

from __future__ import annotations

import json
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal import env

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ERROR, WARNING, OK = "error", "warning", "ok"
_ORDER = (ERROR, WARNING, OK)
STATUS_FILE: Final = "AGENT_OTEL_STATUS_FILE"
_PROCESSES: Final = Path("/proc")
#: An older status is reported: the process writes it every ten seconds.
_OLD_SECONDS: Final = 60.0
_LONGEST_STATUS: Final = 4 * 1024 * 1024
#: Fields that the file has in each version.
_OF_STATUS: Final = frozenset(
    {"agent_otel", "pid", "python", "time", "integrations", "spans", "metrics", "warnings", "internal_errors"}
)
#: Words in messages of exporters -> their meaning.
_CAUSES = {
    "404": "nothing is served at that path: OTEL_EXPORTER_OTLP_ENDPOINT is the base address, without /v1/traces",
    "401": "the collector wants credentials: OTEL_EXPORTER_OTLP_HEADERS",
    "403": "the collector refuses the credentials in OTEL_EXPORTER_OTLP_HEADERS",
    "refused": "nothing listens there",
    "UNAVAILABLE": "nothing there speaks gRPC; HTTP needs OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
    "timed out": "there is no answer within the timeout",
}


@dataclass(frozen=True)
class Finding:
    """A fact that is right or wrong; ``hint`` names a remedy."""

    level: str
    topic: str
    text: str
    hint: str = ""


def of_interpreter(facts: Mapping[str, Any]) -> list[Finding]:
    """Return all findings, the worst first, and among equals in the order of their effect."""
    parts = (_activation, _settings, _integrations, _remedies, _exports, _multiprocess)
    found = [finding for part in parts for finding in part(facts)]
    found += [
        Finding(ERROR, part, f"this part could not be examined: {value['error']}")
        for part, value in facts.items()
        if isinstance(value, dict) and set(value) == {"error"}
    ]
    return in_order(found)


def in_order(found: list[Finding]) -> list[Finding]:
    """Return findings, the worst first, and among equals as they were."""
    return sorted(found, key=lambda finding: _ORDER.index(finding.level))


def _activation(facts: Mapping[str, Any]) -> Iterator[Finding]:
    switch, interpreter = facts["switch"], facts["interpreter"]
    value = (switch["value"] or "").strip().lower()
    if switch["active"]:
        yield Finding(OK, "switch", f"on, agent_otel {interpreter['package']} in Python {interpreter['version']}")
        file = next(iter(interpreter["startup_files"]), "the import of agent_otel")
        text = f"AGENT_OTEL={switch['value']}; {file} starts it in {interpreter['executable']}"
        yield Finding(OK, "start-up", text)
    elif value in switch["on"]:
        yield _not_started(interpreter)
    else:
        why = f"AGENT_OTEL={switch['value']}" if value else "AGENT_OTEL is not set"
        if value not in ("", *switch["off"]):
            why += f" is none of {', '.join(switch['on'])}"
        yield Finding(ERROR, "switch", f"agent_otel is off: {why}", "set AGENT_OTEL=1")


def _not_started(interpreter: Mapping[str, Any]) -> Finding:
    """Return why the start-up file did not run, although the switch is on."""
    if interpreter["no_site"]:
        text = "start-up files do not run: Python was started with -S"
    elif interpreter["startup_files"]:
        text = f"{interpreter['startup_files'][0]} has not switched agent_otel on; standard error says why"
    else:
        text = (
            f"the start-up file is not installed: {interpreter['folder']} is no folder for start-up files, as after "
            "`pip install --target` or on PYTHONPATH"
        )
    return Finding(ERROR, "start-up", text, "begin the program with `import agent_otel`")


def _settings(facts: Mapping[str, Any]) -> Iterator[Finding]:
    for message in _own(facts, "WARNING"):
        if message.startswith("AGENT") or " is no setting" in message:
            yield Finding(ERROR, "settings", message)
    for row in _rows(facts, "settings"):
        yield Finding(OK, "settings", f"{row['variable']}={row['value']}, from the environment")


def _integrations(facts: Mapping[str, Any]) -> Iterator[Finding]:
    rows, topic = _rows(facts, "integrations"), "integrations"
    if not rows:
        yield Finding(WARNING, topic, "no supported framework is installed", "docs/integrations.md has the list")
    for row in rows:
        name = f"{row['distribution']} {row['version']}"
        if row["disabled"]:
            yield Finding(WARNING, topic, f"{name} is disabled by AGENT_OTEL_DISABLED_INTEGRATIONS")
        elif "unmatched" in row["wrapped"]:
            text = next((line for line in _own(facts, "WARNING") if line.startswith(row["distribution"])), name)
            yield Finding(ERROR, topic, text)
        elif row["wrapped"]:
            yield Finding(OK, topic, f"{name}: {', '.join(row['wrapped'])}")
        elif facts["switch"]["active"]:
            yield Finding(WARNING, topic, f"{name} is installed, and nothing of it could be imported")


def _remedies(facts: Mapping[str, Any]) -> Iterator[Finding]:
    for row in _rows(facts, "remedies"):
        if row["acts"]:
            yield Finding(OK, "remedies", f"{row['variables']}: on {', '.join(row['acts'])}")
        if row["without_effect"]:
            text = f"{row['variables']}: without effect on {', '.join(row['without_effect'])}"
            yield Finding(WARNING, "remedies", text, "docs/remedies/where-they-act.md has the list")


def _multiprocess(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield a finding about the folder of prometheus_client's multiprocess mode."""
    mode = facts["multiprocess"]
    if facts["switch"]["active"] and mode.get("folder") and not mode["can_write"]:
        text = f"PROMETHEUS_MULTIPROC_DIR={mode['folder']} is no folder that this process can write to"
        yield Finding(ERROR, "export", text, "make it, empty, before the first worker starts")


def _exports(facts: Mapping[str, Any]) -> Iterator[Finding]:
    exporters = _rows(facts, "exporters")
    for row in exporters:
        what = f"{row['signal']} to {row['target'] or row['name']}"
        if row["outcome"] in ("delivered", "scraped"):
            yield Finding(OK, "export", f"{what}: {row['outcome']}")
        elif row["outcome"] == "no exporter":
            text = f"{what}: no exporter of the name {row['name']!r} can be made"
            hint = f"install the package that has it, or name another in OTEL_{row['signal'].upper()}_EXPORTER"
            yield Finding(ERROR, "export", text, hint)
        else:
            reply = next(iter(row["messages"]), "no message")
            hint = next((cause for word, cause in _CAUSES.items() if word in reply), "")
            yield Finding(ERROR, "export", f"{what} are not taken: {reply}", hint)
    for message in _own(facts, "WARNING"):
        if message.startswith(("agent_otel cannot serve metrics", "AGENT_OTEL_METRICS=otel")):
            yield Finding(ERROR, "export", message)
    for message in _own(facts, "INFO"):
        if " Metrics " in message:
            yield Finding(OK, "export", f"Metrics {message.partition(' Metrics ')[2]}")
    if facts["switch"]["active"] and not any(row["signal"] == "traces" for row in exporters):
        text = "spans are not exported, unless the program sets a TracerProvider"
        yield Finding(WARNING, "export", text, "to export them set OTEL_EXPORTER_OTLP_ENDPOINT")


def _rows(facts: Mapping[str, Any], part: str) -> list[dict[str, Any]]:
    """Return the rows of a part of the facts, none where it could not be examined."""
    rows = facts[part]
    return rows if isinstance(rows, list) else []


def _own(facts: Mapping[str, Any], level: str) -> list[str]:
    """Return the messages that agent_otel logged at a level."""
    return [line["text"] for line in facts["messages"] if (line["logger"], line["level"]) == ("agent_otel", level)]


# Processes that run.


class UnreadableError(Exception):
    """The variables of a process cannot be read; the text is the reason."""


def variables(pid: int) -> dict[str, str]:
    """Return the environment variables that a process was started with.

    Raises:
        UnreadableError: the process does not exist or is another user's, or ``/proc`` is missing.
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
        names = " ".join(filter(None, (row["workflow"], row["agent"], row["execution"])))
        price = "without a price" if row["dollars"] is None else f"${row['dollars']:,.4f}"
        trace = f", trace {row['trace']}" if row["trace"] else ""
        text = f"{names}: {price}, {row['tokens']:,} tokens in {row['requests']:,} model requests{trace}"
        yield Finding(OK, "costliest", text)
    for message in status["warnings"]:
        yield Finding(WARNING, "log", message)
    for place, count in status["internal_errors"].items():
        yield Finding(ERROR, "internal errors", f"{place}: {count:,}", "the log has the first of each place")
