"""What can be said against a dashboard without a Grafana: the rules of Grafana Labs' dashboard-linter, and ours."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import jsonschema

from tests.system.monitoring import boards

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SCHEMAS = Path(__file__).resolve().parent / "schema"
#: The oldest Grafana that the dashboards are for, and a new one.
OLDEST, NEWEST = "11.0.0", "13.1.1"
#: Grafana's ids of units that are used; an unknown one is shown as text behind the number.
UNITS = {"binBps", "bytes", "currencyUSD", "dateTimeFromNow", "locale", "ops", "percentunit", "s", "short", "string"}
_PROMETHEUS = {"type": "prometheus", "uid": "${datasource}"}
_TEMPO = {"type": "tempo", "uid": "${traces}"}
#: What Grafana reads of an annotation of Prometheus and its types do not have.
_FIRING = 'ALERTS{component="agent_otel",alertstate="firing"}'
_BEGINNING = f"{_FIRING} unless {_FIRING} offset $__interval"
_ANNOTATION = {"expr", "step", "textFormat", "titleFormat"}
#: What Grafana reads of a variable of intervals and its types do not have.
_AUTO = {"auto", "auto_count", "auto_min"}
_TWO_SENTENCES = re.compile(r"[.:?!] \S.*\.$", re.DOTALL)


def schema_problems(board: dict[str, Any], version: str) -> Iterator[str]:
    """Say what Grafana's own types do not allow.

    A newer one requires options that an older one does not know; each of them has a default.
    """
    schemas: dict[str, Any] = json.loads((_SCHEMAS / f"grafana-{version}.json").read_text())
    definitions = schemas["dashboard"]["definitions"]

    def check(where: str, schema: dict[str, Any], value: Any) -> Iterator[str]:
        for error in jsonschema.Draft7Validator(schema).iter_errors(value):
            if version == OLDEST or error.validator != "required":
                yield f"Grafana {version}: {where}: {error.message[:200]}"

    annotations = [{k: v for k, v in one.items() if k not in _ANNOTATION} for one in board["annotations"]["list"]]
    variables = [{k: v for k, v in one.items() if k not in _AUTO} for one in board["templating"]["list"]]
    frame = board | {"panels": [], "annotations": {"list": annotations}, "templating": {"list": variables}}
    yield from check("dashboard", schemas["dashboard"], frame)
    for row in boards.rows(board):
        yield from check(row["title"], {"$ref": "#/definitions/RowPanel", "definitions": definitions}, row)
    for panel in boards.panels(board):
        where, kind = panel["title"], panel["type"]
        yield from check(where, {"$ref": "#/definitions/Panel", "definitions": definitions}, panel)
        custom = panel["fieldConfig"]["defaults"].get("custom", {})
        yield from check(where, schemas[f"{kind}.options"], panel["options"])
        yield from check(where, schemas.get(f"{kind}.custom", {"maxProperties": 0}), custom)


def problems(board: dict[str, Any], others: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    """Say what is wrong with a dashboard; ``others`` are those that its links may lead to, by uid."""
    yield from _frame(board)
    yield from _variables(board)
    yield from _places(board)
    for panel in boards.panels(board):
        for problem in (*_panel(panel), *_targets(panel), *_links(panel, board, others)):
            yield f"{panel['title']}: {problem}"


def _frame(board: dict[str, Any]) -> Iterator[str]:
    if board["schemaVersion"] != 42:
        yield "the last Classic model is 42"
    if "__inputs" in board or "id" in board:
        yield "cannot be provisioned"
    if board["editable"]:
        yield "a provisioned dashboard is edited in Python"
    if not board["description"] or board["tags"] != ["agent-otel"]:
        yield "no description, or not our tag"
    if "Processes reporting" not in [panel["title"] for panel in board["panels"][1:3]]:
        yield "the first tile does not say whether anything reports"
    (link,) = board["links"]
    if not (link["asDropdown"] and link["includeVars"] and link["keepTime"] and link["tags"] == board["tags"]):
        yield "the dropdown does not keep what was chosen"
    alerts, _ = board["annotations"]["list"]
    if alerts["expr"] != _BEGINNING or alerts["datasource"] != _PROMETHEUS:
        yield "no single mark where an alert begins to fire"
    if "inControlsMenu" in json.dumps(board):
        yield "a link or switch is hidden in a menu"


def _variables(board: dict[str, Any]) -> Iterator[str]:
    variables = {one["name"]: one for one in board["templating"]["list"]}
    if list(variables)[:2] != ["datasource", "job"]:
        yield "the first variables are not datasource and job"
    if len(variables) != len(board["templating"]["list"]):
        yield "two variables have one name"
    known = set(variables) | boards.BUILT_IN
    without = {key: value for key, value in board.items() if key != "templating"}
    used = boards.references(json.dumps(without)) | boards.references(json.dumps([*variables.values()]))
    yield from (f"${name} is not defined" for name in sorted(used - known))
    yield from (f"${name} is not used" for name in sorted(set(variables) - boards.references(json.dumps(without))))
    for name, one in variables.items():
        if one["type"] == "datasource" and name != "datasource" and one["hide"] != 2:
            yield f"${name} shows a red triangle where there is no such data source"
        if one["type"] != "query":
            continue
        if one["datasource"] != _PROMETHEUS or one["refresh"] != 2:
            yield f"${name} is of another data source, or not asked for again with the time range"
        if not (one["includeAll"] and one["multi"] and one["allValue"] == ".*"):
            yield f"${name} cannot be left open: series without its label would be missing"
        if one["current"] != {"text": "All", "value": "$__all"}:
            yield f"${name} is not open at first"


def _places(board: dict[str, Any]) -> Iterator[str]:
    everything = [*boards.rows(board), *boards.panels(board)]
    if len({panel["id"] for panel in everything}) != len(everything) or not all(panel["id"] for panel in everything):
        yield "ids are missing, or not unique"
    if len({panel["title"] for panel in boards.panels(board)}) != len(list(boards.panels(board))):
        yield "two panels have one title"
    if board["panels"][0]["type"] != "row" or board["panels"][0]["title"] != "At a glance":
        yield "the first row is not At a glance"
    for panels in (board["panels"], *(row["panels"] for row in boards.rows(board))):
        taken: dict[tuple[int, int], str] = {}
        for panel in panels:
            place = panel["gridPos"]
            if place["x"] + place["w"] > boards.WIDTH:
                yield f"{panel['title']}: wider than the grid"
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    if taken.setdefault((x, y), panel["title"]) != panel["title"]:
                        yield f"{panel['title']}: covers {taken[x, y]}"
        lines = sorted({panel["gridPos"]["y"] for panel in panels})
        yield from (
            f"a gap in the line at {y}"
            for y in lines
            if sum(panel["gridPos"]["w"] for panel in panels if panel["gridPos"]["y"] == y) != boards.WIDTH
        )


def _panel(panel: dict[str, Any]) -> Iterator[str]:
    source = _TEMPO if panel["targets"][0]["datasource"]["type"] == "tempo" else _PROMETHEUS
    if panel["datasource"] != source or any(target["datasource"] != source for target in panel["targets"]):
        yield "its data source is not the one that was chosen"
    if not _TWO_SENTENCES.search(panel["description"]):
        yield "the description does not say what is bad and what to do"
    if "repeatDirection" in panel and not panel.get("repeat"):
        yield "Grafana makes it as wide as the screen"
    defaults = panel["fieldConfig"]["defaults"]
    grey = {"text": defaults.get("noValue"), "color": "#8e8e8e"}
    missing = {"type": "special", "options": {"match": "null+nan", "result": grey}}
    if panel["type"] in {"bargauge", "stat"} and (not grey["text"] or missing not in defaults.get("mappings", [])):
        yield "a missing value has the colour of a good or a bad one"
    for unit in (defaults["unit"], *_overridden(panel, "unit")):
        if unit not in UNITS:
            yield f"unknown unit {unit}"
    steps = [step["value"] for step in defaults.get("thresholds", {}).get("steps", [])]
    if steps and (steps[0] is not None or any(low >= high for low, high in pairwise(steps[1:]))):
        yield "thresholds are not in order"
    if defaults["unit"] == "percentunit" and defaults.get("max", 1) != 1:
        yield "a share ends at 1"


def _overridden(panel: dict[str, Any], name: str) -> Iterator[Any]:
    for override in panel["fieldConfig"]["overrides"]:
        yield from (one["value"] for one in override["properties"] if one["id"] == name)


def _targets(panel: dict[str, Any]) -> Iterator[str]:
    refs = [target["refId"] for target in panel["targets"]]
    if len(set(refs)) != len(refs):
        yield "two queries have one letter"
    for override in panel["fieldConfig"]["overrides"]:
        matcher = override["matcher"]
        if matcher["id"] == "byFrameRefID" and matcher["options"] not in refs:
            yield f"overrides {matcher['options']}, which is no query"
    for target in panel["targets"]:
        if target["datasource"]["type"] == "tempo":
            continue
        yield from _target(target, panel["type"])


def _target(target: dict[str, Any], kind: str) -> Iterator[str]:
    whole = kind in {"bargauge", "stat", "table"}
    if "vector(" in target["expr"]:
        yield "shows 0 where nothing reports"
    if re.search(r"payload_cap_bytes\{[^}]*\}(?!\[)", target["expr"]):
        yield "the cap is gone five minutes after its process"
    if target["instant"] != whole or target.get("range", False) == whole:
        yield "numbers are of the whole time range, and graphs are over time"
    if whole and "$window" in target["expr"]:
        yield "numbers are of the whole time range, not of a window"
    if not whole and "$__range" in target["expr"]:
        yield "each point of a graph is of the whole time range"
    if kind == "heatmap" and target["format"] != "heatmap":
        yield "buckets are cumulative without the format heatmap"
    if kind in {"bargauge", "timeseries"} and not target["legendFormat"]:
        yield "series have no names"


def _links(panel: dict[str, Any], board: dict[str, Any], others: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    for link in boards.links(panel):
        parts = urlsplit(link["url"])
        if parts.path == "/alerting/list":
            continue
        if parts.path.startswith("/d/"):
            yield from _dashboard_link(link, board, others.get(parts.path.removeprefix("/d/")))
        elif parts.path == "/explore":
            yield from _explore_link(link)
        else:
            yield f"leads to {parts.path}"
        if panel["type"] in {"bargauge", "timeseries"}:
            for name in re.findall(r"__field\.labels\.(\w+)", link["url"]):
                if not any(f"{{{{{name}}}}}" in target["legendFormat"] for target in panel["targets"]):
                    yield f"a link needs the label {name}, which its series do not show"
        for column in re.findall(r"__data\.fields\.(\w+)", link["url"]):
            if not any(
                column in transformation["options"].get("renameByName", {}).values()
                for transformation in panel["transformations"]
            ):
                yield f"a link needs the column {column}"


def _dashboard_link(link: dict[str, str], board: dict[str, Any], target: dict[str, Any] | None) -> Iterator[str]:
    if target is None:
        yield f"leads to a dashboard that does not exist: {link['url']}"
        return
    theirs = {one["name"] for one in target["templating"]["list"]}
    ours = {one["name"] for one in board["templating"]["list"]}
    for name in re.findall(r"[?&]var-(\w+)=", link["url"]):
        if name not in theirs:
            yield f"sets ${name}, which {target['uid']} does not have"
    for name in re.findall(r"\$\{(\w+):queryparam\}", link["url"]):
        if name not in theirs & ours:
            yield f"hands on ${name}, which one of the two does not have"
    if "${__url_time_range}" not in link["url"]:
        yield "forgets the time range"


def _explore_link(link: dict[str, str]) -> Iterator[str]:
    (panes,) = parse_qs(urlsplit(link["url"]).query)["panes"]
    try:
        (pane,) = json.loads(panes).values()
    except ValueError as error:
        yield f"Explore cannot read its panes: {error}"
        return
    if pane["queries"][0]["datasource"]["uid"] != pane["datasource"] or not pane["datasource"].startswith("${"):
        yield "a trace is looked for in another data source than the chosen one"
