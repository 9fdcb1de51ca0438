"""``agent-otel doctor``: whether agent_otel is on in an interpreter, and where its telemetry goes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import asdict, astuple, fields
from pathlib import Path
from typing import Any

import click

from agent_otel import semconv
from agent_otel._internal.env import ON
from agent_otel._internal.errors import masked
from agent_otel._internal.installing import source
from agent_otel.cli import console
from agent_otel.cli.console import Failure
from agent_otel.cli.everyday import interpreter
from agent_otel.cli.live import Endpoint, Live
from agent_otel.doctor import findings, observed
from agent_otel.doctor.findings import ERROR, OK, WARNING, Finding
from agent_otel.settings import Settings
from agent_otel.settings.kinds import variable_of

#: The first line says whether -S was given. Without the current folder, which is on the path of ``python -c`` and not
#: on a program's path.
_PROBE = """
import sys
print(sys.flags.no_site)
started = "agent_otel" in sys.modules
sys.path[:] = [folder for folder in sys.path if folder]
from agent_otel.doctor import probe
probe.main(started=started)
"""
#: Exit code if something is wrong; 2 is wrong usage, as with every command.
_WRONG = 1
_FIRST_THINGS = 3
#: A shell adds the number of the signal that has ended a program.
_SIGNALLED = 128
#: Hosts of a port that is open on all addresses.
_ALL_ADDRESSES = ("", "0.0.0.0", "::", "[::]")  # noqa: S104 - nothing is opened


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--python", help="Interpreter of the agent, with its options: 'python3 -S'.")
@click.option("--pid", type=click.IntRange(1), metavar="N", help="Examine a process that runs.")
@click.option("--status", type=click.Path(path_type=Path, dir_okay=False), help="A file of AGENT_OTEL_STATUS_FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print findings and facts as JSON.")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[-- PROGRAM...]")
def doctor(
    python: str | None, program: tuple[str, ...], *, pid: int | None, status: Path | None, as_json: bool
) -> None:
    """Find out whether agent_otel is on and measures the agent, and where its telemetry goes.

    Run it with the agent's environment variables. It imports the frameworks that are installed, and sends one span and
    one data point. The first line names the most important cause; the exit code is 1 if something is wrong.

    With a program (agent-otel doctor -- python agent.py) it runs the program with agent_otel switched on, and
    prints at its end calls, sizes, cuts, repeats, payloads, and the first things to do. The exit code is
    the program's.

    With --pid it reads the variables of a process that runs, the file that AGENT_OTEL_STATUS_FILE names there, and its
    /metrics. With --status it reads such a file.
    """
    if pid or status:
        _report(*_running(pid, status), as_json=as_json)
        return
    if program:
        sys.exit(_observe(program, as_json=as_json))
    facts = _examine(interpreter(python))
    _report(findings.of_interpreter(facts), facts, as_json=as_json)


def _report(found: list[Finding], facts: dict[str, Any], *, as_json: bool) -> None:
    """Print the findings after a line with the worst; end with 1 where something is wrong."""
    first, is_wrong = found[0], found[0].level == ERROR
    if as_json:
        console.as_json({"findings": [asdict(finding) for finding in found], "facts": facts})
    else:
        console.say(f"{first.text}{f': {first.hint}' if first.hint else ''}", "bold red" if is_wrong else "")
        console.table(("", "topic", "finding", "what to do"), map(astuple, found))
    if is_wrong:
        sys.exit(_WRONG)


def _running(pid: int | None, path: Path | None) -> tuple[list[Finding], dict[str, Any]]:
    """Return the findings and the facts of a process that runs."""
    try:
        environ = findings.variables(pid) if pid else {}
    except findings.UnreadableError as error:
        if path is None:
            raise Failure(str(error)) from None
        environ = {}  # the status has more than the variables
    path = path or (findings.status_path(pid, environ) if pid else None)
    status = findings.read_status(path) if path else None
    if status is None and not pid:
        raise Failure(f"{path} is no status of agent_otel")
    found = list(findings.of_status(status) if status else findings.of_variables(pid or 0, environ))
    kinds = {variable_of(item): item.metadata["kind"] for item in fields(Settings)}
    shown = {
        name: "(secret)" if name in kinds and kinds[name].is_secret else masked(value)
        for name, value in environ.items()
        if name in kinds or name == "AGENT_OTEL"
    }
    return findings.in_order([*found, *_endpoint(environ)]), {"variables": shown, "status": status}


def _endpoint(environ: dict[str, str]) -> list[Finding]:
    """Return the answer of a process's port."""
    port, host = (environ.get(f"AGENT_OTEL_PROMETHEUS_{name}", "").strip() for name in ("PORT", "HOST"))
    host = "localhost" if host in _ALL_ADDRESSES else f"[{host}]" if ":" in host.strip("[]") else host
    if not port.isdecimal() or environ.get("AGENT_OTEL", "").strip().lower() not in ON:
        return []
    try:
        with closing(Live([Endpoint(f"{host}:{port}", {})])) as live:
            snapshot = live.read()
    except Failure as failure:
        return [Finding(ERROR, "metrics", failure.message)]
    if snapshot.failures:
        return [Finding(ERROR, "metrics", snapshot.failures[0], "it is served from the import of a framework on")]
    calls = sum(row["calls"] for row in snapshot.tools)
    text = f"port {port} has the metrics of tool calls: {calls:,}; `agent-otel metrics {host}:{port}` prints them"
    return [Finding(OK if calls else WARNING, "metrics", text)]


