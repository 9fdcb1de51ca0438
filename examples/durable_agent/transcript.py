"""What a run looked like: its turns as a table, how it ended, and what had been said of it."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType

    from examples.durable_agent.report import Later, Report, Turn

TITLES = {
    "temporal": "Temporal",
    "langgraph": "LangGraph with SQLite",
    "dapr": "Dapr Workflows",
}
_FIRST_ROWS = 5
_EACH_ROW = 10


def transcript(report: Report) -> Iterator[RenderableType]:
    """What a run looked like."""
    yield turn_table(report)
    yield ""
    ending = report.ending
    if ending.answer is not None:
        yield f"It ended with an answer: {escape(ending.answer)}"
    else:
        yield "[b]What the runtime said[/b]"
        yield from _indented(text for text in (ending.cause, ending.said) if text)
        yield "[b]What the caller saw[/b]"
        yield from _indented([ending.seen])
    yield "[b]What agent_otel had said[/b]"
    yield from _indented(said(report))
    if report.stored:
        yield "[b]What the claim check did[/b]"
        yield from _indented(claimed(report))
    if report.later is not None:
        yield "[b]What another process makes of it[/b]"
        yield from _indented(looked_back(report.later))


def turn_table(report: Report) -> Table:
    """Return a table with a line for each turn; of many turns, for some of them."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    histories = any(turn.history_bytes is not None for turn in report.turns)
    columns = ["turn", "payload", "cap", "utilization", "turns to cap", "near_cap", *["history"] * histories, ""]
    for column in columns:
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    for turn in _thinned(report.turns):
        left = "-" if turn.turns_to_cap is None else str(turn.turns_to_cap)
        figures = [f"{turn.bytes:,}", f"{turn.cap_bytes:,}", f"{turn.utilization:.1%}", left, str(turn.near_cap)]
        if histories:
            figures.append("-" if turn.history_bytes is None else f"{turn.history_bytes:,}")
        table.add_row(str(turn.number), *figures, "" if turn.fits else "[red]refused[/red]")
    return table


def _thinned(turns: Sequence[Turn]) -> Iterable[Turn]:
    """The first turns, each tenth, the last, and what was refused."""
    last = turns[-1].number if turns else 0
    return (
        turn
        for turn in turns
        if turn.number <= _FIRST_ROWS or not turn.fits or turn.number % _EACH_ROW == 0 or turn.number == last
    )


def said(report: Report) -> Iterable[str]:
    """What was to be known of a run while it went on, by turn, and at its end."""
    lines: list[tuple[int, list[str]]] = []
    for found in report.findings[:1]:
        twice = (
            f"of {found.bytes:,} bytes {found.duplicate_bytes:,} are there twice: {' and '.join(found.duplicate_paths)}"
        )
        path = f"the largest path is {found.largest_path} with {found.largest_path_bytes:,}"
        tool = f"the largest tool {found.largest_tool} with {found.largest_tool_bytes:,}"
        unread = [f"no model request held {found.unread_bytes:,}: {found.unread_path}"] if found.unread_path else []
        lines.append((found.turn, [twice, path, tool, *unread]))
    if report.few_turns_left_turn:
        lines.append((report.few_turns_left_turn, ["few_turns_left is counted: room for fewer than 3 more"]))
    if report.near_cap_turn:
        lines.append((report.near_cap_turn, ["near_cap is counted"]))
    for turn, (line, *more) in sorted(lines, key=operator.itemgetter(0)):
        yield f"turn {turn}: {line}"
        yield from (f"        {each}" for each in more)
    counts = f"near_cap {report.near_cap}, over_cap {report.over_cap}"
    yield f"at the end: {counts}, rejected {report.rejected}, stuck_retries {report.stuck_retries}"


def claimed(report: Report) -> Iterable[str]:
    """What was stored, and what that has taken out of the state."""
    yield f"{report.stored} results are in the store; {report.removed_bytes:,} bytes less were handed back"


def looked_back(later: Later) -> Iterable[str]:
    """What became of the history and of the records in the last state."""
    yield f"replay of {later.events:,} events: {later.replay_failure or 'the workflow does again what it has done'}"
    same, stored = sum(each.same for each in later.shown), sum(each.bytes for each in later.shown)
    held = sum(each.record_bytes for each in later.shown)
    yield f"of {later.records} records in the last state {len(later.shown)} have a reference, in {held:,} bytes"
    yield f"{same} of these resolve to the {stored:,} bytes that the tool returned, byte for byte"
    yield f"somebody else with such a reference gets {later.stranger}"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {escape(line)}" for line in lines)
