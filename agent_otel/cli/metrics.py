"""``agent-otel metrics``: the metrics of an agent's endpoint, once."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import asdict
from typing import Any

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
        as_json(snapshot)
        return
    _print(snapshot)
    _end(snapshot)


def as_json(snapshot: Snapshot, *, has_rates: bool = False) -> None:
    """Print a snapshot as JSON, with calls per minute if it ``has_rates``; end with 1 when a source does not answer.

    A size above the last bucket is null, because JSON has no infinity.
    """
    left_out = () if has_rates else ("per_minute",)
    tools, workflows = ([_finite(asdict(row)) for row in rows] for rows in (snapshot.tools, snapshot.workflows))
    tools = [{name: value for name, value in row.items() if name not in left_out} for row in tools]
    console.as_json({"tools": tools, "workflows": workflows, "failures": snapshot.failures})
    _end(snapshot)


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(value, float) and math.isinf(value) else value for name, value in row.items()}


def _end(snapshot: Snapshot) -> None:
    for failure in snapshot.failures:
        click.echo(f"Error: {failure}", err=True)
    if snapshot.failures:
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
