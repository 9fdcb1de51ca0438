"""The screen of ``agent-otel top``: a live view of agents in a terminal."""

from __future__ import annotations

import time
from typing import ClassVar, Final

from rich.text import Text
from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.coordinate import Coordinate
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Input, Markdown, Static

from agent_otel.cli import files
from agent_otel.cli.live import TOOL_COLUMNS, WORKFLOW_COLUMNS, Live, Row, Snapshot, runbook

_DANGER: Final = "bold red"
_SHORTEST_NAME: Final = 8
_LONGEST_NAME: Final = 1_000
_COLUMNS: Final = {"tools": TOOL_COLUMNS, "workflows": WORKFLOW_COLUMNS}
#: Columns that the tables are sorted by at first: bytes, and room left.
_FIRST: Final = {"tools": 3, "workflows": 4}


class Runbook(ModalScreen[None]):
    """A runbook over the view."""

    BINDINGS: ClassVar = [Binding("escape,q,enter", "dismiss", "Close")]
    CSS = """
    Runbook { align: center middle; }
    #page { width: 90%; height: 90%; border: round $accent; background: $surface; }
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Yield the page."""
        with VerticalScroll(id="page"):
            yield Markdown(self._text, open_links=False)
        yield Footer()


class _Table(DataTable[Text]):
    """A table. The footer shows the key that opens a row."""

    BINDINGS: ClassVar = [Binding("enter", "select_cursor", "Runbook")]


