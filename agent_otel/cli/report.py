"""``agent-otel report``: the daily review, from the metrics in a Prometheus."""

from __future__ import annotations

import html
import json
import re
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

import click
from markdown_it import MarkdownIt

from agent_otel import semconv
from agent_otel.alerts import Options
from agent_otel.cli import console, server_options
from agent_otel.cli.console import Failure
from agent_otel.cli.prometheus import Prometheus
from agent_otel.cli.review import review

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.cli.review import Costs, Review, Total


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
        show(found, rows, runbook_url)
    else:
        click.echo(console.shown(text(form, found, rows, runbook_url)), nl=False)
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


_TITLE: Final = "Daily review of the agents' tool results"
_NONE: Final = "Nothing."
_SETTINGS: Final = {
    semconv.CLAIM_CHECK: "AGENT_OTEL_CLAIM_CHECK",
    semconv.TRIM: "AGENT_OTEL_TRIM_RESULTS",
    semconv.COMPACT: "AGENT_OTEL_COMPACT_ARGUMENTS",
}
_NAME: Final = re.compile(r"[\w.:/-]+")
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; margin: .5rem 0 1.5rem; }}
th, td {{ border-bottom: 1px solid #8886; padding: .25rem .75rem .25rem 0; text-align: left; vertical-align: top; }}
td {{ font-variant-numeric: tabular-nums; }}
code {{ overflow-wrap: anywhere; }}
</style>
</head>
<body>
{body}</body>
</html>
"""

# The review as text in a terminal, as Markdown, and as a page of HTML that needs no other file.


@dataclass(frozen=True)
class _Section:
    """A table with its title; the first ``names`` columns are names, the others figures."""

    title: str
    note: str
    alert: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    names: int = 1


def show(review: Review, rows: int, runbook_url: str) -> None:
    """Print the review; each table has at most so many rows."""
    console.say(_TITLE, "bold")
    console.say(_period(review))
    for section in _sections(review):
        console.say(f"\n{section.title}", "bold")
        if not section.rows:
            console.say(_NONE)
            continue
        console.table(section.head, section.rows[:rows])
        for line in (*_rest(section, rows), section.note, _runbook(section, runbook_url)):
            if line:
                console.say(line)


def markdown(review: Review, rows: int, runbook_url: str) -> str:
    """Return the review as Markdown with tables as GitHub and GitLab read them."""
    parts = [f"# {_TITLE}", _period(review)]
    for section in _sections(review):
        parts.append(f"## {section.title}")
        if not section.rows:
            parts.append(_NONE)
            continue
        lines = [section.head, ("---",) * len(section.head)]
        lines += [
            tuple(_cell(cell) if place < section.names else cell for place, cell in enumerate(row))
            for row in section.rows[:rows]
        ]
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
        parts += [line for line in (*_rest(section, rows), section.note) if line]
        if section.alert:
            parts.append(_link(section.alert, runbook_url))
    return "\n\n".join(parts) + "\n"


def page(review: Review, rows: int, runbook_url: str) -> str:
    """Return the review as HTML."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    body = reader.render(markdown(review, rows, runbook_url))
    return _PAGE.format(title=html.escape(_TITLE), body=body)


def _period(review: Review) -> str:
    begin, end = (
        time.strftime("%Y-%m-%d %H:%M", time.gmtime(at)) for at in (review.until - review.seconds, review.until)
    )
    return f"From {begin} to {end} UTC ({review.since}), beside the {review.since} before."


def _sections(review: Review) -> list[_Section]:
    return [
        _Section("In short", "", "", ("", "now", "before", "change"), [_total(total) for total in review.totals]),
        _Section(
            "What grew",
            "A tool's mean result, in bytes; p95 is estimated from buckets.",
            "AgentToolResultGrown",
            ("tool", "mean", "before", "growth", "p95", "p95 before", "calls"),
            [
                (row.tool, f"{row.mean:,}", f"{row.mean_before:,}", f"{row.factor:.1f} x", f"{row.p95:,}",
                 f"{row.p95_before:,}", f"{row.calls:,}")
                for row in review.grown
            ],
        ),
        _Section(
            "What was cut",
            "Truncated results, and their share of the tool's calls.",
            "AgentToolTruncationHigh",
            ("tool", "layer", "reason", "results", "share"),
            [(row.tool, row.layer, row.reason, f"{row.results:,}", f"{row.share:.1%}") for row in review.cut],
            names=3,
        ),
        _Section(
            "Worst answers",
            "Final answers while the model had a part of a result only.",
            "AgentAnswersIncomplete",
            ("tool", "reason", "answers"),
            [(row.tool, row.reason, f"{row.answers:,}") for row in review.incomplete],
            names=2,
        ),
        _Section(
            "Who repeats",
            "Calls with the arguments of an earlier call in the same execution.",
            "",
            ("tool", "repeats", "share"),
            [(row.tool, f"{row.repeats:,}", f"{row.share:.1%}") for row in review.repeating],
        ),
        _Section(
            "Payloads nearest to their cap",
            "The fullest payload, as the upper bound of its bucket; 100% is the cap.",
            "AgentWorkflowPayloadNearCap",
            ("runtime", "workflow", "direction", "fullest", "near", "over", "refused", "few turns left"),
            [
                (row.runtime, row.workflow, row.direction, f"{row.utilization:.0%}", f"{row.near:,}", f"{row.over:,}",
                 f"{row.refused:,}", f"{row.few_turns_left:,}")
                for row in review.nearest
            ],
            names=3,
        ),
        *_costs(review.costs),
    ]  # fmt: skip


def _costs(costs: Costs) -> list[_Section]:
    return [
        _Section(
            "Costliest workflows",
            "Finished executions; without money, no model has a price (AGENT_OTEL_MODEL_PRICES). Cached is the share "
            "of the tokens that a provider's cache has served.",
            "",
            ("workflow", "agent", "money", "each", "executions", "tokens", "cached", "requests", "retries"),
            [
                (row.workflow, row.agent, _money(row.dollars), _money(row.dollars_each), f"{row.executions:,}",
                 f"{row.tokens:,}", f"{row.cached:.1%}", f"{row.requests:,}", f"{row.retries:,}")
                for row in costs.workflows
            ],
            names=2,
        ),
        _Section(
            "Money by tool",
            "Input tokens of a tool's results and arguments in all requests; those of its definition stand apart.",
            "",
            ("tool", "money", "tokens", "tokens of its definition"),
            [(row.name, _money(row.dollars), f"{row.tokens:,}", f"{row.definition_tokens:,}") for row in costs.tools],
        ),
        _Section(
            "Money by model",
            "Input tokens of all requests.",
            "",
            ("model", "money", "tokens"),
            [(row.name, _money(row.dollars), f"{row.tokens:,}") for row in costs.models],
        ),
        _Section(
            "Saved by remedies",
            "What requests would have had in addition.",
            "",
            ("remedy", "money", "tokens"),
            [(row.remedy, _money(row.dollars), f"{row.tokens:,}") for row in costs.saved],
        ),
        _Section(
            "Savable by remedies that are off",
            "Estimates for each remedy by itself; two save less than the sum. A change of old messages costs cached "
            "tokens, which is not taken off.",
            "",
            ("remedy", "money", "tokens", "setting"),
            [
                (row.remedy, _money(row.dollars), f"{row.tokens:,}", _SETTINGS.get(row.remedy, ""))
                for row in costs.savable
            ],
        ),
    ]  # fmt: skip


def _money(dollars: float) -> str:
    return f"${dollars:,.2f}"


def _total(total: Total) -> tuple[str, ...]:
    change = f"{(total.now - total.before) / total.before:+.0%}" if total.before else "new" if total.now else ""
    return (total.what, f"{total.now:,}", f"{total.before:,}", change)


def _rest(section: _Section, rows: int) -> list[str]:
    more = len(section.rows) - rows
    return [f"{more:,} more."] if more > 0 else []


def _runbook(section: _Section, pattern: str) -> str:
    if not section.alert:
        return ""
    return f"Runbook: {pattern.replace('{alert}', section.alert) if pattern else section.alert}"


def _link(alert: str, pattern: str) -> str:
    return f"Runbook: [{alert}](<{pattern.replace('{alert}', alert)}>)" if pattern else f"Runbook: `{alert}`"


def _cell(text: str) -> str:
    """Return a name as Markdown that shows it literally."""
    if _NAME.fullmatch(text):
        return f"`{text}`"
    return re.sub(r"([\\`*_{}\[\]<>()#+\-.!|~&])", r"\\\1", text)


_FORMATS: Final[dict[str, Callable[[Review, int, str], str]]] = {"markdown": markdown, "html": page}


def text(form: str, review: Review, rows: int, runbook_url: str) -> str:
    """Return the review in one of the formats ``markdown`` and ``html``."""
    return _FORMATS[form](review, rows, runbook_url)
