"""The dashboards without a Grafana: its own types, our rules, every query against the catalogue."""

from __future__ import annotations

import copy
import importlib
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import promql_parser
import pytest
import yaml
from opentelemetry.trace import SpanContext, TraceFlags

from agent_otel import semconv
from agent_otel.alerts import ALERTS
from agent_otel.alerts import rules as alerting
from agent_otel.semconv.types import HISTOGRAM
from agent_otel.telemetry.sinks import Exemplar
from tests.rows import each_row
from tests.system.monitoring import boards, lint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_otel.alerts import Alert
    from tests.system.monitoring.boards import Query

    Board = dict[str, Any]

_BOARDS = {uid: boards.load(uid) for uid in boards.UIDS}
_ROOT = boards.FOLDER.parent
#: What Prometheus adds to each series, and the label that buckets have.
_SCRAPED = {"job", "instance"}
#: Metrics that the review shows, or that a person looks up in Explore.
_IN_NO_PANEL = {
    "agent_otel.claim_check.io",
    "agent_otel.context.removed",
    "agent_otel.context.savable.cost",
    "agent_otel.context.saved.cost",
    "agent_otel.context.summaries",
    "agent_otel.process.start_time",
    "agent_otel.model.cache.missed.cost",
    "agent_otel.model.cache.missed.tokens",
    "agent_otel.model.cached_tokens",
    "agent_otel.model.history.dropped",
    "agent_otel.model.history.dropped_tasks",
    "agent_otel.model.history.dropped_turns",
    "agent_otel.tool.context.tokens",
    "agent_otel.tool.result.resent",
    "agent_otel.tool.result.shape_changes",
    "agent_otel.workflow.payload.few_turns_left",
    "agent_otel.workflow.store.large",
}
#: On every series that a run moves.
_OF_A_RUN = {"gen_ai_agent_name", "gen_ai_workflow_name"}
#: Labels that a query makes itself.
_MADE = {"label"}
#: kubectl apply keeps the whole of what it applies in an annotation, which may have so many bytes.
_MOST_BYTES = 262_144
_boards = each_row("uid", boards.UIDS)


def test_there_are_five() -> None:
    assert (
        "agent-otel-agents",
        "agent-otel-executions",
        "agent-otel-health",
        "agent-otel-payload",
        "agent-otel-tools",
    ) == boards.UIDS
    assert list(boards.UIDS) == [board["uid"] for board in _BOARDS.values()]
    assert sum(len(list(boards.panels(board))) for board in _BOARDS.values()) <= 95


@pytest.mark.filterwarnings("ignore:Prefer using dashboardv2:DeprecationWarning")
def test_what_is_committed_is_what_is_generated() -> None:
    pytest.importorskip("grafana_foundation_sdk", reason="the dashboards are built with Python 3.11 and newer")
    # Not by an import statement: mypy would read it for Python 3.10, which has not all that the SDK is made of.
    generated = importlib.import_module("dashboards.build").files()
    folders = (boards.FOLDER, boards.FOLDER / "kubernetes", boards.FOLDER / "provisioning")
    by_hand = {"dashboards/compose.yaml"}
    committed = {
        path.relative_to(_ROOT).as_posix()
        for folder in folders
        for path in folder.iterdir()
        if path.suffix in {".json", ".yaml"}
    }

    assert set(generated) == committed - by_hand
    assert [] == [path for path, text in generated.items() if (_ROOT / path).read_text() != text]


@_boards
@each_row("version", [lint.OLDEST, lint.NEWEST])
def test_grafana_knows_every_key(uid: str, version: str) -> None:
    assert [] == list(lint.schema_problems(_BOARDS[uid], version))


@_boards
def test_our_rules_are_kept(uid: str) -> None:
    assert [] == list(lint.problems(_BOARDS[uid], _BOARDS))


def _first(board: Board, kind: str) -> dict[str, Any]:
    return next(panel for panel in boards.panels(board) if panel["type"] == kind)


def _misspell_option(board: Board) -> None:
    _first(board, "stat")["options"]["colourMode"] = "value"


def _misspell_field(board: Board) -> None:
    _first(board, "timeseries")["fieldConfig"]["defaults"]["custom"]["lineWitdh"] = 2


def _use_a_new_option(board: Board) -> None:
    _first(board, "stat")["options"]["percentChangeColorMode"] = "standard"


