"""What surrounds the panels: variables, links, the marks of firing alerts, and the places of panels on the grid."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grafana_foundation_sdk.builders import dashboard, stat
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as d

from agent_otel import semconv
from agent_otel.alerts.promql import COMPONENT, JOB
from agent_otel.semconv.types import HISTOGRAM, prometheus_label
from dashboards.links import HEALTH, JAEGER, TEMPO, Link, keep_variables, to_dashboard
from dashboards.panels import COUNT, NONE_IS_GOOD, PROMETHEUS, stat_of
from dashboards.queries import PROCESSES, or_zero

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from grafana_foundation_sdk.cog.builder import Builder

    from agent_otel.semconv.types import Metric
    from dashboards.panels import Panel

TAG = "agent-otel"
#: The last model of Classic dashboards; every Grafana from 9 on takes it.
SCHEMA_VERSION = 42
FIRING = f'ALERTS{{component="{COMPONENT}",alertstate="firing"}}'
#: The moments at which an alert begins to fire. Of an alert that fires for hours, Grafana would paint each minute.
BEGINNING = f"{FIRING} unless {FIRING} offset $__interval"

_WIDTH = 24
_ALL = d.VariableOption(text="All", value="$__all")
_WINDOWS = ("2m", "5m", "15m", "1h")
#: A window becomes this part of the time range, so that a graph of 15 minutes shows what its tiles count.
_WINDOWS_IN_RANGE = 30
_AUTO = d.VariableOption(text="auto", value="$__auto_interval_window", selected=True)


@dataclass(frozen=True)
class Row:
    """Panels under one title. A row is collapsed unless it is ``open``, and its queries run when it is opened."""

    title: str
    panels: tuple[Panel, ...]
    open: bool = False


def processes() -> stat.Panel:
    """Return the tile of the processes that report."""
    return stat_of(
        "Processes reporting",
        "Processes that report now. No data: the other panels show no current data. Fewer than you run: AGENT_OTEL "
        "is not set in some, or their port is not scraped.",
        f"count({PROCESSES})",
        COUNT,
        alerts=("AgentTelemetryGone",),
        links=(to_dashboard(HEALTH, "Instrumentation health"),),
    )


def glance(*tiles: stat.Panel) -> Row:
    """Return the first row: whether anything reports at all, whether an alert fires, then a dashboard's own tiles."""
    alerts = stat_of(
        "Alerts firing",
        "Alerts of this package that fire now, in the chosen data source. Its rules are in the folder alerts; each "
        "alert has a runbook.",
        or_zero(f"count({FIRING})"),
        COUNT,
        NONE_IS_GOOD,
        links=(Link("Alerts of agent_otel", "/alerting/list?search=Agent"),),
    )
    return Row("At a glance", tuple(_in_lines([processes(), alerts, *tiles])), open=True)