def _examine(python: list[str]) -> dict[str, Any]:
    """Return the facts of an interpreter."""
    ended = _run([*python, "-c", _PROBE], dict(os.environ), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if ended.returncode:
        last = next(iter(reversed(ended.stderr.strip().splitlines())), "no message")
        if "No module named 'agent_otel" in last:
            if ended.stdout.startswith("1"):
                raise Failure(
                    f"{shlex.join(python)} has no site-packages, because of -S: agent_otel cannot be imported there"
                )
            raise Failure(f"agent_otel is not installed for {python[0]}: run {python[0]} -m pip install {source()}")
        raise Failure(f"{python[0]} ended with {ended.returncode}: {last}")
    facts: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return facts


def _run(arguments: list[str], env: dict[str, str], **options: Any) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(arguments, env=env, check=False, **options)  # noqa: S603 - the user's program
    except OSError as error:
        raise Failure(f"{arguments[0]} cannot be started: {os.strerror(error.errno or 0)}") from error


def _observe(program: tuple[str, ...], *, as_json: bool) -> int:
    """Run a program with the switch on, print its measurements, and return its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus", "PROMETHEUS_MULTIPROC_DIR": folder}
        code = _waited(list(program), env)
        seen = observed.read(Path(folder))
    rows, things, offered = observed.tools(seen), observed.advice(seen), observed.definitions(seen)
    if as_json:
        shown = None if offered is None else asdict(offered)
        click.echo(json.dumps({"tools": rows, "definitions": shown, "advice": things}))
        return code
    if rows:
        head = ("tool", "calls", "bytes of results", "large", "truncated", "repeats", "incomplete answers")
        console.table(
            head, [(name, *(f"{figure:,}" for figure in figures)) for name, *figures in map(dict.values, rows)]
        )
    else:
        console.say("no tool call was seen; `agent-otel doctor` without a program says why", "bold red")
    requests = seen.total(semconv.REQUEST_SIZE, "_count", part="system")
    console.say(
        f"{sum(row['calls'] for row in rows):,} tool calls, {seen.total(semconv.PAYLOAD_SIZE, '_count'):,} payloads, "
        f"{seen.total(semconv.INTERNAL_ERRORS):,} internal errors"
        + (f", {requests:,} model requests" if requests else "")
    )
    if offered is not None:
        console.say(offered.sentence())
    for number, thing in enumerate(things[:_FIRST_THINGS], 1):
        console.say(f"{number}. {thing}", "bold")
    if rows and not things:
        console.say("nothing was cut, lost or refused")
    return code


def _waited(program: list[str], env: dict[str, str]) -> int:
    """Run a program to its end, and return its exit code as a shell does.

    An interrupt from the keyboard is the program's, which may end for it; its report is printed all the same.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:  # the program would not inherit that
        signal.signal(signal.SIGINT, lambda *_: None)
    try:
        code = _run(program, env).returncode
    finally:
        signal.signal(signal.SIGINT, before)
    return code if code >= 0 else _SIGNALLED - code