class Top(App[None]):
    """The view: tools above, workflows below."""

    TITLE = "agent-otel top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #status { height: 1; }
    #tools { height: 2fr; }
    #workflows { height: 1fr; }
    #filter { display: none; height: 3; }
    """
    BINDINGS: ClassVar = [
        Binding("s", "sort(1)", "Sort"),
        Binding("S", "sort(-1)", "Sort back", show=False),
        Binding("b", "by('bytes')", "Bytes"),
        Binding("c", "by('cut')", "Cuts"),
        Binding("r", "by('repeats')", "Repeats"),
        Binding("slash", "filter", "Filter"),
        Binding("z", "zero", "From now"),
        Binding("space", "pause", "Pause"),
        Binding("escape", "clear", "Clear", show=False),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, live: Live, interval: float) -> None:
        super().__init__()
        self._live = live
        self._interval = interval
        self._sorted = dict(_FIRST)
        self._snapshot = Snapshot([], [], [])
        self._shown: dict[str, list[Row]] = {name: [] for name in _COLUMNS}
        self._read_at = ""
        self._is_paused = False
        self._is_reading = False

    def compose(self) -> ComposeResult:
        """Yield the status line, both tables and the field of the filter."""
        yield Static("reading ...", id="status", markup=False)
        for name in _COLUMNS:
            yield _Table(id=name, cursor_type="row", zebra_stripes=True)
        yield Input(placeholder="part of a name; Enter keeps it, Escape ends it", id="filter")
        yield Footer()

    def on_mount(self) -> None:
        """Read at once, and then each interval."""
        self.query_one("#tools", DataTable).focus()
        self._read()
        self.set_interval(self._interval, self._read_again)

    def _read_again(self) -> None:
        if not self._is_paused and not self._is_reading:
            self._read()

    @work(thread=True)
    def _read(self, *, from_now: bool = False) -> None:
        self._is_reading = True
        try:
            snapshot = self._live.read(from_now=from_now)
        finally:
            self._is_reading = False
        self.call_from_thread(self._show, snapshot)

    def _show(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._read_at = time.strftime("%H:%M:%S")
        self._redraw()

    def _redraw(self) -> None:
        for name in _COLUMNS:
            self._fill(name)
        self._say()

    def _fill(self, name: str) -> None:
        """Show the rows of a table, sorted and filtered; the cursor stays on its row."""
        table = self.query_one(f"#{name}", DataTable)
        columns, by = _COLUMNS[name], self._sorted[name]
        part = self.query_one("#filter", Input).value.lower()
        rows = [row for row in getattr(self._snapshot, name) if part in _name(row).lower()]
        rows.sort(key=columns[by].order)
        cursor = table.cursor_row
        at = _key(self._shown[name][cursor]) if cursor < len(self._shown[name]) else ""
        self._shown[name] = list(rows)
        table.clear(columns=True)
        heads = [f"{column.head}{' v' if number == by else ''}" for number, column in enumerate(columns)]
        table.add_columns(*map(Text, heads))
        room = _name_room(table, heads[1:], [[column.text(row) for row in rows] for column in columns[1:]])
        for row in rows:
            first, *rest = (
                Text(column.text(row), style=_DANGER if column.is_bad(row[column.name]) else "") for column in columns
            )
            table.add_row(Text(shortened(first.plain, room), style=first.style), *rest)
        places = [number for number, row in enumerate(rows) if _key(row) == at]
        if places:
            table.cursor_coordinate = Coordinate(places[0], 0)

    def _say(self) -> None:
        if self._snapshot.failures:
            self.query_one("#status", Static).update(Text(self._snapshot.failures[0], style=_DANGER))
            return
        sources = self._live.sources
        where = sources[0].url if len(sources) == 1 else f"{len(sources)} endpoints"
        text = f"{where}  {self._read_at}{'  paused' if self._is_paused else ''}"
        name = self._focused()
        shown, cursor = self._shown[name], self.query_one(f"#{name}", DataTable).cursor_row
        if 0 <= cursor < len(shown):
            text += f"  {_name(shown[cursor])}"  # whole, also where the table has shortened it
        if not self._snapshot.tools:
            text += "  no tool call seen: `agent-otel doctor` says why"
        self.query_one("#status", Static).update(Text(text))

    def _focused(self) -> str:
        return "workflows" if self.focused is self.query_one("#workflows") else "tools"

    def action_sort(self, step: int) -> None:
        """Sort the table with the cursor by its next column, or by the one before."""
        name = self._focused()
        self._sorted[name] = (self._sorted[name] + step) % len(_COLUMNS[name])
        self._redraw()

    def action_by(self, head: str) -> None:
        """Sort the tools by this column."""
        self._sorted["tools"] = [column.head for column in TOOL_COLUMNS].index(head)
        self._redraw()

    @on(DataTable.RowHighlighted)
    def name_row(self) -> None:
        """Show the name of the row under the cursor."""
        self._say()

    def on_resize(self) -> None:
        """Fit the names into the new width."""
        self._redraw()

    @on(DataTable.HeaderSelected)
    def sort_by_column(self, event: DataTable.HeaderSelected) -> None:
        """Sort by the column that was clicked."""
        self._sorted[str(event.data_table.id)] = event.column_index
        self._redraw()

    def action_filter(self) -> None:
        """Open the field of the filter."""
        field = self.query_one("#filter", Input)
        field.display = True
        self.set_focus(field)

    @on(Input.Changed)
    def filter_rows(self) -> None:
        """Filter with each letter."""
        self._redraw()

    @on(Input.Submitted)
    def keep_filter(self) -> None:
        """Return to the tools; the filter stays."""
        self.set_focus(self.query_one("#tools"))

    def action_clear(self) -> None:
        """End the filter."""
        field = self.query_one("#filter", Input)
        field.value = ""
        field.display = False
        self.set_focus(self.query_one("#tools"))

    def action_zero(self) -> None:
        """Count from now on."""
        self._read(from_now=True)

    def action_pause(self) -> None:
        """Stop reading, or read again."""
        self._is_paused = not self._is_paused
        self._say()

    @on(DataTable.RowSelected)
    def open_runbook(self, event: DataTable.RowSelected) -> None:
        """Open the runbook for the worst trouble of a row."""
        row = self._shown[str(event.data_table.id)][event.cursor_row]
        if alert := runbook(row):
            self.push_screen(Runbook(files.texts("alerts", "runbooks/*.md")[f"runbooks/{alert}.md"]))
        else:
            self.notify(f"{_name(row)}: nothing was cut, refused or near its cap", markup=False)


def shortened(name: str, room: int) -> str:
    """Return a name in so many characters: its beginning and its end, which differ most often."""
    if len(name) <= room:
        return name
    end = (room - 1) // 2
    return f"{name[: room - 1 - end]}…{name[len(name) - end :]}"


def _name_room(table: DataTable[Text], heads: list[str], columns: list[list[str]]) -> int:
    """Return the characters that are left for the names."""
    if not table.size.width:
        return _LONGEST_NAME  # before the first layout
    taken = sum(max(map(len, [head, *texts])) for head, texts in zip(heads, columns, strict=True))
    padding = 2 * table.cell_padding * (len(heads) + 1)
    return min(max(table.scrollable_content_region.width - taken - padding, _SHORTEST_NAME), _LONGEST_NAME)


def _name(row: Row) -> str:
    return str(row.get("name", row.get("workflow")))


def _key(row: Row) -> str:
    """Return the identity of a row, the same after the next reading."""
    return " ".join(str(row.get(name)) for name in ("name", "runtime", "workflow", "direction"))
