"""``agent-otel run``: a program with the switch on."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click

from agent_otel.cli import console
from agent_otel.cli.console import Failure


@click.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--python", help="Interpreter of scripts and modules: 'python3 -X dev'.")
@click.option("--port", type=click.IntRange(1, 65535), metavar="PORT", help="Serve /metrics there.")
@click.option("--json", "is_json", is_flag=True, help="Print the command and its variables, and run nothing.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="PROGRAM [ARGUMENTS]...")
def command(python: str | None, port: int | None, program: tuple[str, ...], *, is_json: bool) -> None:
    """Run a program with agent_otel switched on: app.py, -m module, or a command such as gunicorn.

    It sets AGENT_OTEL=1 and replaces this process by the program; with --port also AGENT_OTEL_PROMETHEUS_PORT.
    Variables that are set stay, but for AGENT_OTEL.
    """
    variables = {"AGENT_OTEL": "1", **({"AGENT_OTEL_PROMETHEUS_PORT": str(port)} if port else {})}
    arguments = _arguments(interpreter(python), program)
    if is_json:
        console.as_json({"arguments": arguments, "variables": variables})
        return
    os.environ.update(variables)
    sys.stdout.flush()
    try:
        if os.name == "nt":  # exec there returns to the shell before the program ends
            sys.exit(subprocess.run(arguments, check=False).returncode)  # noqa: S603 - what the user names
        os.execvp(arguments[0], arguments)  # noqa: S606 - what the user names
    except OSError as error:
        raise Failure(f"{arguments[0]} cannot be started: {os.strerror(error.errno or 0)}") from error


def interpreter(named: str | None) -> list[str]:
    """Return the command of an interpreter with its options, by default of this one.

    Raises:
        Failure: a quotation mark in it is not closed.
    """
    try:
        return [sys.executable] if named is None else shlex.split(named)
    except ValueError as error:
        raise Failure(f"{named} is no command: {error}") from None


def _arguments(python: list[str], program: tuple[str, ...]) -> list[str]:
    """Return the command line: a script, a module or code for the interpreter, else a command."""
    first = program[0]
    is_script = first.endswith((".py", ".pyz")) or (Path(first).is_dir() and (Path(first) / "__main__.py").is_file())
    if first in ("-m", "-c") or is_script:
        return [*python, *program]
    if shutil.which(first) is None and Path(first).is_file():
        return [*python, *program]
    return list(program)
