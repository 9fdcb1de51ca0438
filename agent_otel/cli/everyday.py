"""The small commands: ``caps``, ``completion``, ``integrations``, ``run``, ``settings`` and ``version``."""

from __future__ import annotations

import logging
import os
import platform
import shlex
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path, PurePath
from typing import Any, Final

import click
import yaml
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from agent_otel import settings as every_setting
from agent_otel._internal import __version__
from agent_otel.caps import payload_caps
from agent_otel.cli import console
from agent_otel.cli.console import Failure
from agent_otel.doctor.probe import Collecting
from agent_otel.integrations import versions
from agent_otel.integrations.registry import INTEGRATIONS
from agent_otel.settings.kinds import shown, variable_of

_PROGRAM: Final = "agent-otel"
#: The variable of click's requests for completions of this program.
_COMPLETE: Final = "_AGENT_OTEL_COMPLETE"
_SHELLS: Final[dict[str, type[ShellComplete]]] = {"bash": BashComplete, "fish": FishComplete, "zsh": ZshComplete}
_PREFIX: Final = "AGENT_OTEL_"
#: The effect of each setting, by the name of its field.
MEANINGS: Final = Path(every_setting.__file__).with_name("meanings.yaml")
_NEEDED: Final = ("opentelemetry-api", "opentelemetry-sdk", "opentelemetry-exporter-otlp", "prometheus-client", "wrapt")


@click.command()
@click.argument("runtimes", nargs=-1, metavar="[RUNTIME]...")
@console.json_option
def caps(runtimes: tuple[str, ...], *, is_json: bool) -> None:
    """Show the payload caps of durable runtimes, of all or of these. Sizes are bytes.

    Example: agent-otel caps temporal dapr
    """
    every = payload_caps()
    known = dict.fromkeys(cap.runtime for cap in every)
    unknown = [runtime for runtime in runtimes if runtime not in known]
    if unknown:
        hint = console.near(unknown[0], known)
        raise Failure(f"no caps are known of {', '.join(unknown)}; there are those of {', '.join(known)}.{hint}")
    chosen = [cap for cap in every if not runtimes or cap.runtime in runtimes]
    if is_json:
        console.as_json([cap._asdict() for cap in chosen])
        return
    head = ("runtime", "boundary", "variant", "versions", "cap", "confidence", "changed by")
    rows = [
        (
            *(cap.runtime, cap.boundary, cap.variant, cap.versions),
            *("none" if cap.bytes is None else f"{cap.bytes:,}", cap.confidence, cap.setting),
        )
        for cap in chosen
    ]
    console.table(head, rows)


@click.command()
@click.argument("shell", required=False, type=click.Choice(list(_SHELLS)))
@console.json_option
@click.pass_context
def completion(context: click.Context, shell: str | None, *, is_json: bool) -> None:
    """Print the completion script of a shell, by default of the one in SHELL.

    bash: eval "$(agent-otel completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc; fish: agent-otel completion
    fish > ~/.config/fish/completions/agent-otel.fish
    """
    name = shell or PurePath(os.environ.get("SHELL", "")).name
    if name not in _SHELLS:
        raise Failure(f"name a shell: {', '.join(_SHELLS)}")
    # Not through `source()`, which runs bash to check its version.
    source = _SHELLS[name](context.find_root().command, {}, _PROGRAM, _COMPLETE)
    script = source.source_template % source.source_vars()
    if is_json:
        console.as_json({"shell": name, "script": script})
    else:
        click.echo(script)


@click.command()
@click.option("--installed", "is_installed", is_flag=True, help="Only the ones that this interpreter has.")
@console.json_option
def integrations(*, is_installed: bool, is_json: bool) -> None:
    """Print the supported frameworks with their versions, and the ones that this interpreter has.

    `agent-otel doctor` imports the installed ones and prints their wrapped functions.

    Example: agent-otel integrations --installed
    """
    disabled = every_setting.load(os.environ).disabled_integrations
    rows = []
    for item in sorted(INTEGRATIONS, key=lambda item: item.name):
        found = versions.installed(item.distribution) or ""
        state = ""
        if item.is_disabled(disabled):
            state = "disabled"
        elif found and not item.is_chosen(os.environ):
            state = f"off: {item.setting}"
        elif found:
            state = "too old" if versions.is_older(found, item.minimum) else "measured"
        if found or not is_installed:
            rows.append((item.name, item.distribution, item.minimum, item.tested, found, state))
    console.table(("name", "distribution", "minimum", "tested", "installed", "state"), rows, is_json=is_json)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--python", help="Interpreter of scripts and modules: 'python3 -X dev'.")
