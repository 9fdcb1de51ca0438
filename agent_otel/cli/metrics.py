"""``agent-otel metrics``: the metrics of an agent's endpoint, once."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict

import click

from agent_otel.cli import console, server_options
from agent_otel.cli.live import Endpoint, Live, Snapshot, share_text, size_text


@click.command("metrics")
@click.argument("endpoints", nargs=-1, required=True, metavar="URL...")
@server_options.headers
@console.json_option
def command(endpoints: tuple[str, ...], headers: tuple[str, ...], *, is_json: bool) -> None:
    """Print what agents have counted: tools by bytes, cuts and repeats; workflows by the room left below the cap.

    URL is an agent's endpoint, such as localhost:9464; several are added up. Credentials are read from
    METRICS_TOKEN, or from METRICS_USER and METRICS_PASSWORD. The exit code is 1 when an endpoint does not answer.
    """
    sent = server_options.sent(headers)
    with closing(Live([Endpoint(url, sent) for url in endpoints])) as live:
        snapshot = live.read()
    if is_json:
        tools = [{name: value for name, value in asdict(row).items() if name != "per_minute"} for row in snapshot.tools]
        workflows = [asdict(row) for row in snapshot.workflows]
        console.as_json({"tools": tools, "workflows": workflows, "failures": snapshot.failures})
    else:
        _print(snapshot)
    if snapshot.failures:
        for failure in snapshot.failures:
            click.echo(f"Error: {failure}", err=True)
        raise click.exceptions.Exit(1)


def _print(snapshot: Snapshot) -> None:
    if not (snapshot.tools or snapshot.workflows or snapshot.failures):
        console.say("nothing of agent_otel has been counted there; `agent-otel doctor` says why")
        return
    tools = [
        (
            row.name,
            f"{row.calls:,}",
            size_text(row.result_bytes),
            size_text(row.largest),
            *(f"{count:,}" for count in (row.large, row.truncated, row.repeats, row.incomplete_answers)),
        )
        for row in snapshot.tools
    ]
    workflows = [
        (
            row.workflow or "-",
            row.runtime,
            row.direction,
            share_text(row.fullest),
            size_text(row.room),
            "-" if row.turns is None else f"{row.turns:,}",
            *(f"{count:,}" for count in (row.near, row.over, row.refused)),
        )
        for row in snapshot.workflows
    ]
    if tools:
        console.table(("tool", "calls", "bytes", "largest", "large", "cut", "repeats", "partial answers"), tools)
    if tools and workflows:
        console.say("")
    if workflows:
        head = ("workflow", "runtime", "payload", "full", "room left", "turns left", "near", "over", "refused")
        console.table(head, workflows)
