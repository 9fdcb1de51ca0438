"""``agent-otel metrics``: the metrics of an agent's endpoint, once; ``agent-otel top``: a live view of them."""

from __future__ import annotations

import math
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import click

from agent_otel._internal.installing import installed_with
from agent_otel.cli import console, prometheus
from agent_otel.cli.console import Failure
from agent_otel.cli.live import TOOL_COLUMNS, WORKFLOW_COLUMNS, Endpoint, Live, Window
from agent_otel.cli.prometheus import Prometheus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.cli.live import Column, Row, Snapshot


@click.command()
@click.argument("endpoints", nargs=-1, required=True, metavar="URL...")
@prometheus.header_option
@console.json_option
def metrics(endpoints: tuple[str, ...], headers: tuple[str, ...], *, is_json: bool) -> None:
    """Print the counts of agents: tools by bytes, cuts and repeats; workflows by the room left below the cap.

    URL is an agent's endpoint, such as localhost:9464; several are added up. Credentials are read from
    METRICS_TOKEN, or from METRICS_USER and METRICS_PASSWORD. The exit code is 1 when an endpoint does not answer.

    Example: agent-otel metrics localhost:9464
    """
    sent = prometheus.sent(headers)
    with closing(Live([Endpoint(url, sent) for url in endpoints])) as live:
        _print(live.read(), is_json=is_json)


@click.command()
@click.argument("endpoints", nargs=-1, metavar="[URL]...")
@click.option("--prometheus", "server", metavar="URL", help="Read a Prometheus instead of endpoints.")
@click.option("--since", default="1h", show_default=True, metavar="DURATION", help="The window of --prometheus.")
@prometheus.header_option
@click.option(
    "--interval", type=click.FloatRange(0.2), default=2.0, show_default=True, help="Seconds between readings."
)
@console.json_option
def top(  # noqa: PLR0913 - one for each option
    endpoints: tuple[str, ...],
    server: str | None,
    since: str,
    headers: tuple[str, ...],
    interval: float,
    *,
    is_json: bool,
) -> None:
    """Watch agents: tools by bytes, cuts and repeats; workflows by the room that is left below the cap.

    URL is an agent's endpoint, such as localhost:9464; several are added up. Counts are those since the process began,
    and from now on after the key z; with --prometheus since --since. Credentials of endpoints are METRICS_TOKEN, or
    METRICS_USER and METRICS_PASSWORD; for a Prometheus PROMETHEUS_TOKEN, or PROMETHEUS_USER and
    PROMETHEUS_PASSWORD.

    Keys: s sorts by the next column, S by the one before; b bytes, c cuts, r repeats; / filters by name; Enter opens
    the runbook; z counts from now; space pauses; q ends.

    With --json it prints the first numbers of the view, and ends; the exit code is 1 when a source does not answer.

    Example: agent-otel top localhost:9464 localhost:9465
    """
    if bool(endpoints) == bool(server):
        raise click.UsageError("give the address of an endpoint, such as localhost:9464, or --prometheus URL")
    sent = prometheus.sent(headers)
    sources = [Window(Prometheus(server, sent), since)] if server else [Endpoint(url, sent) for url in endpoints]
    with closing(Live(sources)) as live:
        if is_json:
            _print(live.read(), is_json=True, has_rates=bool(server))
            return
        try:
            from agent_otel.cli.top import Top  # noqa: PLC0415 - needs an extra
        except ImportError:
            raise Failure(f"the live view needs textual: {installed_with('top')}") from None
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise Failure("the live view needs a terminal; `agent-otel metrics URL` prints the same once")
        Top(live, interval).run()


def _print(snapshot: Snapshot, *, is_json: bool, has_rates: bool = False) -> None:
    """Print a snapshot, with calls per minute if it ``has_rates``; end with 1 when a source does not answer."""
    if is_json:
        left_out = () if has_rates else ("per_minute",)
        # JSON has no infinity: a size above the last bucket is null.
        tools, workflows = (
            [
                {key: None if value == math.inf else value for key, value in row.items() if key not in left_out}
                for row in rows
            ]
            for rows in (snapshot.tools, snapshot.workflows)
        )
        console.as_json({"tools": tools, "workflows": workflows, "failures": snapshot.failures})
    elif not (snapshot.tools or snapshot.workflows or snapshot.failures):
        console.say("nothing of agent_otel has been counted there; `agent-otel doctor` says why")
    else:
        columns = [column for column in TOOL_COLUMNS if column.head != "/min"]
        heads = {"cut": "truncated", "partial": "incomplete answers"}  # `top` needs short names
        columns = [column._replace(head=heads.get(column.head, column.head)) for column in columns]
        _table(columns, snapshot.tools)
        if snapshot.tools and snapshot.workflows:
            console.say("")
        _table(WORKFLOW_COLUMNS, snapshot.workflows)
    for failure in snapshot.failures:
        click.echo(f"Error: {failure}", err=True)
    if snapshot.failures:
        raise click.exceptions.Exit(1)


def _table(columns: Iterable[Column], rows: Iterable[Row]) -> None:
    columns, cells = tuple(columns), [tuple(column.text(row) for column in columns) for row in rows]
    if cells:
        console.table(tuple(column.head for column in columns), cells)
