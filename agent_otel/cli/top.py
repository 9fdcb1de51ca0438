"""``agent-otel top``: a live view of agents in a terminal."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import closing

import click

from agent_otel._internal.installing import installed_with
from agent_otel.cli import console, metrics, server_options
from agent_otel.cli.console import Failure
from agent_otel.cli.live import Endpoint, Live, Window
from agent_otel.cli.prometheus import Prometheus


@click.command("top")
@click.argument("endpoints", nargs=-1, metavar="[URL]...")
@click.option("--prometheus", metavar="URL", help="Read a Prometheus instead of endpoints.")
@click.option("--since", default="1h", show_default=True, metavar="DURATION", help="The window of --prometheus.")
@server_options.headers
@click.option(
    "--interval", type=click.FloatRange(0.2), default=2.0, show_default=True, help="Seconds between readings."
)
@console.json_option
def command(  # noqa: PLR0913 - one for each option
    endpoints: tuple[str, ...],
    prometheus: str | None,
    since: str,
    headers: tuple[str, ...],
    interval: float,
    *,
    is_json: bool,
) -> None:
    """Watch agents: tools by bytes, cuts and repeats; workflows by the room that is left below the cap.

    URL is an agent's endpoint, such as localhost:9464; several are added up. Counts are those since the process began,
    and from now on after the key z; with --prometheus those of --since. Credentials of endpoints are METRICS_TOKEN, or
    METRICS_USER and METRICS_PASSWORD; those of a Prometheus PROMETHEUS_TOKEN, or PROMETHEUS_USER and
    PROMETHEUS_PASSWORD.

    Keys: s sorts by the next column, S by the one before; b bytes, c cuts, r repeats; / filters by name; Enter opens
    the runbook; z counts from now; space pauses; q ends.

    With --json it prints what the view would begin with, and ends; the exit code is 1 when a source does not answer.
    """
    if bool(endpoints) == bool(prometheus):
        raise click.UsageError("give the address of an endpoint, such as localhost:9464, or --prometheus URL")
    sent = server_options.sent(headers)
    if prometheus:
        store = Prometheus(prometheus, sent)
        live = Live([Window(store, since, server_options.duration(since))])
    else:
        live = Live([Endpoint(url, sent) for url in endpoints])
    with closing(live):
        if is_json:
            metrics.as_json(live.read(), has_rates=bool(prometheus))
        else:
            _view(live, interval)


def _view(live: Live, interval: float) -> None:
    if importlib.util.find_spec("textual") is None:
        raise Failure(f"the live view needs textual: {installed_with('top')}")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure("the live view needs a terminal; `agent-otel metrics URL` prints the same once")
    from agent_otel.cli.top_view import Top  # noqa: PLC0415 - the extra may be missing

    Top(live, interval).run()