def _use_an_unknown_value(board: Board) -> None:
    _first(board, "timeseries")["options"]["legend"]["placement"] = "left"


def _use_a_wrong_type(board: Board) -> None:
    _first(board, "stat")["title"] = 5


def _misspell_panel_key(board: Board) -> None:
    _first(board, "table")["desciption"] = "?"


@each_row(
    "spoil",
    [
        _misspell_option,
        _misspell_field,
        _use_a_new_option,
        _use_an_unknown_value,
        _use_a_wrong_type,
        _misspell_panel_key,
    ],
)
def test_the_schema_finds(spoil: Callable[[Board], None]) -> None:
    board = copy.deepcopy(_BOARDS["agent-otel-tools"])
    spoil(board)

    assert 1 == len(list(lint.schema_problems(board, lint.OLDEST)))


def _replacing(old: str, new: str) -> Callable[[Board], None]:
    """Replace a text in all links."""

    def replace(board: Board) -> None:
        for panel in boards.panels(board):
            for link in boards.links(panel):
                link["url"] = link["url"].replace(old, new)

    return replace


_MISTAKES: dict[str, Callable[[Board], None]] = {
    "hard-wired data source": lambda board: _first(board, "stat")["datasource"].update(uid="prometheus"),
    "hard-wired data source of a query": lambda board: _first(board, "stat")["targets"][0]["datasource"].update(
        uid="x"
    ),
    "unknown unit": lambda board: _first(board, "stat")["fieldConfig"]["defaults"].update(unit="byte"),
    "short description": lambda board: _first(board, "stat").update(description="Large results"),
    "same id": lambda board: _first(board, "stat").update(id=_first(board, "table")["id"]),
    "overlap": lambda board: _first(board, "table")["gridPos"].update(y=6),
    "gap": lambda board: _first(board, "table")["gridPos"].update(w=12),
    "unknown variable": lambda board: _first(board, "stat")["targets"][0].update(expr="sum(up{job=~'$jobs'})"),
    "unused variable": lambda board: board["templating"]["list"].append({"name": "pod", "type": "custom"}),
    "variable without open end": lambda board: board["templating"]["list"][1].update(allValue=None),
    "link to nowhere": _replacing("/d/agent-otel-payload?", "/d/agent-otel-workflows?"),
    "link with an unknown variable": _replacing("&var-tool=", "&var-tol="),
    "link without the time": _replacing("&${__url_time_range}", ""),
    "link to a label that is not there": _replacing("__field.labels.gen_ai_tool_name", "__field.labels.tool"),
    "average in place of the range": lambda board: _first(board, "stat")["targets"][0].update(instant=False),
    "thresholds out of order": lambda board: _first(board, "bargauge")["fieldConfig"]["defaults"]["thresholds"][
        "steps"
    ].reverse(),
    "old model": lambda board: board.update(schemaVersion=41),
    "no alerts": lambda board: board["annotations"]["list"][0].update(expr="ALERTS"),
    "a mark for each minute of an alert": lambda board: board["annotations"]["list"][0].update(
        expr='ALERTS{component="agent_otel",alertstate="firing"}'
    ),
    "one column": lambda board: _first(board, "stat").update(repeatDirection="h"),
    "nothing in the colour of the worst": lambda board: _first(board, "stat")["fieldConfig"]["defaults"].update(
        mappings=[]
    ),
    "0 of nothing": lambda board: _first(board, "stat")["targets"][0].update(expr="sum(up) or vector(0)"),
    "a cap of now": lambda board: _first(board, "stat")["targets"][0].update(
        expr='max(agent_otel_workflow_payload_cap_bytes{job=~"$job"})'
    ),
    "a red triangle": lambda board: board["templating"]["list"][-1].update(hide=0),
    "not whether anything reports": lambda board: board["panels"].pop(1),
}


@each_row("mistake", _MISTAKES)
def test_our_rules_find(mistake: str) -> None:
    board = copy.deepcopy(_BOARDS["agent-otel-tools"])
    _MISTAKES[mistake](board)

    assert [] != list(lint.problems(board, _BOARDS))


