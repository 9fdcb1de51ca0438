"""Output of the commands: tables on standard output, errors on standard error."""

from __future__ import annotations

import difflib
import json
import os
import textwrap
from typing import TYPE_CHECKING, Final

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agent_otel._internal.errors import masked

if TYPE_CHECKING:
    from collections.abc import Iterable

_LOG_WIDTH: Final = 200
_GAP: Final = "  "
#: Characters that a terminal does not obey, and that are not printable by themselves.
_SPACES: Final = "\n\t\N{NO-BREAK SPACE}\N{ZERO WIDTH JOINER}"
_GOOD = ("ok", "written", "unchanged", "created", "updated", "moved", "replaced")
_BAD = ("error", "refused", "missing", "failing", "firing")


class Group(click.Group):
    """A group of commands; for an unknown one the error names the most similar."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command."""
        hint = near(args[0], self.list_commands(ctx))
        if hint and args[0] not in self.list_commands(ctx):
            ctx.fail(f"No such command '{args[0]}'.{hint}")
        return super().resolve_command(ctx, args)


class Failure(click.ClickException):
    """An error outside the program: its message goes to standard error, and the exit code is 1.

    The message may hold a text of a server or a file, and an address.
    """

    def __init__(self, message: str) -> None:
        super().__init__(shown(masked(message)))


def console() -> Console:
    """Return a console on standard output; without a terminal, 200 characters wide for logs, or COLUMNS."""
    found = Console(highlight=False)
    is_known = found.is_terminal or bool(os.environ.get("COLUMNS"))
    # A terminal without a size has 0 columns, into which nothing is printed.
    return found if is_known and found.width > 0 else Console(highlight=False, width=_LOG_WIDTH)


def table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]], *, is_json: bool = False) -> None:
    """Print rows under a head; the first column may hold a state, which is coloured. As JSON, print a list of objects.

    Cells wrap between words. Where the longest words of the columns do not fit side by side, each row becomes lines of
    ``name  value``.
    """
    if is_json:
        as_json([dict(zip(head, row, strict=True)) for row in rows])
        return
    out, cells = console(), [tuple(shown(str(cell)) for cell in row) for row in rows]
    widths = _widths([head, *cells], out.width)
    if widths is None:
        _lines(out, head, cells)
        return
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name, width in zip(head, widths, strict=True):
        made.add_column(name, width=width)
    for state, *rest in cells:
        made.add_row(Text(state, style=_colour(state)), *(Text(cell) for cell in rest))
    out.print(made)


def _widths(rows: list[tuple[str, ...]], available: int) -> list[int] | None:
    """Return widths of columns that cut no word; None if they do not fit."""
    columns = list(zip(*rows, strict=True))
    widths = [max((cell_len(word) for cell in column for word in cell.split()), default=0) for column in columns]
    wanted = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns]
    room = available - sum(widths) - len(_GAP) * (len(columns) - 1)
    if room < 0:
        return None
    # The narrowest columns get their width; the rest is shared.
    order = sorted(range(len(columns)), key=lambda number: wanted[number] - widths[number])
    for place, number in enumerate(order):
        share = min(wanted[number] - widths[number], room // (len(order) - place))
        widths[number] += share
        room -= share
    return widths


def _lines(out: Console, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print each row as lines; a value that is too long continues below itself, and a longer word is not cut."""
    margin = max(map(cell_len, head)) + len(_GAP)
    for row in rows:
        for number, (name, value) in enumerate(zip(head, row, strict=True)):
            if not value:
                continue
            room = max(out.width - margin, 1)
            lines = textwrap.wrap(value, room, break_long_words=False, break_on_hyphens=False) or [""]
            line = Text(f"{name:<{margin}}", style="bold")
            line.append(f"\n{' ' * margin}".join(lines), style=_colour(value) if not number else "not bold")
            out.print(line, soft_wrap=True)
        out.print()


def as_json(data: object) -> None:
    """Print data as JSON."""
    click.echo(json.dumps(data, indent=2))


#: The option of each command that prints data.
json_option: Final = click.option("--json", "is_json", is_flag=True, help="Print JSON.")


def near(name: str, names: Iterable[str]) -> str:
    """Return the question that names the most similar of ``names``; empty when none is similar."""
    nearest = difflib.get_close_matches(name, [*names], 1)
    return f" Do you mean {nearest[0]}?" if nearest else ""


def say(text: str, style: str = "") -> None:
    """Print one line without markup or wrapping."""
    console().print(shown(text), markup=False, soft_wrap=True, style=style)


def warn(text: str) -> None:
    """Print one line on standard error."""
    click.echo(f"Warning: {shown(text)}", err=True)


def printable(name: str) -> str:
    """Return a name without control characters, which a terminal would obey: models and servers choose names."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in name)


def shown(text: str) -> str:
    """Return a text of several lines without control characters."""
    return "".join(character if character in _SPACES else printable(character) for character in text)


def _colour(state: str) -> str:
    word = state.removeprefix("would be ")
    if word in _GOOD:
        return "green"
    return "red" if word in _BAD else "default"
