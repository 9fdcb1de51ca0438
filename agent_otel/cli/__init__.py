"""The command ``agent-otel``: it examines agents and their metrics, and brings dashboards and rules where they belong.

It needs the extra ``cli``. The package itself imports nothing from here.
"""

from __future__ import annotations

import importlib.util
import io
import sys

#: Import names of the packages that the extra ``cli`` installs.
NEEDED = ("click", "httpx", "markdown_it", "rich", "yaml")


def main() -> None:
    """Run the command with the process's arguments; without the extra, print how to install it and exit with 2."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        from agent_otel._internal.installing import installed_with  # noqa: PLC0415 - only for this message

        sys.stderr.write(f"agent-otel needs {', '.join(missing)}: {installed_with('cli')}\n")
        sys.exit(2)
    from agent_otel.cli.app import app  # noqa: PLC0415 - it imports what may be missing

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # an encoding without these characters shows others
            stream.reconfigure(errors="replace")
    app(prog_name="agent-otel")