def _known() -> dict[str, set[str]]:
    """Every series that there can be, with its labels."""
    alert = {"alertname", "alertstate", "component", "severity", "gen_ai_tool_name", *_OF_A_RUN, *_SCRAPED}
    known = {"ALERTS": alert, "ALERTS_FOR_STATE": alert}
    for name in (alerting.DAPR_WORKFLOW, alerting.DAPR_ACTIVITY):
        known[f"{name}_bucket"] = {*alerting.DAPR_LABELS, "le"}
    for metric in semconv.METRICS.values():
        labels = {*metric.prometheus_labels, *_OF_A_RUN, *_SCRAPED}
        if metric.kind == HISTOGRAM:
            known |= {f"{metric.exposed_name}{part}": labels for part in ("_count", "_sum")}
            known[f"{metric.exposed_name}_bucket"] = {*labels, "le"}
        else:
            known[metric.exposed_name] = labels
    return known


_KNOWN = _known()


def _parts(node: Any) -> Iterator[Any]:
    yield node
    inner = [getattr(node, name, None) for name in ("expr", "lhs", "rhs", "param", "vector_selector")]
    for one in [*inner, *(getattr(node, "args", None) or [])]:
        if one is not None and not isinstance(one, (int, float, str)):
            yield from _parts(one)


def _labels(node: Any) -> set[str]:
    """Labels that the series below a part of an expression can have."""
    found = set(_MADE)
    for part in _parts(node):
        if isinstance(part, promql_parser.VectorSelector):
            found |= _KNOWN.get(part.name or "", _SCRAPED)
    return found


def _complaints(expression: str) -> Iterator[str]:
    for part in _parts(promql_parser.parse(expression)):
        if isinstance(part, promql_parser.VectorSelector):
            yield from _selected(part)
        modifier = getattr(part, "modifier", None)
        if isinstance(part, promql_parser.AggregateExpr) and modifier is not None:
            if modifier.type != promql_parser.AggModifierType.By:
                yield "aggregates without"
            yield from (f"groups by {name}" for name in modifier.labels if name not in _labels(part.expr))
        if isinstance(part, promql_parser.BinaryExpr) and modifier is not None and modifier.matching is not None:
            both = _labels(part.lhs) | _labels(part.rhs)
            yield from (f"matches on {name}" for name in modifier.matching.labels if name not in both)


def _selected(selector: promql_parser.VectorSelector) -> Iterator[str]:
    matchers = selector.matchers.matchers
    if selector.name is None:
        (name,) = (matcher.value for matcher in matchers if matcher.name == "__name__")
        if not any(re.fullmatch(name, series) for series in _KNOWN):
            yield f"no series is called {name}"
        labels = {"__name__", *_SCRAPED}
    elif selector.name not in _KNOWN:
        yield f"{selector.name} is not in the catalogue"
        return
    else:
        labels = _KNOWN[selector.name] - {"le"}
    yield from (f"{selector.name} has no label {one.name}" for one in matchers if one.name not in labels)


@each_row("query", boards.QUERIES, ids=lambda query: query.name)
def test_the_catalogue_has_what_a_query_asks_for(query: Query) -> None:
    assert [] == list(_complaints(query.expression))


@_boards
def test_each_window_can_be_chosen(uid: str) -> None:
    (window,) = (one for one in _BOARDS[uid]["templating"]["list"] if one["name"] == "window")
    offered = ["2m", "5m", "15m", "1h"]

    assert ["$__auto_interval_window", *offered] == [option["value"] for option in window["options"]]
    assert ("interval", ",".join(offered), 2) == (window["type"], window["query"], window["refresh"])
    assert (True, 30, "2m") == (window["auto"], window["auto_count"], window["auto_min"])
    assert {"selected": True, "text": "auto", "value": "$__auto_interval_window"} == window["current"]
    for query in boards.queries(uid):
        for value in offered:
            chosen = boards.substituted(query.text, {"window": boards.substituted(value)})
            assert [] == list(_complaints(chosen))


@_boards
def test_the_catalogue_has_what_the_variables_ask_for(uid: str) -> None:
    asked = [
        re.fullmatch(r"label_values\((\w+)(?:\{job=~\"\$job\"\})?, (\w+)\)", one["query"]["query"])
        for one in _BOARDS[uid]["templating"]["list"]
        if one["type"] == "query"
    ]

    assert [] != asked
    assert [] == [found and found[0] for found in asked if found is None or found[2] not in _KNOWN[found[1]]]