def _in_lines(tiles: list[stat.Panel]) -> Iterator[Panel]:
    """Give tiles the widths of full lines: of four, and at the end of three."""
    lines = -(-len(tiles) // 4)
    threes = 4 * lines - len(tiles)
    for index, tile in enumerate(tiles):
        yield tile.span(_WIDTH // (4 if index < 4 * (lines - threes) else 3))


@dataclass(frozen=True)
class Frame:
    """A whole dashboard."""

    uid: str
    title: str
    description: str
    rows: tuple[Row, ...]
    #: Variables that filter a label: name -> the metric that has the label's values, and the label.
    variables: Mapping[str, tuple[Metric, str]] = field(default_factory=dict)
    traces: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all variables."""
        return ("datasource", JOB, *self.variables, "window", *((TEMPO, JAEGER) if self.traces else ()))

    def render(self, names: Mapping[str, tuple[str, ...]]) -> str:
        """Return the JSON that Grafana imports; ``names`` are the variables of each dashboard, by its uid."""
        return json.dumps(finished(self, names), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def finished(frame: Frame, names: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return the dashboard as Grafana from 11 on stores it."""
    builder = (
        dashboard.Dashboard(frame.title)
        .uid(frame.uid)
        .description(frame.description)
        .tags([TAG])
        .readonly()
        .time("now-6h", "now")
        .refresh("1m")
        .timezone("browser")
        .tooltip(d.DashboardCursorSync.CROSSHAIR)
        .annotation(_firing())
        .annotation(_started())
        .link(_others())
    )
    for variable in _variables(frame):
        builder = builder.with_variable(variable)
    whole: dict[str, Any] = json.loads(json.dumps(builder.build(), cls=JSONEncoder))
    whole["schemaVersion"] = SCHEMA_VERSION
    whole["panels"] = list(_placed(frame.rows))
    _clean(whole)
    keep_variables(whole, frame.names, names)
    return whole


def _variables(frame: Frame) -> Iterator[Builder[d.VariableModel]]:
    yield dashboard.DatasourceVariable("datasource").label("Metrics").type("prometheus")
    yield _query_variable(JOB, "Job", semconv.BUILD_INFO, JOB, filtered=False)
    for name, (metric, attribute) in frame.variables.items():
        yield _query_variable(name, name.capitalize(), metric, prometheus_label(attribute), filtered=True)
    yield (
        dashboard.IntervalVariable("window")
        .label("Window")
        .description("Window over which graphs sum or average; auto is a part of the time range.")
        .values(",".join(_WINDOWS))
        .options([_AUTO, *(d.VariableOption(text=one, value=one, selected=False) for one in _WINDOWS)])
        .current(_AUTO)
        .auto(True)
        .step_count(_WINDOWS_IN_RANGE)
        .min_interval(_WINDOWS[0])
    )
    if frame.traces:
        # Hidden: Grafana marks a data source that it does not have with a red triangle at the top of the dashboard.
        for name, title, kind in ((TEMPO, "Tempo", "tempo"), (JAEGER, "Jaeger", "jaeger")):
            yield (
                dashboard.DatasourceVariable(name)
                .label(title)
                .type(kind)
                .description("Data source that links to traces open. Optional.")
                .hide(d.VariableHide.HIDE_VARIABLE)
            )


def _query_variable(name: str, title: str, metric: Metric, value_of: str, *, filtered: bool) -> dashboard.QueryVariable:
    series = f"{metric.exposed_name}{'_count' if metric.kind == HISTOGRAM else ''}"
    query = (
        f'label_values({series}{{{JOB}=~"$job"}}, {value_of})' if filtered else f"label_values({series}, {value_of})"
    )
    return (
        dashboard.QueryVariable(name)
        .label(title)
        .datasource(PROMETHEUS)
        .query({"qryType": 1, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"})
        .refresh(d.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(d.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        # Matches series without the label too, so that one dashboard works for every way that metrics come in.
        .all_value(".*")
        .current(_ALL)
    )


def _firing() -> dashboard.AnnotationQuery:
    return (
        dashboard.AnnotationQuery()
        .name("Firing alerts")
        .datasource(PROMETHEUS)
        .enable(True)
        .icon_color("red")
        .expr(BEGINNING)
        .step("60s")
        .title_format("{{alertname}}")
        .text_format("{{gen_ai_tool_name}} {{gen_ai_workflow_name}}")
    )


def _started() -> dashboard.AnnotationQuery:
    start = f'{semconv.PROCESS_START.exposed_name}{{{JOB}=~"$job"}}'
    return (
        dashboard.AnnotationQuery()
        .name("Process starts")
        .datasource(PROMETHEUS)
        .enable(True)
        .icon_color("blue")
        .expr(f"count by ({JOB}) (time() - {start} < 60)")
        .step("60s")
        .title_format("{{job}} started")
    )


def _others() -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink("Other dashboards of agent_otel")
        .type(d.DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .as_dropdown(True)
        .include_vars(True)
        .keep_time(True)
        .icon("external link")
    )


def _placed(rows: tuple[Row, ...]) -> Iterator[dict[str, Any]]:
    """Put each row below the one before, its panels from left to right."""
    y = 0
    for row in rows:
        panels, below = _line_up(row.panels, y + 1)
        yield {
            "collapsed": not row.open,
            "gridPos": {"h": 1, "w": _WIDTH, "x": 0, "y": y},
            "id": _id(f"row {row.title}"),
            "panels": [] if row.open else panels,
            "title": row.title,
            "type": "row",
        }
        if row.open:
            yield from panels
        y = below if row.open else y + 1


def _line_up(builders: tuple[Panel, ...], y: int) -> tuple[list[dict[str, Any]], int]:
    placed, x, height = [], 0, 0
    for builder in builders:
        panel: dict[str, Any] = json.loads(json.dumps(builder.build(), cls=JSONEncoder))
        place = panel["gridPos"]
        if x + place["w"] > _WIDTH:
            x, y, height = 0, y + height, 0
        place["x"], place["y"] = x, y
        x, height = x + place["w"], max(height, place["h"])
        panel["id"] = _id(panel["title"])
        placed.append(panel)
    for line in {panel["gridPos"]["y"] for panel in placed}:
        _filled([panel["gridPos"] for panel in placed if panel["gridPos"]["y"] == line])
    return placed, y + height


def _filled(places: list[dict[str, int]]) -> None:
    """Give the panels of a line that is not full equal widths."""
    if sum(place["w"] for place in places) == _WIDTH:
        return
    for number, place in enumerate(places):
        place["x"] = number * _WIDTH // len(places)
        place["w"] = (number + 1) * _WIDTH // len(places) - place["x"]


def _id(title: str) -> int:
    """Return a panel's id, which stays when panels are added before it: links name it."""
    return zlib.crc32(title.encode()) % 99_999 + 1


_VARIABLE = ("allowCustomValue", "auto", "auto_count", "auto_min", "definition")
_UNKNOWN = {
    "query": _VARIABLE,
    "interval": ("allowCustomValue", "definition"),
    "datasource": _VARIABLE,
    "table": ("footer",),
    "bargauge": ("legend",),
    "heatmap": ("selectionMode",),
    "stat": ("percentChangeColorMode",),
}


def _clean(node: Any) -> None:
    """Take out what the SDK writes and Grafana 11 does not know, or newer ones understand as something else."""
    if isinstance(node, list):
        for one in node:
            _clean(one)
    if not isinstance(node, dict):
        return
    # Without `repeat`, Grafana 11 makes each panel as wide as the screen for it.
    if "repeat" not in node:
        node.pop("repeatDirection", None)
    # The SDK cannot write it: the automatic window follows the time range.
    if node.get("type") == "interval":
        node["refresh"] = d.VariableRefresh.ON_TIME_RANGE_CHANGED.value
    # Takes a link or an annotation's switch out of sight, into a menu.
    if node.get("placement") == "inControlsMenu":
        del node["placement"]
    for name in _UNKNOWN.get(node.get("type", ""), ()):
        node.pop(name, None)
        node.get("options", {}).pop(name, None) if isinstance(node.get("options"), dict) else None
    links = node.get("defaults", {}).get("links")
    if links is not None:
        node["defaults"]["links"] = [{"title": link["title"], "url": link["url"]} for link in links]
    for one in node.values():
        _clean(one)
