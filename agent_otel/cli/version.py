"""``agent-otel version``: what an issue report needs."""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Final

import click

from agent_otel._internal.version import __version__
from agent_otel.cli import console

_NEEDED: Final = ("opentelemetry-api", "opentelemetry-sdk", "opentelemetry-exporter-otlp", "prometheus-client", "wrapt")


@click.command("version")
@console.json_option
def command(*, is_json: bool) -> None:
    """Print the versions of agent_otel, of Python and of the packages that it needs, and where they are installed."""
    versions = {"agent-otel": __version__, "python": platform.python_version(), **dict(map(_installed, _NEEDED))}
    places = {"package": str(Path(__file__).resolve().parent.parent), "interpreter": sys.executable}
    if is_json:
        console.as_json({"versions": versions, "places": places})
        return
    console.table(("", "version"), list(versions.items()))
    console.say("")
    console.table(("", "place"), list(places.items()))


def _installed(name: str) -> tuple[str, str]:
    try:
        return name, metadata.version(name)
    except metadata.PackageNotFoundError:
        return name, "missing"
