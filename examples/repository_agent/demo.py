"""Runs the agent as a watched process and shows what agent_otel emitted about it. Start it with ``scripts/demo``.

Everything in the tables was read back from the product: spans from an OTLP receiver, metrics from ``/metrics``.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import os
import re
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from examples.local_servers.otlp import Span, TraceReceiver
from examples.repository_agent.readings import PARTS, Scrape, growth, scrape, tool_rows
from examples.repository_agent.tools import GitError, Repository

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import AnyMessage

ROOT = Path(__file__).resolve().parents[2]
VARIABLES = ("AGENT_OTEL", "AGENT_OTEL_PROMETHEUS_PORT", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT")
HEADINGS = {"tool_arguments": "args", "tool_results": "results"}
NARROW = 80

MEANING = """
[b]What the numbers mean.[/b] Result bytes are the UTF-8 text that a tool's function returned, exact, from its span. \
A result is truncated when something between that function and the model cut it, and the reason says how that shows: \
[i]marker[/i] is a cut that the text itself owns up to. A repeat is a call with arguments that this conversation had \
sent before. The second table is what each turn's request weighed when it left for the model: the whole history is \
sent again every turn, so a result is paid for in all the turns after it; "results" is the column that grows.
"""


class UnwatchedError(Exception):
    """The demo has nothing to show, because the product is absent, off, or said nothing."""


def main() -> int:
    """Run the demo; 0 when there was something to show."""
    parser = argparse.ArgumentParser(prog="scripts/demo", description="Watch an agent read a git repository.")
    parser.add_argument("repository", type=Path, nargs="?", default=Path.cwd(), help="default: this folder")
    parser.add_argument("--question", help="what the agent is asked")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "demo", help="folder for what was received")
    parser.add_argument("--keep-serving", action="store_true", help="serve /metrics after the run, until Ctrl-C")
    parser.add_argument("--picture", type=Path, help="write the tables to this SVG file")
    given = parser.parse_args()
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr] # commit subjects are in any script
    console = Console(highlight=False)
    console.width = max(NARROW, console.width)
    try:
        check_switch()
        repository = Repository.at(given.repository)
        report = watch(repository, given.question, given.output, console)
        if given.picture:
            draw(report, given.picture)
    except (GitError, UnwatchedError) as error:
        console.print(f"[red]scripts/demo:[/red] {escape(str(error))}", soft_wrap=True)
        return 1
    if given.keep_serving:
        console.print(f"\nServing {metrics_url()} until Ctrl-C.")
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
    return 0


def check_switch() -> None:
    """Raise UnwatchedError unless this process was started the way that switches the product on."""
    if missing := [name for name in VARIABLES if not os.environ.get(name)]:
        raise UnwatchedError(f"{', '.join(missing)} not set; start the demo with scripts/demo, which sets them")
    if importlib.util.find_spec("agent_otel") is None or importlib.util.find_spec("agent_otel.core.handler") is None:
        raise UnwatchedError("agent_otel is not installed here, or without its core; see scripts/demo")


def metrics_url() -> str:
    """Return where the product serves its metrics."""
    return f"http://127.0.0.1:{os.environ['AGENT_OTEL_PROMETHEUS_PORT']}/metrics"


def watch(repository: Repository, question: str | None, output: Path, console: Console) -> tuple[Table, ...]:
    """Run the agent under the receiver's eyes and print the report; raise UnwatchedError when nothing came."""
    console.print(f"An agent reads [b]{escape(str(repository.path))}[/b], watched by AGENT_OTEL=1.\n", soft_wrap=True)
    with TraceReceiver(urlsplit(os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]).port or 0) as receiver:
        scrapes, answered = run(repository, question, console)
        # The exporter sends in batches; the number of answers only says how long it is worth waiting for spans.
        spans = receiver.inbox.wait_for_spans(answered, timeout=5)
    last = scrapes[-1]
    if not spans or not last.text:
        nothing = "no span came over OTLP" if not spans else f"nothing is served at {metrics_url()}"
        raise UnwatchedError(f"the agent ran, but agent_otel did not show it: {nothing}")
    report = tool_table(spans, last), growth_table(scrapes, console.width)
    console.print(*report, sep="\n")
    console.print(MEANING)
    save(spans, last, output)
    console.print(
        f"Metrics: {metrics_url()} while the process runs (--keep-serving), kept in {shown(output / 'metrics.txt')}"
        f"\nTraces:  {len(spans)} spans received over OTLP, kept in {shown(output / 'spans.json')}",
        soft_wrap=True,
    )
    return report


