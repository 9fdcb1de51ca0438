"""Options of the commands that query a Prometheus."""

from __future__ import annotations

from typing import Final

import click

from agent_otel.cli.checking import seconds_of
from agent_otel.cli.console import Failure
from agent_otel.cli.render_options import pairs

url: Final = click.option(
    "--url", required=True, metavar="URL", help="Where Prometheus, VictoriaMetrics or Mimir is queried."
)
headers: Final = click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME:VALUE",
    help="A header to send, such as Mimir's X-Scope-OrgID: team. May be given again.",
)


def sent(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the headers of ``--header``.

    Raises:
        Failure: one of them cannot be sent.
    """
    found = pairs(texts, "--header", ":")
    for name, value in found.items():
        if not (name + value).isascii() or not (name + value).isprintable() or " " in name:
            raise Failure(f"--header: {name!r} cannot be sent")
    return found


def duration(text: str, option: str = "--since") -> float:
    """Return the seconds of a duration.

    Raises:
        Failure: it is none, or no time at all.
    """
    try:
        seconds = seconds_of(text)
    except ValueError as error:
        raise Failure(f"{option}: {error}") from None
    if not seconds:
        raise Failure(f"{option}: {text!r} is no time at all")
    return seconds
