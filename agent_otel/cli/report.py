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
from dataclasses import dataclass
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
    from collections.abc import Iterable, Mapping

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
_WORKFLOW: Final = (prometheus_label(semconv.RUNTIME), prometheus_label(semconv.WORKFLOW_NAME), semconv.DIRECTION)
_RUN: Final = (prometheus_label(semconv.WORKFLOW_NAME), prometheus_label(semconv.AGENT_NAME))
_MODEL: Final = prometheus_label(semconv.REQUEST_MODEL)
#: Minimum growth of a tool's mean result in the list, and minimum calls in each period for a mean.
_GROWN: Final = 1.2
_CALLS: Final = 5
#: Figures of the first table: words, metric, and the histogram's part that counts.
_TOTALS: Final = (
    ("tool calls", semconv.ARGS_SIZE, "count"),
    ("bytes of results", semconv.RESULT_SIZE, "sum"),
    ("truncated results", semconv.RESULTS_TRUNCATED, ""),
    ("answers on a part of a result", semconv.ANSWERS_INCOMPLETE, ""),
    ("repeated calls", semconv.TOOL_REPEATS, ""),
    ("requests without the history", semconv.HISTORY_LOST, ""),
    ("calls with refused arguments", semconv.INVALID_ARGUMENTS, ""),
    ("refused payloads", semconv.PAYLOADS_REJECTED, ""),
    ("failures of agent_otel itself", semconv.INTERNAL_ERRORS, ""),
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

    def counts(self, metric: Metric, *labels: str, part: str = "") -> defaultdict[_Key, int]:
        """Return the sums as whole numbers."""
        return _rounded(self.sums(metric, *labels, part=part))

    def quantile(self, at: float, metric: Metric, *labels: str) -> defaultdict[_Key, float]:
        """Return a quantile of a histogram."""
        buckets = prometheus.gained(metric, "bucket", (*labels, promql.LE), self.window, self.matchers)
        return self._values(promql.quantile(at, buckets), labels)

    def _values(self, expression: str, labels: tuple[str, ...]) -> defaultdict[_Key, float]:
        values = self.store.values(expression, labels, self.until).items()
        return defaultdict(float, {tuple(map(printable, key)): value for key, value in values if value > 0})


def _review(now: _Period, seconds: float) -> dict[str, Any]:
    """Return the findings of a period of so many seconds, and of the one before."""
    before = now._replace(until=now.until - seconds)
    totals = [
        {
            "what": words,
            **{name: round(period.sums(metric, part=part)[()]) for name, period in (("now", now), ("before", before))},
        }
        for words, metric, part in _TOTALS
    ]
    calls = now.sums(semconv.ARGS_SIZE, _TOOL, part="count")
    tool = {"tool": _TOOL}
    reasons = {semconv.REASON: semconv.REASON}
    missed = {name: name for name in (semconv.PART, semconv.CHANGE)}
    return {
        "since": now.window,
        "seconds": seconds,
        "until": now.until,
        "totals": totals,
        "grown": _grown(now, before),
        "cut": _counted(now, {**tool, "layer": "layer", **reasons}, calls, results=semconv.RESULTS_TRUNCATED),
        "incomplete": _counted(now, {**tool, **reasons}, answers=semconv.ANSWERS_INCOMPLETE),
        "missed": _priced(now, missed, semconv.MISSED_COST, semconv.MISSED_TOKENS),
        "repeating": _counted(now, tool, calls, repeats=semconv.TOOL_REPEATS),
        "nearest": _nearest(now),
        "costs": _costs(now),
    }


def _priced(now: _Period, labels: Mapping[str, str], cost: Metric, count: Metric) -> list[_Row]:
    """Return tokens of a counter and their US dollars, by labels under these names."""
    dollars, tokens = now.sums(cost, *labels.values()), now.counts(count, *labels.values())
    return _rows(tokens, tuple(labels), ("dollars", "tokens"), dollars=dollars, tokens=tokens)


def _rounded(sums: Mapping[_Key, float]) -> defaultdict[_Key, int]:
    return defaultdict(int, {key: round(value) for key, value in sums.items()})


def _rows(
    keys: Iterable[_Key], names: tuple[str, ...], by: tuple[str, ...], **columns: Mapping[_Key, Any]
) -> list[_Row]:
    """Return a row for each key, with its labels under ``names``; those with the largest figures ``by`` first."""
    rows = [
        {**dict(zip(names, key, strict=True)), **{name: column[key] for name, column in columns.items()}}
        for key in keys
    ]
    return sorted(rows, key=lambda row: (*(-row[name] for name in by), *(row[name] for name in names)))


def _counted(
    now: _Period, labels: Mapping[str, str], calls: Mapping[_Key, float] | None = None, **counter: Metric
) -> list[_Row]:
    """Return the events of a counter by tool, and their share of its calls, at most 1 and 0 where these are unknown."""
    ((figure, metric),) = counter.items()
    sums = now.sums(metric, *labels.values())
    columns: dict[str, Mapping[_Key, Any]] = {figure: _rounded(sums)}
    if calls is not None:
        columns["share"] = {
            key: min(1.0, value / calls[key[:1]]) if calls.get(key[:1]) else 0.0 for key, value in sums.items()
        }
    return _rows([key for key, value in sums.items() if round(value)], tuple(labels), (figure,), **columns)


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
    return _rows(
        [key for key in enough if mean[key] >= _GROWN * mean_before[key]],
        ("tool",),
        ("factor",),
        calls=_rounded(counts),
        factor={key: mean[key] / mean_before[key] for key in enough},
        mean=_rounded(mean),
        mean_before=_rounded(mean_before),
        p95=_rounded(p95),
        p95_before=_rounded(p95_before),
    )


def _nearest(now: _Period) -> list[_Row]:
    """Return the workflows: first those with a refused payload, then the fullest payloads."""
    utilization = now.quantile(1, semconv.UTILIZATION, *_WORKFLOW)
    near, over, refused = (
        now.counts(metric, *_WORKFLOW)
        for metric in (semconv.PAYLOAD_NEAR_CAP, semconv.PAYLOAD_OVER_CAP, semconv.PAYLOADS_REJECTED)
    )
    few, keys = now.counts(semconv.FEW_TURNS_LEFT, *_WORKFLOW[:2]), {*utilization, *refused}
    return _rows(
        keys,
        ("runtime", "workflow", "direction"),
        ("refused", "utilization"),
        utilization=utilization,
        near=near,
        over=over,
        refused=refused,
        few_turns_left={key: few[key[:2]] for key in keys},
    )


def _costs(now: _Period) -> dict[str, list[_Row]]:
    """Return the costs: the costliest workflows, money by tool and by model, and the savings of remedies."""
    remedy = {"remedy": semconv.STRATEGY}
    return {
        "workflows": _workflows(now),
        "tools": [row for row in _paid(now, _TOOL, now.counts(semconv.DEFINITION_TOKENS, _TOOL)) if row["name"]],
        "models": _paid(now, _MODEL, defaultdict(int)),
        "saved": _priced(now, remedy, semconv.CONTEXT_SAVED_COST, semconv.CONTEXT_SAVED_TOKENS),
        "savable": _priced(now, remedy, semconv.CONTEXT_SAVABLE_COST, semconv.CONTEXT_SAVABLE_TOKENS),
    }


def _workflows(now: _Period) -> list[_Row]:
    """Return finished executions by workflow and agent; ``cached`` is the tokens' share from a provider's cache."""
    executions = now.sums(semconv.EXECUTION_TOKENS, *_RUN, part="count")
    dollars, tokens, cached, requests, retries = (
        now.sums(metric, *_RUN, part="sum")
        for metric in (
            semconv.EXECUTION_PRICE,
            semconv.EXECUTION_TOKENS,
            semconv.EXECUTION_CACHED,
            semconv.EXECUTION_MODEL_REQUESTS,
            semconv.EXECUTION_MODEL_RETRIES,
        )
    )
    return _rows(
        executions,
        ("workflow", "agent"),
        ("dollars", "tokens"),
        executions=_rounded(executions),
        dollars=dollars,
        dollars_each={key: dollars[key] / count for key, count in executions.items()},
        tokens=_rounded(tokens),
        cached={key: min(1.0, cached[key] / tokens[key]) if key in tokens else 0.0 for key in executions},
        requests=_rounded(requests),
        retries=_rounded(retries),
    )


def _paid(now: _Period, label: str, definitions: Mapping[_Key, int]) -> list[_Row]:
    """Return input tokens of model requests and their price, by tool or model; tokens of definitions are separate."""
    dollars, tokens = now.sums(semconv.CONTEXT_COST, label), now.counts(semconv.CONTEXT_TOKENS_OF, label)
    keys = {*tokens, *definitions}
    rows = _rows(keys, ("name",), (), dollars=dollars, tokens=tokens, definition_tokens=definitions)
    return sorted(rows, key=lambda row: (-row["dollars"], -row["tokens"] - row["definition_tokens"]))


# --- as text in a terminal, as Markdown, and as a page of HTML that needs no other file ------------------------------

_TITLE: Final = "Daily review of the agents' tool results"
_NONE: Final = "Nothing."
_SETTINGS: Final = {
    semconv.CLAIM_CHECK: "AGENT_OTEL_CLAIM_CHECK",
    semconv.TRIM: "AGENT_OTEL_TRIM_RESULTS",
    semconv.COMPACT: "AGENT_OTEL_COMPACT_ARGUMENTS",
}
_NAME: Final = re.compile(r"[\w.:/-]+")
#: The tables as rows and the page of HTML have the name of this module.
_BESIDE: Final = Path(__file__)


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


@dataclass(frozen=True)
class _Table:
    """A table of the review. The first ``names`` columns are names, and figures follow."""

    #: The path of its rows in the review.
    path: str
    title: str
    #: Heads of the columns, and the texts of a row's cells.
    heads: str
    texts: str
    note: str = ""
    alert: str = ""
    names: int = 1

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


_TABLES: Final = tuple(
    _Table(**row) for row in yaml.safe_load(_BESIDE.with_suffix(".yaml").read_text(encoding="utf-8"))
)


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
