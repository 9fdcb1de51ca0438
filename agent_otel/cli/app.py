"""The commands by name; each is imported on first use."""

from __future__ import annotations

import difflib
import importlib
from typing import Final

import click

from agent_otel._internal.version import __version__

#: Name on the command line -> module and help line. ``agent-otel --help`` prints the lines without importing a module.
COMMANDS: Final = {
    "alerts": ("agent_otel.cli.alerts", "Rules for Prometheus, and whether they work there."),
    "caps": ("agent_otel.cli.caps", "Payload caps of durable runtimes."),
    "dashboards": ("agent_otel.cli.dashboards", "Dashboards for Grafana."),
    "explain": ("agent_otel.cli.explain", "A payload in a file: bytes by path and tool, room left, savings."),
    "doctor": ("agent_otel.cli.doctor", "Whether agent_otel is on, what it measures, and where its telemetry goes."),
    "report": (
        "agent_otel.cli.report",
        "The daily review: what grew, what was cut, what repeats, what is near its cap.",
    ),
    "top": ("agent_otel.cli.top", "A live view of agents: tools by bytes, cuts and repeats, workflows by room left."),
}


class _Lazily(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one is an error that names the nearest."""
        nearest = difflib.get_close_matches(args[0], COMMANDS, 1)
        if args[0] not in COMMANDS and nearest:
            ctx.fail(f"No such command '{args[0]}'. Do you mean {nearest[0]}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in sorted(COMMANDS.items())])


@click.group(cls=_Lazily, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="agent-otel")
def app() -> None:
    """Find out whether an agent is measured; bring the dashboards into Grafana and the alerts into Prometheus."""
