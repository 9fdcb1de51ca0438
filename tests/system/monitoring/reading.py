"""Rules by which a dashboard is read in seconds: it names the worst, fits a screen, and says where to go on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agent_otel import semconv
from agent_otel.semconv.types import prometheus_label
from tests.system.monitoring import boards

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TOOL = prometheus_label(semconv.GEN_AI_TOOL_NAME)
WORKFLOW = prometheus_label(semconv.WORKFLOW_NAME)
AGENT = prometheus_label(semconv.AGENT_NAME)

#: Cells of the grid that a screen shows.
SCREEN = 20
#: What the tiles of the first row name.
NAMED = {
    "agent-otel-agents": {TOOL, WORKFLOW, AGENT},
    "agent-otel-executions": {WORKFLOW, AGENT},
    "agent-otel-health": {semconv.INTEGRATION, semconv.WHERE, "job"},
    "agent-otel-payload": {TOOL, WORKFLOW},
    "agent-otel-tools": {TOOL},
}
#: Words of legends, or values of a label of legends, and the colour that their series have everywhere.
COLOURS = {
    "near": "orange",
    "over": "red",
    "rejected": "dark-red",
    "refused": "dark-red",
    "stuck": "purple",
    "ignored": "red",
    "error": "red",
    "failed": "red",
}
#: Labels among whose values are words with a colour, of which a series has one.
_VALUES = {semconv.OUTCOME: ("ignored",), semconv.RESULT: ("error", "failed")}
#: Labels with so many values that a graph shows the worst of them alone.
_MANY = {TOOL, AGENT, semconv.COMPONENT}
_GREY = {"type": "special", "options": {"match": "null+nan", "result": {"text": "-", "color": "#8e8e8e"}}}
#: Pixels: of a letter of a heading, of what surrounds it, and of the arrow of a sorted column.
_LETTER, _PADDING, _ARROW = 8, 12, 16
#: Pixels of a table on a screen of 1366, less the menu and the edges.
_NARROW = 1366 - 2 * 16 - 8
ALERT = re.compile(r"/alerting/list\?search=(Agent\w+)")


def problems(board: dict[str, Any]) -> Iterator[str]:
    """Say what keeps a dashboard from being read at a glance."""
    yield from _screen(board)
    yield from _first_row(board)
    for panel in boards.panels(board):
        kind = {"table": _table, "timeseries": _graph, "bargauge": _bars, "heatmap": _heatmap, "stat": _tile}
        yield from (f"{panel['title']}: {problem}" for problem in kind[panel["type"]](panel))


def _screen(board: dict[str, Any]) -> Iterator[str]:
    shown = [panel for panel in board["panels"] if panel["type"] != "row"]
    if (lowest := max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in shown)) > SCREEN:
        yield f"open are {lowest} cells, a screen shows {SCREEN}"
    opened = [row["title"] for row in boards.rows(board) if not row["collapsed"]]
    if len(opened) != 2 or opened[0] != "At a glance":
        yield f"open are {opened}"


def _first_row(board: dict[str, Any]) -> Iterator[str]:
    tiles = first_row(board)
    if [tile["title"] for tile in tiles[:2]] not in (
        ["Processes reporting", "Alerts firing"],
        ["Firing alerts", "Processes reporting"],
    ):
        yield "the first two tiles are not of processes and alerts"
    named = {label for tile in tiles for label in named_by(tile)}
    yield from (f"no tile names the worst {label}" for label in sorted(NAMED[board["uid"]] - named))


def first_row(board: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the panels of the first row."""
    rows = [index for index, panel in enumerate(board["panels"]) if panel["type"] == "row"]
    return list(board["panels"][rows[0] + 1 : rows[1]])


def named_by(tile: dict[str, Any]) -> list[str]:
    """Return the labels whose values a tile shows beside its number."""
    (target,) = tile["targets"]
    return re.findall(r"{{(\w+)}}", target.get("legendFormat", ""))


def _tile(panel: dict[str, Any]) -> Iterator[str]:
    names = named_by(panel)
    if (panel["options"]["textMode"] == "value_and_name") != bool(names):
        yield "shows a name without one, or has a name and does not show it"
    if names and not re.search(r"\b(topk|bottomk)\(1, ", panel["targets"][0]["expr"]):
        yield "names more than one"


