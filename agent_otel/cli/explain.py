"""``agent-otel explain``: a payload in a file, by path, tool and turn, its room, and the bytes that remedies save."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, TextIO

import click
from rich.text import Text
from rich.tree import Tree

from agent_otel.cli import console
from agent_otel.cli.console import Failure
from agent_otel.explain import explanation
from agent_otel.explain import page as pages
from agent_otel.explain.explanation import Node, by_path, facts_of, tables
from agent_otel.explain.formats import SourceError, opened, without_secrets

if TYPE_CHECKING:
    from agent_otel.explain.explanation import Explanation

_LARGEST: Final = 12
_BRANCHES: Final = 6


@click.command()
@click.argument("file", metavar="FILE|URL|-")
@click.option("--thread", help="Thread of LangGraph; by default the one with the largest checkpoint.")
@click.option("--model", default="", help="Model of the conversation, for its window and the price of carrying.")
@click.option("--all", "everything", is_flag=True, help="Print all runtimes and all paths.")
@click.option("--json", "as_json", is_flag=True, help="Print the explanation as JSON.")
@click.option("--html", "page", metavar="PAGE", type=click.File("w", "utf-8", lazy=True), help="Write an HTML page.")
def explain(  # noqa: PLR0913 - one for each option
    file: str, thread: str | None, *, model: str, everything: bool, as_json: bool, page: TextIO | None
) -> None:
    """Show the bytes of a payload that lies in a file: a state, a checkpoint, a conversation, a history.

    It reads JSON of any shape, conversations in the formats of OpenAI, Anthropic, Gemini and LangChain, exports of
    sessions, Temporal histories (temporal workflow show --output json), SQLite files of LangGraph and of OpenAI's
    sessions, and LangGraph's tables in PostgreSQL (postgresql://host/database). Sizes are bytes. Nothing leaves
    this machine. The page of --html has no script and loads nothing.

    Example: agent-otel explain state.json --html state.html
    """
    try:
        with opened(file, thread) as source:
            found = explanation.explain(without_secrets(file), source, model, facts_of(model, console.warn))
    except SourceError as error:
        raise Failure(str(error)) from error
    if page is not None:
        page.write(pages.page(found))  # opens the file
    if as_json:
        click.echo(json.dumps(as_data(found)))
    elif page is None:
        _print(found, everything=everything)


def as_data(found: Explanation) -> dict[str, Any]:
    """Return an explanation as JSON."""
    data = asdict(found)
    unread = found.breakdown.unread
    data["breakdown"]["unread"] = None if unread is None else unread._asdict()
    for turn in data["turns"]:
        turn["parts"] = [{"kind": kind, "tool": tool, "bytes": count} for (kind, tool), count in turn["parts"].items()]
    return data


def _print(found: Explanation, *, everything: bool) -> None:
    total = found.payload_bytes
    turns = f", {len(found.turns):,} turns" if found.turns else ""
    console.say(f"{found.name}: {found.kind}, {total:,} bytes{turns}", "bold")
    for note in found.notes:
        console.say(note, "yellow")
    _tree(by_path(found.breakdown.paths, total), everything=everything)
    for table in tables(found, everything=everything):
        console.say("")
        shown = table.rows if everything else table.rows[:_LARGEST]
        console.table(table.head, shown)
        more = len(table.rows) - len(shown)
        for note in (*([f"{more:,} more with --all."] if more else ()), *table.notes):
            console.say(note, "dim")


def _tree(root: Node, *, everything: bool) -> None:
    """Print the bytes by path; small branches are added up."""
    drawn = Tree(_label(root, root.bytes))
    waiting = [(root, drawn)]
    while waiting:
        node, branch = waiting.pop()
        most, least = (len(node.children), 0) if everything else (_BRANCHES, root.bytes)
        shown = [child for child in node.children[:most] if child.bytes * 100 >= least]
        waiting += [(child, branch.add(_label(child, root.bytes))) for child in shown]
        rest = node.children[len(shown) :]
        if rest:
            branch.add(Text(f"{sum(child.bytes for child in rest):,}  {len(rest)} more", "dim"))
    console.console().print(drawn)


def _label(node: Node, total: int) -> Text:
    return Text.assemble(
        (f"{node.bytes:,}", "bold"),
        f"  {100 * node.bytes / max(1, total):.0f} %  ",
        (console.printable(node.name), "cyan"),
    )
