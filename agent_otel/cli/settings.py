"""``agent-otel settings``: settings with their values, and where these come from."""

from __future__ import annotations

import logging
import os
from dataclasses import fields
from typing import Any, Final

import click

from agent_otel import settings
from agent_otel.cli import console
from agent_otel.cli.console import Failure
from agent_otel.settings.kinds import shown

_PREFIX: Final = "AGENT_OTEL_"


@click.command("settings")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--set", "only_set", is_flag=True, help="Those that the environment sets.")
@console.json_option
def command(names: tuple[str, ...], *, only_set: bool, is_json: bool) -> None:
    """Print settings: all, or those with NAME in their variable, with their values in this environment.

    A value that the environment has and that is invalid is a warning, and the default is in force.
    """
    messages = _Messages()
    logging.getLogger("agent_otel").addHandler(messages)
    rows = [row for row in _rows() if row["set"] or not only_set]
    chosen = [row for row in rows if not names or any(name.upper() in row["variable"] for name in names)]
    if names and not chosen:
        variables = [row["variable"].removeprefix(_PREFIX) for row in rows]
        hint = console.near(names[0].upper().removeprefix(_PREFIX), variables)
        raise Failure(f"no setting has {names[0]} in its name.{hint}")
    if is_json:
        console.as_json({"settings": chosen, "messages": messages.texts})
        return
    head = ("variable", "value", "from", "meaning")
    console.table(head, [(row["variable"], row["value"], "environment" * row["set"], row["meaning"]) for row in chosen])
    for text in messages.texts:
        console.warn(text)


def _rows() -> list[dict[str, Any]]:
    now = settings.load(os.environ)
    rows = []
    for item in fields(settings.Settings):
        value, variable = getattr(now, item.name), item.metadata["variable"]
        text = "(secret)" if item.metadata["kind"].is_secret and value else shown(value)
        is_set = bool(os.environ.get(variable, "").strip())
        rows.append({"variable": variable, "value": text, "set": is_set, "meaning": item.metadata["meaning"]})
    return rows


class _Messages(logging.Handler):
    """A handler that keeps the texts of warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the text of a record."""
        self.texts.append(record.getMessage())