def _table(panel: dict[str, Any]) -> Iterator[str]:
    if panel["datasource"]["type"] != "prometheus":
        return
    ordered = [one["displayName"] for one in panel["options"]["sortBy"]]
    columns = {override["matcher"]["options"]: override["properties"] for override in panel["fieldConfig"]["overrides"]}
    if not ordered or not set(ordered) <= set(columns):
        yield "is not sorted by its columns"
    widths = 0
    for title, properties in columns.items():
        given = {one["id"]: one["value"] for one in properties}
        width = given.get("custom.width", panel["fieldConfig"]["defaults"]["custom"]["minWidth"])
        widths += width
        if width < _PADDING + _LETTER * len(title) + (_ARROW if title in ordered else 0):
            yield f"the heading {title} is cut"
        if given.get("noValue") != "-":
            yield f"a missing {title} has the text of an empty table"
        if "custom.filterable" in given and given.get("unit") != "string":
            yield f"a {title} such as 1e9 is shown as a number"
        if "thresholds" in given and _GREY not in given.get("mappings", []):
            yield f"a missing {title} has the colour of a good or a bad one"
    if widths > _NARROW * panel["gridPos"]["w"] / boards.WIDTH:
        yield f"is {widths} pixels wide"


def _graph(panel: dict[str, Any]) -> Iterator[str]:
    overrides = {
        override["matcher"]["options"]: {one["id"]: one["value"] for one in override["properties"]}
        for override in panel["fieldConfig"]["overrides"]
    }
    for target in panel["targets"]:
        words, labels = target["legendFormat"].split(" "), re.findall(r"{{(\w+)}}", target["legendFormat"])
        for word in words:
            if word in COLOURS and not _has_colour(overrides, target["refId"], word):
                yield f"{word} has not its colour"
        for values in (_VALUES[name] for name in labels if name in _VALUES):
            if not any(_has_colour(overrides, rf"/\b{value}\b/", value) for value in values):
                yield f"{target['legendFormat']} has no colour of {values}"
        many = _MANY & set(labels)
        if many and not re.match(r"(topk|bottomk)\(10, ", target["expr"]):
            yield f"shows each {many}, of which there may be hundreds"
    bars = panel["fieldConfig"]["defaults"]["custom"]["drawStyle"] == "bars"
    if bars != all(target.get("interval") == "$window" for target in panel["targets"]):
        yield "bars are not one for each window: an event is drawn more than once"


def _has_colour(overrides: dict[str, dict[str, Any]], matcher: str, word: str) -> bool:
    return overrides.get(matcher, {}).get("color") == {"mode": "shades", "fixedColor": COLOURS[word]}


def _bars(panel: dict[str, Any]) -> Iterator[str]:
    name = re.sub(r"\$\{__field\.labels\.(\w+)\}", r"{{\1}}", panel["fieldConfig"]["defaults"].get("displayName", ""))
    if name != panel["targets"][0]["legendFormat"]:
        yield "a lone bar has no name"
    if not re.search(r"\b(topk|bottomk)\(10, | or label_replace|^sort\(", panel["targets"][0]["expr"]):
        yield "has a bar for each of hundreds"
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    if [step["value"] for step in steps] == [None, 1] and ") > 0" not in panel["targets"][0]["expr"]:
        yield "has a bar for each tool that is as it should be"


def _heatmap(panel: dict[str, Any]) -> Iterator[str]:
    axis = panel["options"]["yAxis"]
    if not axis.get("axisWidth") or axis["unit"] != panel["fieldConfig"]["defaults"]["unit"]:
        yield "the bounds of its buckets are cut, or have no unit"
    if axis["unit"] != "bytes" and axis.get("decimals") != 0:
        yield "the bounds of its buckets have decimals that say nothing"
    if panel["gridPos"]["h"] < 9:
        yield "is too low for the names of its buckets"


def forgotten(link: str, board: dict[str, Any], others: Mapping[str, dict[str, Any]]) -> set[str]:
    """Return the variables that both ends of a link have and that the link neither keeps nor sets."""
    uid = link.removeprefix("/d/").partition("?")[0]
    both = _names(board) & _names(others[uid])
    return both - set(re.findall(r"\$\{(\w+):queryparam\}", link)) - set(re.findall(r"[?&]var-(\w+)=", link))


def _names(board: dict[str, Any]) -> set[str]:
    return {variable["name"] for variable in board["templating"]["list"]}


def alerts(board: dict[str, Any]) -> set[str]:
    """Return the alerts that the panels of a dashboard lead to."""
    urls = (link["url"] for panel in boards.panels(board) for link in boards.links(panel))
    return {found[1] for url in urls if (found := ALERT.fullmatch(url))}
