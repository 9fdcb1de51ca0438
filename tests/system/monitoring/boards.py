"""Reads the committed dashboards as Grafana does: panels in rows too, variables put into queries."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = Path(__file__).resolve().parent.parent.parent.parent / "dashboards"
PATHS = tuple(sorted(FOLDER.glob("*.json")))
#: Columns of the grid.
WIDTH = 24
UIDS = tuple(path.stem for path in PATHS)

_REFERENCE = re.compile(r"\$(?:\{(\w+)[^}]*\}|(\w+))")
#: What Grafana itself knows.
BUILT_IN = {
    "__all",
    "__auto_interval_window",
    "__interval",
    "__from",
    "__to",
    "__range",
    "__rate_interval",
    "__url_time_range",
    "__field",
    "__data",
}
#: For half an hour on a screen, of data that is scraped each 15 seconds.
VALUES = {"__range": "30m", "__rate_interval": "1m", "window": "5m"}


class Query(NamedTuple):
    """One query of a panel."""

    board: str
    panel: str
    ref: str
    text: str
    instant: bool

    @property
    def name(self) -> str:
        """What a test with it is called."""
        return f"{self.board.removeprefix('agent-otel-')}: {self.panel} {self.ref}"

    @property
    def expression(self) -> str:
        """The text with all variables replaced: everything is chosen."""
        return substituted(self.text)


def load(uid: str) -> dict[str, Any]:
    """Return a dashboard as it is committed."""
    board: dict[str, Any] = json.loads((FOLDER / f"{uid}.json").read_text())
    return board


def panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All panels, those in collapsed rows too, and no rows."""
    for panel in board["panels"]:
        yield from panel["panels"] if panel["type"] == "row" else [panel]


def rows(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All rows."""
    return (panel for panel in board["panels"] if panel["type"] == "row")


def queries(uid: str) -> Iterator[Query]:
    """All PromQL of a dashboard's panels."""
    for panel in panels(load(uid)):
        for target in panel["targets"]:
            if target["datasource"]["type"] == "prometheus":
                yield Query(uid, panel["title"], target["refId"], target["expr"], target["instant"])


def links(panel: dict[str, Any]) -> Iterator[dict[str, str]]:
    """What the values of a panel lead to."""
    yield from panel["fieldConfig"]["defaults"].get("links", [])
    for override in panel["fieldConfig"]["overrides"]:
        for one in override["properties"]:
            if one["id"] == "links":
                yield from one["value"]


def substituted(text: str, chosen: Mapping[str, str] | None = None) -> str:
    """Put values in the places of variables, as Grafana does; what is not chosen matches everything."""
    values = VALUES | dict(chosen or {})
    return _REFERENCE.sub(lambda found: values.get(found[1] or found[2], ".*"), text)


def references(text: str) -> set[str]:
    """The names of variables that a text uses."""
    return {found[1] or found[2] for found in _REFERENCE.finditer(text)}


QUERIES = tuple(query for uid in UIDS for query in queries(uid))
