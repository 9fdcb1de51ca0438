"""``agent-otel alerts``: list, thresholds, export, check."""

from __future__ import annotations

import json
import re
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import yaml

from agent_otel import alerts as alerting
from agent_otel.alerts import Thresholds
from agent_otel.cli import checking, console, exporting, server_options
from agent_otel.cli.prometheus import Prometheus
from agent_otel.cli.render_options import rendering_options

if TYPE_CHECKING:
    from agent_otel.cli.checking import Report
    from agent_otel.cli.render_options import Rendering

#: Format -> the name of its file.
_FILES: Final = {
    "prometheus": "agent-otel.rules.yaml",
    "operator": "agent-otel.prometheusrule.yaml",
    "mimir": "agent-otel.mimir.yaml",
}
_NO_LINKS: Final = (
    "Warning: the alerts have no links to their runbooks, but a short form of them in the annotation `runbook`. To "
    "have links, publish the folder alerts/runbooks and give --runbook-url 'https://…/{alert}.md'."
)
#: Number of alerts that the table lists for one threshold.
_USERS: Final = 3


@click.group("alerts", cls=console.Group)
def command() -> None:
    """Rules for Prometheus, and whether they work there."""


@command.command("list")
@rendering_options
@console.json_option
def list_(rendering: Rendering, *, is_json: bool) -> None:
    """Show the alerts there are, and the series that are recorded for them."""
    rules = [rule for group in _groups(rendering) for rule in group["rules"]]
    if is_json:
        console.as_json(rules)
        return
    alerts = [
        (rule["alert"], rule["labels"]["severity"], rule.get("for", ""), _plain(rule["annotations"]["summary"]))
        for rule in rules
        if "alert" in rule
    ]
    console.table(("alert", "severity", "for", "summary"), alerts)
    console.say("")
    console.table(("recorded",), [(rule["record"],) for rule in rules if "record" in rule])


@command.command()
@console.json_option
def thresholds(*, is_json: bool) -> None:
    """Show what --set takes: every threshold and window, its default, and what it is."""
    users = alerting.uses()
    if is_json:
        data = [(item.name, item.default, item.metadata["meaning"], users[item.name]) for item in fields(Thresholds)]
        console.rows_as_json(("name", "default", "meaning", "alerts"), data)
        return
    rows = [
        (item.name, str(item.default), item.metadata["meaning"], _few(users[item.name])) for item in fields(Thresholds)
    ]
    console.table(("name", "default", "meaning", "of"), rows)


@command.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
@click.option("--format", "form", type=click.Choice(list(_FILES)), default="prometheus", show_default=True,
              help="A rule file, also vmalert's; a PrometheusRule of the operator; or mimirtool's file.")  # fmt: skip
@rendering_options
@click.option("--overwrite", is_flag=True, help="Replace files of the same name that are not ours.")
@console.json_option
def export(folder: Path, form: str, rendering: Rendering, *, overwrite: bool, is_json: bool) -> None:
    """Write the rules into a folder. Its other files are left alone."""
    exporting.export(folder, {_FILES[form]: rendering.text(form)}, overwrite=overwrite, is_json=is_json)
    if not rendering.has_links:
        click.echo(_NO_LINKS, err=True)


@command.command()
@server_options.url
@click.option("--rules-url", metavar="URL", help="Where its rules are, if that is another server, such as vmalert.")
@server_options.headers
@click.option("--since", default="1d", show_default=True, metavar="DURATION", help="How old a metric may be.")
@rendering_options
@click.option("--json", "as_json", is_flag=True, help="Write the report as JSON.")
def check(  # noqa: PLR0913, PLR0917 - one for each option
    url: str,
    rules_url: str | None,
    headers: tuple[str, ...],
    since: str,
    rendering: Rendering,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """See whether a Prometheus has the rules and the metrics, and which alerts fire.

    Give the options that the rules were exported with. Credentials are read from PROMETHEUS_TOKEN, or from
    PROMETHEUS_USER and PROMETHEUS_PASSWORD. The exit code is 1 when something does not work.
    """
    seconds, sent = server_options.duration(since), server_options.sent(headers)
    with closing(Prometheus(url, sent)) as store, closing(Prometheus(rules_url or url, sent)) as ruler:
        report = checking.check(store, ruler, checking.rules_of(_groups(rendering)), seconds)
    if as_json:
        click.echo(json.dumps(report.as_json(), indent=2))
    else:
        _show(report)
    if not report.ok:
        raise click.exceptions.Exit(1)


def _groups(rendering: Rendering) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = yaml.safe_load(rendering.text("prometheus"))["groups"]
    return groups


def _plain(template: str) -> str:
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", r"<\1>", template)


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:_USERS]) + (f" and {len(names) - _USERS} more" if len(names) > _USERS else "")


def _show(report: Report) -> None:
    console.say(f"{report.server} {report.version}".rstrip() + f" at {report.url}\n")
    console.table(("state", "rule", ""), [(rule.state, rule.name, rule.detail) for rule in report.rules])
    console.say("")
    for group in dict.fromkeys(metric.group for metric in report.metrics):
        _show_metrics(report, group)
    console.say("")
    firing = [
        (alert.state, alert.name, ", ".join(f"{key}={value}" for key, value in alert.labels.items()), alert.since)
        for alert in report.alerts
    ]
    if firing:
        console.table(("alert", "name", "labels", "since"), firing)
    else:
        console.say("No alert of agent_otel is pending or firing.")
    for problem in report.problems:
        console.say(f"Problem: {problem}", style="bold red")


def _show_metrics(report: Report, group: str) -> None:
    metrics = [metric for metric in report.metrics if metric.group == group]
    there = [metric for metric in metrics if metric.state == checking.PRESENT]
    if not there and all(metric.state == checking.MISSING for metric in metrics):
        console.say(f"Metrics, {group}: none of {len(metrics)}; {metrics[0].detail}")
        return
    unseen = [metric.name for metric in metrics if metric.state == checking.MISSING]
    console.say(
        f"Metrics, {group}: {len(there)} of {len(metrics)}" + (f"; not seen: {', '.join(unseen)}" if unseen else "")
    )
    for metric in metrics:
        if metric.state in {checking.WRONG_LABELS, checking.NO_BUCKETS}:
            console.say(f"  {metric.name}: {metric.detail}")
