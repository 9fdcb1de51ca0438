"""Dashboards that answer in five seconds: rules over what is committed, and the same numbers in tiles and graphs."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.alerts import ALERTS
from tests.rows import each_row
from tests.system.engines import prometheus
from tests.system.monitoring import boards, reading
from tests.system.monitoring.simulated import END

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.system.engines.prometheus import Prometheus

    Board = dict[str, Any]

_BOARDS = {uid: boards.load(uid) for uid in boards.UIDS}
_RUNBOOKS = boards.FOLDER.parent / "alerts" / "runbooks"
_boards = each_row("uid", boards.UIDS)


@_boards
def test_it_is_read_at_a_glance(uid: str) -> None:
    assert [] == list(reading.problems(_BOARDS[uid]))


@_boards
def test_links_keep_all_variables(uid: str) -> None:
    urls = [link["url"] for panel in boards.panels(_BOARDS[uid]) for link in boards.links(panel)]
    assert {} == {
        url: forgotten
        for url in urls
        if url.startswith("/d/") and (forgotten := reading.forgotten(url, _BOARDS[uid], _BOARDS))
    }


def test_each_alert_has_a_panel_on_its_dashboard() -> None:
    leading = {uid: reading.alerts(board) for uid, board in _BOARDS.items()}
    missing = {
        alert.name
        for alert in ALERTS
        if alert.name not in leading[alert.dashboard.removeprefix("/d/").partition("?")[0]]
        and alert.name not in leading["agent-otel-agents"]
    }

    assert set() == missing
    assert {alert.name for alert in ALERTS} == set().union(*leading.values())
    assert [] == [alert.name for alert in ALERTS if not (_RUNBOOKS / f"{alert.name}.md").exists()]


def test_the_payload_is_filtered_by_five() -> None:
    shown = [one["name"] for one in _BOARDS["agent-otel-payload"]["templating"]["list"] if not one.get("hide")]

    assert ["datasource", "job", "workflow", "tool", "window"] == shown


def test_a_glance_leads_to_all_others() -> None:
    board = _BOARDS["agent-otel-agents"]
    urls = [link["url"] for panel in boards.panels(board) for link in boards.links(panel)]

    assert set(boards.UIDS) - {"agent-otel-agents"} == {
        url.removeprefix("/d/").partition("?")[0] for url in urls if url.startswith("/d/")
    }


def test_boundaries_are_sorted_by_danger() -> None:
    (table,) = (panel for panel in boards.panels(_BOARDS["agent-otel-payload"]) if panel["title"] == "Boundaries")

    assert [
        (name, True) for name in ("Stuck", "Rejected", "Over cap", "Near cap", "Largest")
    ] == [(one["displayName"], one["desc"]) for one in table["options"]["sortBy"]]  # fmt: skip


def test_a_text_says_that_there_is_no_durable_runtime() -> None:
    """In the place of each panel that is empty without one and is seen when the dashboard opens."""
    board = _BOARDS["agent-otel-payload"]
    empty = {panel["title"]: panel["fieldConfig"]["defaults"].get("noValue") for panel in board["panels"][1:] if (
        panel["type"] != "row" and "none" not in panel["targets"][0]["expr"])}  # fmt: skip

    assert {
        "Processes reporting": "no data",
        "Alerts firing": "no data",
        "Worst payload": "no durable runtime seen",
        "Fewest turns left": "no payload grows",
        "Most carried tool": "no data",
        "Worst payload by workflow": "no durable runtime seen",
        "Payload size, p95, and the caps": "no durable runtime seen",
    } == empty


def _first(board: Board, kind: str) -> dict[str, Any]:
    return next(panel for panel in boards.panels(board) if panel["type"] == kind)


def _titled(board: Board, title: str) -> dict[str, Any]:
    return next(panel for panel in boards.panels(board) if panel["title"].startswith(title))


def _leave_out(board: Board, column: str, name: str) -> None:
    """Take a property of a column of the first table away."""
    overrides = _first(board, "table")["fieldConfig"]["overrides"]
    (override,) = (one for one in overrides if one["matcher"]["options"] == column)
    override["properties"] = [one for one in override["properties"] if one["id"] != name]


_MISTAKES: dict[str, Callable[[Board], None]] = {
    "a third open row": lambda board: list(boards.rows(board))[2].update(collapsed=False),
    "more than a screen": lambda board: _first(board, "table")["gridPos"].update(h=20),
    "no alerts in the first row": lambda board: board["panels"].pop(2),
    "a tile without its name": lambda board: _titled(board, "Largest result")["options"].update(textMode="value"),
    "a tile with all names": lambda board: _titled(board, "Largest result")["targets"][0].update(expr="sum(up)"),
    "a narrow heading": lambda board: _first(board, "table")["fieldConfig"]["overrides"][0]["properties"].append(
        {"id": "custom.width", "value": 10}
    ),
    "a missing value in the colour of a bad one": lambda board: _leave_out(board, "p95", "mappings"),
    "the text of an empty table in a cell": lambda board: _leave_out(board, "Tool", "noValue"),
    "a name as a number": lambda board: _leave_out(board, "Tool", "unit"),
    "a wide table": lambda board: _first(board, "table")["gridPos"].update(w=12),
    "an unsorted table": lambda board: _first(board, "table")["options"].update(sortBy=[]),
    "any colour": lambda board: _titled(board, "Follow-ups")["fieldConfig"].update(overrides=[]),
    "hundreds of lines": lambda board: _titled(board, "Calls by tool")["targets"][0].update(expr="sum(up)"),
    "hundreds of bars": lambda board: _first(board, "bargauge")["targets"][0].update(expr="sum(up)"),
    "bars of nothing": lambda board: _titled(board, "Changed definitions")["targets"][0].update(
        expr="sort_desc(topk(10, sum(up)))"
    ),
    "a lone bar without a name": lambda board: _first(board, "bargauge")["fieldConfig"]["defaults"].pop("displayName"),
    "events that are drawn often": lambda board: _titled(board, "Calls by tool")["targets"][0].pop("interval"),
    "bounds that are cut": lambda board: _first(board, "heatmap")["options"]["yAxis"].pop("axisWidth"),
}


@each_row("mistake", _MISTAKES)
def test_a_rule_finds(mistake: str) -> None:
    board = copy.deepcopy(_BOARDS["agent-otel-tools"])
    _MISTAKES[mistake](board)

    assert [] != list(reading.problems(board))


#: Tiles of a counter, and the bars of the same counter.
_PAIRS = {
    "agent-otel-tools": {
        "Repeated calls": "Repeated calls by tool",
        "Calls that failed": "Failed calls by error",
    },
}
_RANGE_SECONDS = 900
_WINDOW_SECONDS = 180


@pytest.mark.parametrize("uid", _PAIRS)
def test_tiles_and_graphs_agree_in_fifteen_minutes(store: Callable[[str], Prometheus], uid: str) -> None:
    """A tile shows the sum of the bars of the series that it names, of all of the time range and no more."""
    engine = store(prometheus.NEWEST)
    asked = {"__range": f"{_RANGE_SECONDS}s", "window": f"{_WINDOW_SECONDS}s"}
    board, counted = _BOARDS[uid], 0.0
    for tile, graph in _PAIRS[uid].items():
        (of_tile,) = _titled(board, tile)["targets"]
        of_graph = _titled(board, graph)["targets"][0]
        (worst,) = engine.query(boards.substituted(of_tile["expr"], asked), END)
        (label,) = worst["metric"]
        rows = engine.query_range(
            boards.substituted(of_graph["expr"], asked),
            END - _RANGE_SECONDS + _WINDOW_SECONDS,
            END,
            _WINDOW_SECONDS,
        )
        bars = [row for row in rows if row["metric"].get(label) == worst["metric"][label]]
        if 'threshold="warn"' in of_tile["expr"]:
            bars = [row for row in bars if row["metric"]["threshold"] == "warn"]
        drawn = sum(float(value) for row in bars for _, value in row["values"])

        # Prometheus extrapolates each window by itself.
        assert pytest.approx(float(worst["value"][1]), rel=0.05, abs=1.5) == drawn, tile
        counted += drawn

    assert counted > 10
