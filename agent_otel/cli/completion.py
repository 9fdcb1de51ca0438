"""``agent-otel completion``: the script by which a shell completes commands and options."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Final

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from agent_otel.cli import console
from agent_otel.cli.console import Failure

_PROGRAM: Final = "agent-otel"
#: The variable by which click recognises a request for completions of this program.
_VARIABLE: Final = "_AGENT_OTEL_COMPLETE"
_SHELLS: Final[dict[str, type[ShellComplete]]] = {"bash": BashComplete, "fish": FishComplete, "zsh": ZshComplete}


@click.command("completion")
@click.argument("shell", required=False, type=click.Choice(list(_SHELLS)))
@console.json_option
@click.pass_context
def command(context: click.Context, shell: str | None, *, is_json: bool) -> None:
    """Print the completion script of a shell, by default of the one in SHELL.

    bash: eval "$(agent-otel completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc; fish: agent-otel completion
    fish > ~/.config/fish/completions/agent-otel.fish
    """
    name = shell or PurePath(os.environ.get("SHELL", "")).name
    if name not in _SHELLS:
        raise Failure(f"name a shell: {', '.join(_SHELLS)}")
    # Not through `source()`, which runs bash to check its version.
    completion = _SHELLS[name](context.find_root().command, {}, _PROGRAM, _VARIABLE)
    script = completion.source_template % completion.source_vars()
    if is_json:
        console.as_json({"shell": name, "script": script})
    else:
        click.echo(script)