@each_row(
    ("expression", "complaint"),
    [
        ("agent_otel_tool_results_total", "agent_otel_tool_results_total is not in the catalogue"),
        ('agent_otel_tool_repeats_total{tool=~".*"}', "agent_otel_tool_repeats_total has no label tool"),
        ("sum by (layer) (agent_otel_tool_repeats_total)", "groups by layer"),
        ("sum without (job) (agent_otel_tool_repeats_total)", "aggregates without"),
        (
            'agent_otel_tool_args_size_bytes_bucket{le="1024"}',
            "agent_otel_tool_args_size_bytes_bucket has no label le",
        ),
        ("agent_otel_build_info * on (pod) agent_otel_build_info", "matches on pod"),
    ],
)
def test_a_wrong_query_is_found(expression: str, complaint: str) -> None:
    assert [complaint] == list(_complaints(expression))


@pytest.mark.parametrize("expression", ["sum(rate(agent_otel_tool_repeats_total))", "sum by (job (up)"])
def test_what_is_no_promql_is_found(expression: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        promql_parser.parse(expression)


def test_every_metric_is_on_a_dashboard() -> None:
    """Every metric is on a dashboard, but for some that the review and Explore show."""
    text = " ".join(query.text for query in boards.QUERIES)

    assert _IN_NO_PANEL == {metric.name for metric in semconv.METRICS.values() if metric.exposed_name not in text}


@_boards
def test_a_config_map_holds_the_dashboard(uid: str) -> None:
    path = boards.FOLDER / "kubernetes" / f"{uid}.yaml"
    manifest = yaml.safe_load(path.read_text())

    assert ("v1", "ConfigMap", uid) == (manifest["apiVersion"], manifest["kind"], manifest["metadata"]["name"])
    assert {"grafana_dashboard": "1"} == manifest["metadata"]["labels"]
    assert {f"{uid}.json": (boards.FOLDER / f"{uid}.json").read_text()} == manifest["data"]
    assert path.stat().st_size < _MOST_BYTES


@each_row("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_leads_to_a_dashboard(alert: Alert) -> None:
    parts = urlsplit(re.sub(r"\{\{.*?\}\}", "", alert.dashboard))
    board = _BOARDS[parts.path.removeprefix("/d/")]
    variables = {f"var-{one['name']}" for one in board["templating"]["list"]}

    assert set(parse_qs(parts.query, keep_blank_values=True)) <= variables


def test_an_exemplar_opens_its_trace() -> None:
    """The data source is told the label that exemplars have, and graphs that lead to traces ask for exemplars."""
    spot = SpanContext(trace_id=1, span_id=1, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    sources = yaml.safe_load((boards.FOLDER / "provisioning" / "datasources.yaml").read_text())["datasources"]
    (destination,) = sources[0]["jsonData"]["exemplarTraceIdDestinations"]
    asking = {
        panel["title"]
        for board in _BOARDS.values()
        for panel in boards.panels(board)
        if any(target.get("exemplar") for target in panel["targets"])
    }

    assert destination["name"] in Exemplar(spot).labels
    assert destination["datasourceUid"] in {source["uid"] for source in sources}
    assert {
        "Distribution of result sizes",
        "Duration by tool, p95",
        "Payload size, p95, and the caps",
        "Result size",
        "Result size by tool, p95",
        "Worst payload by workflow",
    } == asking


def test_provisioning_and_compose_agree() -> None:
    provider = yaml.safe_load((boards.FOLDER / "provisioning" / "agent-otel.yaml").read_text())
    sources = yaml.safe_load((boards.FOLDER / "provisioning" / "datasources.yaml").read_text())
    compose = yaml.safe_load((boards.FOLDER / "compose.yaml").read_text())
    mounted = dict(volume.split(":")[:2] for volume in compose["services"]["grafana"]["volumes"])
    (folder,) = (one["options"]["path"] for one in provider["providers"])

    assert {path.name for path in boards.PATHS} == {target.rpartition("/")[2] for target in mounted.values()} & {
        path.name for path in boards.PATHS
    }
    assert all(mounted[f"./{path.name}"] == f"{folder}/{path.name}" for path in boards.PATHS)
    assert ["prometheus", "tempo"] == [one["uid"] for one in sources["datasources"]]
    assert set(compose["services"]) >= {"grafana", "prometheus", "tempo"}
