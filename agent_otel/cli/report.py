"""``agent-otel report``: the daily review, from the metrics in a Prometheus."""

from __future__ import annotations

import json
import time
from contextlib import closing
from datetime import datetime, timezone

import click

from agent_otel.alerts import Options
from agent_otel.cli import console, review_pages, server_options
from agent_otel.cli.console import Failure
from agent_otel.cli.prometheus import Prometheus
from agent_otel.cli.review import review


@click.command("report")
@server_options.url
@server_options.headers
@click.option("--since", default="1d", show_default=True, metavar="DURATION", help="The period, such as 8h or 7d.")
@click.option("--until", metavar="TIME", help="The end of the period, such as 2026-11-22T06:00; UTC unless it has an "
              "offset. The default is now.")  # fmt: skip
@click.option(
    "--selector", default="", metavar="MATCHERS", help="Matchers for every series, such as 'job=\"support\"'."
)
@click.option("--rows", type=click.IntRange(1), default=10, show_default=True, help="Rows of each table.")
@click.option("--runbook-url", default="", metavar="PATTERN", help="Where runbooks are; {alert} stands for the name.")
@click.option("--format", "form", type=click.Choice(["text", "markdown", "html"]), default="text", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Write all rows as JSON.")
def command(  # noqa: PLR0913, PLR0917 - one for each option
    url: str,
    headers: tuple[str, ...],
    since: str,
    until: str | None,
    selector: str,
    rows: int,
    runbook_url: str,
    form: str,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Review a period: what grew, was cut, repeats, is near its cap, and costs most, and answers built on parts.

    The figures are compared with those of the same time before. Credentials are read from PROMETHEUS_TOKEN, or from
    PROMETHEUS_USER and PROMETHEUS_PASSWORD. The exit code is 1 when there is no metric of agent_otel at all.
    """
    seconds = server_options.duration(since)
    try:
        matchers = Options(selector=selector).matchers
    except ValueError as error:
        raise Failure(str(error)) from None
    with closing(Prometheus(url, server_options.sent(headers))) as store:
        store.check()
        found = review(store, since, seconds, _time(until), (matchers,) if matchers else ())
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=2))
    elif form == "text":
        review_pages.show(found, rows, runbook_url)
    else:
        click.echo(review_pages.text(form, found, rows, runbook_url), nl=False)
    if found.is_empty:
        console.warn(
            f"{url} has no metric of agent_otel in this period: `agent-otel alerts check` says what it has, "
            "`agent-otel doctor` whether an agent is measured"
        )
        raise click.exceptions.Exit(1)


def _time(text: str | None) -> float:
    if text is None:
        return time.time()
    try:
        at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise Failure(f"--until: {text!r} is no time such as 2026-11-22T06:00") from None
    return (at if at.tzinfo else at.replace(tzinfo=timezone.utc)).timestamp()
