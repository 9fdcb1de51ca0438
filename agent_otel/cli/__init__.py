"""The command ``agent-otel``: dashboards into Grafana, rules into Prometheus, and whether they work there.

It needs the extra ``cli``. Nothing here is imported by the package itself.
"""

from __future__ import annotations

import importlib.util
import sys

#: What the extra ``cli`` installs, as it is imported.
NEEDED = ("click", "httpx", "rich", "yaml")


def main() -> None:
    """Run the command with the arguments of the process; without the extra, say how to get it and exit with 2."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        sys.stderr.write(f'agent-otel needs {", ".join(missing)}: pip install "agent-otel[cli]"\n')
        sys.exit(2)
    from agent_otel.cli.app import app  # noqa: PLC0415 - it imports what may be missing

    app(prog_name="agent-otel")