def draw(report: Sequence[Table], picture: Path) -> None:
    """Write the tables as an SVG that loads nothing from anywhere."""
    console = Console(record=True, width=NARROW, file=io.StringIO())
    console.print(*report, sep="\n")
    svg = console.export_svg(title="scripts/demo")
    picture.write_text(re.sub(r" *@font-face \{.*?\}\n", "", svg, flags=re.DOTALL))


def run(repository: Repository, question: str | None, console: Console) -> tuple[list[Scrape], int]:
    """Run the agent with a line for each step; return a scrape per turn, and how many tool calls were answered."""
    # Imported here, so that a wrong argument is answered at once and not after the frameworks have loaded.
    from examples.repository_agent.agent import QUESTION, steps  # noqa: PLC0415

    scrapes, answered = [scrape(metrics_url())], 0
    for node, messages in steps(repository, question or QUESTION):
        if node == "model":
            scrapes.append(scrape(metrics_url()))
            say_turn(len(scrapes) - 1, messages, console)
        else:
            answered += len(messages)
            say_results(messages, console)
    scrapes.append(scrape(metrics_url()))
    return scrapes, answered


def say_turn(turn: int, messages: Sequence[AnyMessage], console: Console) -> None:
    """Print what the model asked for, or its answer."""
    for message in messages:
        for call in getattr(message, "tool_calls", ()):
            given = ", ".join(f"{name}={value!r}" for name, value in call["args"].items())
            console.print(f"turn {turn:>2}  asks for {call['name']}({escape(given)})", soft_wrap=True)
        if message.text:
            console.print(f"turn {turn:>2}  answers:\n[cyan]{escape(message.text)}[/cyan]", soft_wrap=True)


def say_results(messages: Sequence[AnyMessage], console: Console) -> None:
    """Print that tools came back, and what a failed one said."""
    for message in messages:
        if getattr(message, "status", "") == "error":
            said = message.text.splitlines()[0]
            console.print(f"         [yellow]{message.name} failed:[/yellow] {escape(said)}", soft_wrap=True)
        else:
            console.print(f"         [dim]{message.name} came back[/dim]")


def table_of(title: str, *columns: str) -> Table:
    """Return an empty table whose figures are never cut short, on 80 columns either."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0), header_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    return table


def tool_table(spans: Sequence[Span], last: Scrape) -> Table:
    """Return the table of tools."""
    columns = ("calls", "p50", "p95", "largest", "truncated", "repeats", "errors")
    table = table_of("\n[b]Tools[/b]: bytes of their results", "tool", *columns)
    for row in tool_rows(spans, last):
        cut = f"{row.truncated} ({', '.join(row.reasons)})" if row.truncated else "0"
        sizes = ("-" if size is None else f"{size:,}" for size in (row.p50, row.p95, row.largest))
        table.add_row(row.tool, str(row.calls), *sizes, cut, str(row.repeats), str(row.errors))
    return table


def growth_table(scrapes: Sequence[Scrape], width: int) -> Table:
    """Return the table of turns."""
    turns = [turn for turn in growth(scrapes) if any(turn.values())]
    weights = [sum(turn.values()) for turn in turns]
    columns = (*(HEADINGS.get(part, part) for part in PARTS), "request", "growth")
    table = table_of("\n[b]Conversation[/b]: bytes of the model request, turn by turn", "turn", *columns)
    table.add_column("")
    longest = 8 + min(24, width - NARROW)
    for number, (turn, weight) in enumerate(zip(turns, weights, strict=True), 1):
        added = f"+{weight - weights[number - 2]:,}" if number > 1 else ""
        bar = "█" * max(1, round(longest * weight / max(weights)))
        table.add_row(str(number), *(f"{turn[part]:,}" for part in PARTS), f"{weight:,}", added, bar)
    total = (f"{sum(turn[part] for turn in turns):,}" for part in PARTS)
    table.add_row("all", *total, f"{sum(weights):,}", style="bold")
    return table


def save(spans: Sequence[Span], last: Scrape, output: Path) -> None:
    """Write what was received into a folder."""
    output.mkdir(parents=True, exist_ok=True)
    (output / "metrics.txt").write_text(last.text, encoding="utf-8")
    (output / "spans.json").write_text(json.dumps([asdict(span) for span in spans], indent=1), encoding="utf-8")


def shown(path: Path) -> str:
    """Return a path as seen from here, when it is below."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


if __name__ == "__main__":
    sys.exit(main())
