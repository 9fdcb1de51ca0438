"""The commands by name; each is imported on first use."""

from __future__ import annotations

import pkgutil
from typing import Final

import click

from agent_otel._internal import __version__
from agent_otel.cli.console import Group

#: Name on the command line -> module and help line. ``agent-otel --help`` prints the lines without importing a module.
COMMANDS: Final = {
    "alerts": ("alerts", "Rules for Prometheus, and whether they work there."),
    "caps": ("everyday", "Payload caps of durable runtimes."),
    "completion": ("everyday", "Completion of commands and options for a shell."),
    "dashboards": ("dashboards", "Dashboards for Grafana."),
    "explain": ("explain", "A payload in a file: bytes by path and tool, room left, savings."),
    "doctor": ("doctor", "Whether agent_otel is on, what it measures, and where its telemetry goes."),
    "integrations": ("everyday", "Supported frameworks, and those that are installed."),
    "metrics": ("metrics", "The metrics of an agent's endpoint, as tables."),
    "report": ("report", "The daily review: what grew, what was cut, what repeats, what is near its cap."),
    "run": ("everyday", "Runs a program with agent_otel switched on."),
    "settings": ("everyday", "Settings, their values and where these come from."),
    "top": ("metrics", "A live view of agents: tools by bytes, cuts and repeats, workflows by room left."),
    "version": ("everyday", "Versions of agent_otel, Python and the packages that it needs."),
}


class _Lazily(Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = pkgutil.resolve_name(f"agent_otel.cli.{COMMANDS[cmd_name][0]}:{cmd_name}")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in sorted(COMMANDS.items())])


@click.group(cls=_Lazily, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="agent-otel")
def app() -> None:
    """Find out whether an agent is measured; bring the dashboards into Grafana and the alerts into Prometheus.

    Example: agent-otel doctor -- python agent.py
    """