@click.option("--port", type=click.IntRange(1, 65535), metavar="PORT", help="Serve /metrics there.")
@click.option("--json", "is_json", is_flag=True, help="Print the command and its variables, and run nothing.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="PROGRAM [ARGUMENTS]...")
def run(python: str | None, port: int | None, program: tuple[str, ...], *, is_json: bool) -> None:
    """Run a program with agent_otel switched on: app.py, -m module, or a command such as gunicorn.

    It sets AGENT_OTEL=1 and replaces this process by the program; with --port also AGENT_OTEL_PROMETHEUS_PORT.
    Variables that are set stay, but for AGENT_OTEL.

    Example: agent-otel run --port 9464 app.py --its-option
    """
    variables = {"AGENT_OTEL": "1", **({"AGENT_OTEL_PROMETHEUS_PORT": str(port)} if port else {})}
    first, command = program[0], interpreter(python)
    is_script = first.endswith((".py", ".pyz")) or (Path(first) / "__main__.py").is_file()
    is_plain_file = shutil.which(first) is None and Path(first).is_file()
    is_python = first in ("-m", "-c") or is_script or is_plain_file
    arguments = [*command, *program] if is_python else list(program)
    if is_json:
        console.as_json({"arguments": arguments, "variables": variables})
        return
    os.environ.update(variables)
    sys.stdout.flush()
    try:
        if os.name == "nt":  # exec there returns to the shell before the program ends
            sys.exit(subprocess.run(arguments, check=False).returncode)  # noqa: S603 - the user's program
        os.execvp(arguments[0], arguments)  # noqa: S606 - the user's program
    except OSError as error:
        raise Failure(f"{arguments[0]} cannot be started: {os.strerror(error.errno or 0)}") from error


def interpreter(named: str | None) -> list[str]:
    """Return the command of an interpreter with its options, by default of this one."""
    try:
        return [sys.executable] if named is None else shlex.split(named)
    except ValueError as error:
        raise Failure(f"{named} is no command: {error}") from None


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--set", "only_set", is_flag=True, help="Only the ones that the environment sets.")
@console.json_option
def settings(names: tuple[str, ...], *, only_set: bool, is_json: bool) -> None:
    """Print settings: all, or those with NAME in their variable, with their values in this environment.

    A value that the environment has and that is invalid is a warning, and the default is in force.

    Example: agent-otel settings --set
    """
    messages = Collecting(logging.WARNING)
    logging.getLogger("agent_otel").addHandler(messages)
    now = every_setting.load(os.environ)
    warnings = [line["text"] for line in messages.lines]
    rows: list[dict[str, Any]] = []
    meanings = yaml.safe_load(MEANINGS.read_text(encoding="utf-8"))
    for item in fields(every_setting.Settings):
        value, variable = getattr(now, item.name), variable_of(item)
        text = "(secret)" if item.metadata["kind"].is_secret and value else shown(value)
        is_set = bool(os.environ.get(variable, "").strip())
        if is_set or not only_set:
            rows.append({"variable": variable, "value": text, "set": is_set, "meaning": meanings[item.name]})
    chosen = [row for row in rows if not names or any(name.upper() in row["variable"] for name in names)]
    if names and not chosen:
        variables = [row["variable"].removeprefix(_PREFIX) for row in rows]
        hint = console.near(names[0].upper().removeprefix(_PREFIX), variables)
        raise Failure(f"no setting has {names[0]} in its name.{hint}")
    if is_json:
        console.as_json({"settings": chosen, "messages": warnings})
        return
    head = ("variable", "value", "from", "meaning")
    console.table(head, [(row["variable"], row["value"], "environment" * row["set"], row["meaning"]) for row in chosen])
    for text in warnings:
        console.warn(text)


@click.command()
@console.json_option
def version(*, is_json: bool) -> None:
    """Print the versions of agent_otel, of Python and of the packages that it needs, and where they are installed.

    Example: agent-otel version --json
    """
    needed = {name: versions.installed(name) or "missing" for name in _NEEDED}
    found = {_PROGRAM: __version__, "python": platform.python_version(), **needed}
    places = {"package": str(Path(__file__).resolve().parent.parent), "interpreter": sys.executable}
    if is_json:
        console.as_json({"versions": found, "places": places})
        return
    console.table(("", "version"), found.items())
    console.say("")
    console.table(("", "place"), places.items())
