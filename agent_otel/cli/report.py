"""``agent-otel report``: the daily review of a period, from the metrics in a Prometheus.

Each table of the review is rows of names and figures. ``report.yaml`` says how they are shown.
"""

from __future__ import annotations

import html
import json
import re
import time
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
import yaml
from markdown_it import MarkdownIt

from agent_otel import semconv
from agent_otel.alerts import Options, promql
from agent_otel.cli import console, prometheus
from agent_otel.cli.console import Failure, printable
from agent_otel.cli.prometheus import Prometheus
from agent_otel.semconv.types import prometheus_label

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_otel.semconv.types import Metric


@click.command()
@prometheus.url_option
@prometheus.header_option
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
def report(  # noqa: PLR0913, PLR0917 - one for each option
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

    The figures are compared with the same time before. Credentials are read from PROMETHEUS_TOKEN, or from
    PROMETHEUS_USER and PROMETHEUS_PASSWORD. The exit code is 1 without any metric of agent_otel.

    Example: agent-otel report --prometheus http://localhost:9090 --since 1d
    """
    seconds = prometheus.seconds_since(since)
    try:
        matchers = Options(selector=selector).matchers
    except ValueError as error:
        raise Failure(str(error)) from None
    with closing(Prometheus(url, prometheus.sent(headers))) as store:
        store.check()
        window = _Period(store, since, _time(until), (matchers,) if matchers else ())
        found = _review(window, seconds)
    if as_json:
        click.echo(json.dumps(found, indent=2))
    elif form == "text":
        _show(found, rows, runbook_url)
    else:
        text = _markdown(found, rows, runbook_url)
        if form == "html":
            body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
            text = _BESIDE.with_suffix(".html").read_text(encoding="utf-8").format(title=html.escape(_TITLE), body=body)
        click.echo(console.shown(text), nl=False)
    if not any(row["now"] or row["before"] for row in found["totals"]):
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


# --- the figures ---------------------------------------------------------------------------------------------------

_Row = dict[str, Any]
_Key = tuple[str, ...]

_TOOL: Final = prometheus_label(semconv.GEN_AI_TOOL_NAME)
#: Figures that are not rounded.
_EXACT: Final = frozenset({"dollars", "dollars_each", "share", "cached", "utilization"})
#: Minimum growth of a tool's mean result in the list, and minimum calls in each period for a mean.
_GROWN: Final = 1.2
_CALLS: Final = 5


@dataclass(frozen=True)
class _Table:
    """A table of the review, as ``report.yaml`` says."""

    path: str
    title: str
    heads: str
    texts: str
    note: str = ""
    alert: str = ""
    names: int = 1
    labels: dict[str, str] = field(default_factory=dict)
    figures: dict[str, str] = field(default_factory=dict)
    rows: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    least: float = 0.0
    is_named: bool = False

    @property
    def head(self) -> tuple[str, ...]:
        """The heads of the columns."""
        return tuple(self.heads.split(" | "))

    def cells(self, review: Mapping[str, Any]) -> list[tuple[str, ...]]:
        """Return the texts of its rows."""
        rows: Any = review
        for key in self.path.split("."):
            rows = rows[key]
        return [tuple(text.format_map(_Cells(row)) for text in self.texts.split(" | ")) for row in rows]


#: The tables as rows and the page of HTML have the name of this module.
_BESIDE: Final = Path(__file__)
_TABLES: Final = tuple(
    _Table(**row) for row in yaml.safe_load(_BESIDE.with_suffix(".yaml").read_text(encoding="utf-8"))
)


class _Period(NamedTuple):
    """The values of a window that ends at a time (epoch seconds); those above 0, by the values of labels."""

    store: Prometheus
    window: str
    until: float
    matchers: tuple[str, ...]

    def sums(self, metric: Metric, *labels: str, part: str = "") -> defaultdict[_Key, float]:
        """Return the increase of a counter or a part of a histogram."""
        return self._values(prometheus.gained(metric, part, labels, self.window, self.matchers), labels)

    def quantile(self, at: float, metric: Metric, *labels: str) -> defaultdict[_Key, float]:
        """Return a quantile of a histogram."""
        buckets = prometheus.gained(metric, "bucket", (*labels, promql.LE), self.window, self.matchers)
        return self._values(promql.quantile(at, buckets), labels)

    def figure(self, text: str, labels: tuple[str, ...]) -> defaultdict[_Key, float]:
        """Return the values of a figure of ``report.yaml``."""
        text, _, number = text.partition(" by ")
        kind, _, name = text.rpartition(" ")
        name, _, part = name.partition(".")
        labels = labels[: int(number or len(labels))]
        if kind == "max":
            return self.quantile(1, getattr(semconv, name), *labels)
        return self.sums(getattr(semconv, name), *labels, part=part) if name else defaultdict(float)

    def _values(self, expression: str, labels: tuple[str, ...]) -> defaultdict[_Key, float]:
        values = self.store.values(expression, labels, self.until).items()
        return defaultdict(float, {tuple(map(printable, key)): value for key, value in values if value > 0})


def _review(now: _Period, seconds: float) -> dict[str, Any]:
    """Return the findings of a period of so many seconds, and of the one before."""
    before = now._replace(until=now.until - seconds)
    first, *others = _TABLES
    totals = [
        {"what": words, "now": round(now.figure(text, ())[()]), "before": round(before.figure(text, ())[()])}
        for words, text in first.figures.items()
    ]
    rows = {table.path: _rows(now, table) for table in others if table.figures}
    return {
        "since": now.window,
        "seconds": seconds,
        "until": now.until,
        "totals": totals,
        "grown": _grown(now, before),
        **{path: rows[path] for path in ("cut", "incomplete", "missed", "repeating", "nearest")},
        "costs": {path.removeprefix("costs."): found for path, found in rows.items() if path.startswith("costs.")},
    }


def _rows(now: _Period, table: _Table) -> list[_Row]:
    """Return the rows of a table; those with the largest figures come first."""
    labels, ratios = tuple(table.labels.values()), re.compile(r"(\w+) (of|/) (\w+)")
    found = {name: now.figure(text, labels) for name, text in table.figures.items() if ratios.fullmatch(text) is None}
    keys = {key for name in table.rows for key, value in found[name].items() if value > table.least}
    rows = []
    for key in keys:
        if table.is_named and not key[0]:
            continue
        figures: dict[str, float] = {}
        for name, text in table.figures.items():
            if ratio := ratios.fullmatch(text):
                part, whole = figures[ratio[1]], figures[ratio[3]]
                figures[name] = part / whole if whole else 0.0
                figures[name] = min(1.0, figures[name]) if ratio[2] == "of" else figures[name]
            else:
                shorter = (key[:count] for count in range(len(key), 0, -1))
                figures[name] = next((found[name][one] for one in shorter if one in found[name]), 0.0)
        shown = {name: value if name in _EXACT else round(value) for name, value in figures.items() if name[0] != "_"}
        rows.append({**dict(zip(table.labels, key, strict=True)), **shown})
    return _sorted(rows, table.by, tuple(table.labels))


def _sorted(rows: list[_Row], by: tuple[str, ...], names: tuple[str, ...]) -> list[_Row]:
    sums = [each.split(" + ") for each in by]
    return sorted(rows, key=lambda row: (*(-sum(row[one] for one in each) for each in sums), *map(row.get, names)))


def _grown(now: _Period, before: _Period) -> list[_Row]:
    """Return tools with a larger mean result, the largest growth first; sizes are bytes."""
    size = semconv.RESULT_SIZE
    (counts, bytes_, p95), (counts_before, bytes_before, p95_before) = (
        (
            period.sums(size, _TOOL, part="count"),
            period.sums(size, _TOOL, part="sum"),
            period.quantile(0.95, size, _TOOL),
        )
        for period in (now, before)
    )
    enough = [key for key in counts if min(counts[key], counts_before[key]) >= _CALLS and key in bytes_before]
    mean = {key: bytes_[key] / counts[key] for key in enough}
    mean_before = {key: bytes_before[key] / counts_before[key] for key in enough}
    rows = [
        {
            "tool": key[0],
            "calls": round(counts[key]),
            "factor": mean[key] / mean_before[key],
            "mean": round(mean[key]),
            "mean_before": round(mean_before[key]),
            "p95": round(p95[key]),
            "p95_before": round(p95_before[key]),
        }
        for key in enough
        if mean[key] >= _GROWN * mean_before[key]
    ]
    return _sorted(rows, ("factor",), ("tool",))


# --- as text in a terminal, as Markdown, and as a page of HTML that needs no other file ------------------------------

_TITLE: Final = "Daily review of the agents' tool results"
_NONE: Final = "Nothing."
_SETTINGS: Final = {
    semconv.CLAIM_CHECK: "AGENT_OTEL_CLAIM_CHECK",
    semconv.TRIM: "AGENT_OTEL_TRIM_RESULTS",
    semconv.COMPACT: "AGENT_OTEL_COMPACT_ARGUMENTS",
}
_NAME: Final = re.compile(r"[\w.:/-]+")


class _Cells(dict[str, Any]):
    """A row of the review with the texts that follow from it."""

    def __missing__(self, name: str) -> str:
        """Return the change of a total, the setting of a remedy, or money, which is unknown without a price."""
        if name.startswith("money"):
            dollars = self[name.replace("money", "dollars")]
            return f"${dollars:,.2f}" if dollars else "-"
        if name == "setting":
            return _SETTINGS.get(self["remedy"], "")
        now, before = self["now"], self["before"]
        return f"{(now - before) / before:+.0%}" if before else "new" if now else ""


def _notes(table: _Table, cells: list[tuple[str, ...]], rows: int) -> list[str]:
    """Return the lines below a table: the number of rows left out, and a note on its figures."""
    left = [f"{len(cells) - rows:,} more."] if len(cells) > rows else []
    return [*left, table.note] if table.note else left


def _show(review: Mapping[str, Any], rows: int, runbook_url: str) -> None:
    """Print the review; each table has at most so many rows."""
    console.say(_TITLE, "bold")
    console.say(_period(review))
    for table in _TABLES:
        console.say(f"\n{table.title}", "bold")
        cells = table.cells(review)
        if not cells:
            console.say(_NONE)
            continue
        console.table(table.head, cells[:rows])
        for line in _notes(table, cells, rows):
            console.say(line)
        if table.alert:
            console.say(f"Runbook: {runbook_url.replace('{alert}', table.alert) or table.alert}")


def _markdown(review: Mapping[str, Any], rows: int, runbook_url: str) -> str:
    """Return the review as Markdown with tables as GitHub and GitLab read them."""
    parts = [f"# {_TITLE}", _period(review)]
    for table in _TABLES:
        cells = table.cells(review)
        parts.append(f"## {table.title}")
        if not cells:
            parts.append(_NONE)
            continue
        lines = [table.head, ("---",) * len(table.head)]
        lines += [(*map(_literal, row[: table.names]), *row[table.names :]) for row in cells[:rows]]
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
        parts += _notes(table, cells, rows)
        if table.alert and runbook_url:
            parts.append(f"Runbook: [{table.alert}](<{runbook_url.replace('{alert}', table.alert)}>)")
        elif table.alert:
            parts.append(f"Runbook: `{table.alert}`")
    return "\n\n".join(parts) + "\n"


def _period(review: Mapping[str, Any]) -> str:
    until, since = review["until"], review["since"]
    begin, end = (time.strftime("%Y-%m-%d %H:%M", time.gmtime(at)) for at in (until - review["seconds"], until))
    return f"From {begin} to {end} UTC ({since}), beside the {since} before."


def _literal(name: str) -> str:
    """Return a name as Markdown that shows it literally."""
    return f"`{name}`" if _NAME.fullmatch(name) else re.sub(r"([\\`*_{}\[\]<>()#+\-.!|~&])", r"\\\1", name)
