"""Output of the commands: tables on standard output, errors on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable

_GOOD = ("ok", "written", "unchanged", "created", "updated", "moved", "replaced")
_BAD = ("error", "refused", "missing", "failing", "firing")


class Failure(click.ClickException):
    """An error outside the program: its message goes to standard error, and the exit code is 1."""


def console() -> Console:
    """Return a console on standard output; without a terminal, 200 characters wide for logs."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=200)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Print rows under a head; the first column may hold a state, which is coloured."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in head:
        made.add_column(name, overflow="fold")
    for state, *rest in rows:
        made.add_row(Text(state, style=_colour(state)), *(Text(cell) for cell in rest))
    console().print(made)


def say(text: str, style: str = "") -> None:
    """Print one line without markup or wrapping."""
    console().print(text, markup=False, soft_wrap=True, style=style)


def warn(text: str) -> None:
    """Print one line on standard error."""
    click.echo(f"Warning: {text}", err=True)


def printable(name: str) -> str:
    """Return a name without control characters, which a terminal would obey: models and servers choose names."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in name)


def _colour(state: str) -> str:
    word = state.removeprefix("would be ")
    if word in _GOOD:
        return "green"
    return "red" if word in _BAD else "default"
