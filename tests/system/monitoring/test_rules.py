"""The alerts: what they say is in the catalogue, is proved by promtool, has a runbook, and finds data."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import time
import typing
from dataclasses import fields, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import promql_parser
import pytest
import yaml

from agent_otel import alerts, semconv
from agent_otel.alerts import ALERTS, RECORDINGS, Alert, Options, Recording, Thresholds
from agent_otel.alerts import rules as rule_data
from agent_otel.cli import files
from agent_otel.remedies.claim_check import envelope
from agent_otel.semconv.types import HISTOGRAM
from agent_otel.settings import Settings
from agent_otel.settings.kinds import variable_of
from tests import rule_files
from tests.rows import each_row
from tests.system.engines import alertmanager, asking, prometheus, starting, victoria_metrics
from tests.system.monitoring import stores
from tests.system.monitoring.simulated import END

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tests.system.engines.prometheus import Prometheus

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "alerts"
RULES = FOLDER / "agent-otel.rules.yaml"
FOR_OLD_RULERS = FOLDER / "agent-otel.rules.no-keep-firing.yaml"
RUNBOOKS = sorted((FOLDER / "runbooks").glob("*.md"))
TESTS = sorted((FOLDER / "tests").glob("*.yaml"))
SAMPLE = FOLDER / "alertmanager.yaml"

_NAMES = list(dict.fromkeys(alert.name for alert in ALERTS))
_EVERY: tuple[Alert | Recording, ...] = (*RECORDINGS, *ALERTS)
_suites = pytest.mark.parametrize("suite", prometheus.SUITES)
_alerts = each_row("alert", ALERTS, ids=[f"{alert.name} {alert.severity} {alert.cause}" for alert in ALERTS])
_runbooks = each_row("path", RUNBOOKS, ids=lambda path: path.stem)

# What other programs emit: daprd, and Prometheus itself.
_FOREIGN = {
    rule_data.DAPR_WORKFLOW: rule_data.DAPR_LABELS[:3],
    rule_data.DAPR_ACTIVITY: rule_data.DAPR_LABELS,
    "up": (),
}


#: On every series that a run moves.
_RUN = ("gen_ai_agent_name", "gen_ai_workflow_name")


def _labels() -> dict[str, set[str]]:
    """Series -> the labels that a query may name."""
    known: dict[str, set[str]] = {}
    for metric in semconv.METRICS.values():
        parts = ("_bucket", "_sum", "_count") if metric.kind == HISTOGRAM else ("",)
        known |= {metric.exposed_name + part: {"job", *_RUN, *metric.prometheus_labels} for part in parts}
    for name, labels in _FOREIGN.items():
        known |= {name + part: {"job", *labels} for part in ("", "_bucket")}
    return known


_KNOWN = _labels()


def _visit(expression: str, kind: type) -> list[Any]:
    found: list[Any] = []
    promql_parser.walk(promql_parser.parse(expression), lambda node: found.append(node) if type(node) is kind else None)
    return found


def _selectors(expression: str) -> list[Any]:
    return _visit(expression, promql_parser.VectorSelector)


def _grouped(expression: str) -> list[list[str]]:
    """The labels of every ``by``; there is no ``without``."""
    modifiers = [node.modifier for node in _visit(expression, promql_parser.AggregateExpr) if node.modifier is not None]
    assert all(modifier.type == promql_parser.AggModifierType.By for modifier in modifiers), expression
    return [modifier.labels for modifier in modifiers]


def _recorded(name: str) -> Recording | None:
    return next((rule for rule in RECORDINGS if rule.record == name), None)


def _read(expression: str, recordings: Iterable[Recording]) -> list[Recording]:
    return [each for each in recordings if re.search(rf"{re.escape(each.record)}(?!\w)", expression)]


def _emitted(name: str) -> set[str]:
    """The labels of a series: of the catalogue, or of what a recording rule groups by."""
    rule = _recorded(name)
    if rule is None:
        assert name in _KNOWN, f"nobody emits {name}"
        return _KNOWN[name]
    groups = _grouped(rule.expr) or [sorted(_emitted(source.record)) for source in _read(rule.expr, RECORDINGS)]
    return set(groups[0]) - {"le"}


def _check_names(expression: str) -> None:
    selectors = _selectors(expression)
    assert selectors
    available: set[str] = set()
    for selector in selectors:
        emitted = _emitted(selector.name)
        available |= emitted
        for matcher in selector.matchers.matchers:
            assert matcher.name in emitted, f"{selector.name} has no label {matcher.name}"
            assert matcher.name not in ("le", "job"), expression
    for labels in _grouped(expression):
        assert set(labels) <= available | {"le"}, expression
    for node in _visit(expression, promql_parser.BinaryExpr):
        if node.modifier is not None and node.modifier.matching is not None:
            assert set(node.modifier.matching.labels) <= available | {"le"}, expression


def test_the_files_are_what_the_rules_render() -> None:
    rendered = rule_files.files(files.runbooks())

    assert rendered == {path: (ROOT / path).read_text() for path in rendered}


@each_row("rule", _EVERY, ids=lambda rule: rule.record if isinstance(rule, Recording) else rule.name)
def test_metrics_and_labels_are_those_of_the_catalogue(rule: Alert | Recording) -> None:
    _check_names(rule.expr)


@_alerts
def test_texts_name_labels_that_the_alert_has(alert: Alert) -> None:
    groups = [set(labels) - {"le"} for labels in _grouped(alert.expr)]
    groups += [_emitted(selector.name) for selector in _selectors(alert.expr) if _recorded(selector.name)]
    texts = (alert.summary, alert.description, alert.traces, alert.dashboard)
    used = set(re.findall(r"\$labels\.(\w+)", " ".join(texts)))

    assert used <= set.union(*groups)
    assert "$value" in alert.description or alert.cause == "money"
    assert "Since {{ with printf" in alert.description
    for query in re.findall(r'with printf "(.*?[^\\])" \$labels', alert.description):
        promql_parser.parse(query.replace('\\"', '"').replace("%q", '"x"'))


@_alerts
def test_links_lead_to_variables_of_a_dashboard(alert: Alert) -> None:
    link = urlsplit(alert.dashboard)
    board = json.loads((ROOT / "dashboards" / f"{link.path.removeprefix('/d/')}.json").read_text())
    variables = {f"var-{one['name']}" for one in board["templating"]["list"]}

    assert link.path == f"/d/{board['uid']}"
    assert set() < set(parse_qs(link.query)) <= variables


def test_severities() -> None:
    """The policy at the head of the README: a page for proven harm, a ticket for today, nothing else."""
    severities: dict[str, set[str]] = {}
    for alert in ALERTS:
        severities.setdefault(alert.name, set()).add(alert.severity)
    pages = {name for name, found in severities.items() if "critical" in found}
    assert {
        "AgentToolResultOverBudget",  # a known layer refuses or cuts
        "AgentAnswersIncomplete",  # users got wrong answers
        "AgentHistoryLost",
        "AgentRequestRejected",  # runs end
        "AgentWorkflowPayloadNearCap",  # in the next turn
        "AgentWorkflowPayloadOverCap",
        "AgentWorkflowStuckRetries",
        "AgentDaprPayloadNearStall",
        "AgentClaimCheckFailing",
    } == pages
    assert {"critical", "warning"} == set.union(*severities.values())
    assert len(severities) == 22
    policy = (FOLDER / "README.md").read_text().split("## Severities")[1].split("\n## ")[0]
    assert set(re.findall(r"Agent\w+", policy)) == pages


def test_a_group_is_one_that_mimir_takes_and_reads_what_it_has_recorded() -> None:
    """Mimir's `ruler.max-rules-per-rule-group` is 20 by default; groups are evaluated at times of their own."""
    groups = yaml.safe_load((FOLDER / "mimir" / "agent-otel.rules.yaml").read_text())["groups"]
    for group in groups:
        recorded: set[str] = set()
        for rule in group["rules"]:
            assert set(re.findall(r"\bjob\w*:[\w:]+", rule["expr"])) <= recorded
            recorded |= {rule["record"]} if "record" in rule else set()

    assert all(len(group["rules"]) <= 20 for group in groups)
    assert len({group["name"] for group in groups}) == len(groups)
    assert {rule.record for rule in RECORDINGS} == {
        rule["record"] for group in groups for rule in group["rules"] if "record" in rule
    }


def test_results_of_the_claim_store_are_those_it_reports() -> None:
    # As configured, and no failure of the store: a result above the maximum, or of an owner whom nobody names.
    not_stored = {"too_large", "skipped"}
    counted = (re.findall(r"\w+", rule_data.EVENTS[name].matchers[0])[1:] for name in ("failed", "unresolved"))
    known = {"ok", *not_stored, *itertools.chain(*counted)}
    assert known == set(typing.get_args(envelope.Result))


@_suites
def test_promtool_finds_nothing(tmp_path: Path, suite: str) -> None:
    programs = starting.obtained(prometheus.programs, suite)
    resource = yaml.safe_load((FOLDER / "kubernetes" / "agent-otel.prometheusrule.yaml").read_text())
    mimir = yaml.safe_load((FOLDER / "mimir" / "agent-otel.rules.yaml").read_text())
    assert "agent_otel" == mimir.pop("namespace")
    assert yaml.safe_load(RULES.read_text()) == resource["spec"] == mimir

    elsewhere = Options(selector='{namespace="prod"}', by=("namespace",), labels={"team": "agents"})
    window = Thresholds.parse({"first_cut_window": "45m"})
    (tmp_path / "elsewhere.yaml").write_text(alerts.render(window, elsewhere))

    said = programs.check_rules(RULES, FOR_OLD_RULERS, tmp_path / "elsewhere.yaml")
    # Calls are counted over 15 minutes for another alert, too: with a window of its own, one series more.
    expected = [len(_EVERY), len(_EVERY), len(_EVERY) + 1]
    assert expected == [int(count) for count in re.findall(r"SUCCESS: (\d+) rules found", said)]


@_suites
@each_row("file", TESTS, ids=lambda path: path.stem)
def test_promtool_proves_the_rules(suite: str, file: Path, tmp_path: Path) -> None:
    """Evaluate for each case the shipped rules that it reads: promtool evaluates all in each minute otherwise."""
    programs = starting.obtained(prometheus.programs, suite)
    head, *cases = file.read_text().split("\n  - name: ")
    assert head.count(f"../{RULES.name}") == 1 < len(cases) == len(yaml.safe_load(file.read_text())["tests"])

    parts = []
    for number, case in enumerate(cases):
        rules, part = tmp_path / f"{number}.rules.yaml", tmp_path / f"{number}.yaml"
        rules.write_text(yaml.safe_dump({"groups": _read_by(case)}))
        part.write_text(head.replace(f"../{RULES.name}", rules.name) + "\n  - name: " + case)
        parts.append(part)
    assert len(parts) == programs.test_rules(*parts).count("SUCCESS")


def test_promtool_proves_the_rules_as_they_are_shipped() -> None:
    programs = starting.obtained(prometheus.programs, prometheus.NEWEST)

    assert "SUCCESS" in programs.test_rules(FOLDER / "tests" / "payload.yaml")


def _read_by(case: str) -> list[dict[str, Any]]:
    """Return the groups of the shipped rules with those alone whose names stand in a case, and the series they read."""
    groups: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["groups"]
    text = case
    chosen: set[str] = set()
    while more := {
        name
        for name, rule in ((_shipped_name(rule), rule) for group in groups for rule in group["rules"])
        if name not in chosen and re.search(rf"(?<![\w:]){re.escape(name)}(?![\w:])", text)
    }:
        chosen |= more
        text = " ".join(rule["expr"] for group in groups for rule in group["rules"] if _shipped_name(rule) in chosen)
    kept = [{**group, "rules": [rule for rule in group["rules"] if _shipped_name(rule) in chosen]} for group in groups]
    return [group for group in kept if group["rules"]]


def _shipped_name(rule: dict[str, Any]) -> str:
    name: str = rule.get("alert") or rule["record"]
    return name


def test_vmalert_reads_the_rules() -> None:
    starting.obtained(victoria_metrics.programs).check_rules(RULES, FOR_OLD_RULERS)


@_alerts
def test_every_alert_is_proved_to_fire_and_not_to_fire_and_to_resolve(alert: Alert) -> None:
    """A test of promtool has samples of the alert at one time, and none before and after, each asked for on its own."""
    labels = f'severity="{alert.severity}"', f'cause="{alert.cause}"' if alert.cause else ""
    answers = [
        [any(all(one in sample["labels"] for one in labels) for sample in case["exp_samples"]) for case in cases]
        for file in TESTS
        for test in yaml.safe_load(file.read_text())["tests"]
        if (cases := [case for case in test["promql_expr_test"] if f'alertname="{alert.name}"' in case["expr"]])
    ]

    assert any(True in each and False in each[: each.index(True)] and not each[-1] for each in answers)


# --- runbooks ----------------------------------------------------------------------------------------------------


def test_every_alert_has_a_runbook_and_no_other() -> None:
    assert sorted(_NAMES) == [path.stem for path in RUNBOOKS]


def _blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL)


@_runbooks
def test_a_runbook_says_what_it_has_to(path: Path) -> None:
    text = path.read_text()
    alert, *others = (alert for alert in ALERTS if alert.name == path.stem)
    severities = ", ".join(dict.fromkeys(each.severity for each in (alert, *others)))
    command = _blocks(path, "console")[-1]
    words = shlex.split(command)
    matchers = [word.partition("=")[0] for word in words if re.fullmatch(r"[a-z_]+=.*", word)]

    assert ["Meaning", "Impact", "Diagnosis", "Remedy", "Silence"] == re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert text.startswith(f"# {alert.name}\n\nSeverity: {severities}: ")
    assert f"\n\nFirst: {alert.description.partition('. ')[0]}" in text
    assert ["$", "amtool", "silence", "add", f"alertname={alert.name}"] == words[:5]
    assert {*matchers} - {"alertname"} <= set(re.findall(r"\w+", alert.expr)) | _emitted_by(alert)


def _emitted_by(alert: Alert) -> set[str]:
    return set[str]().union(*(_emitted(selector.name) for selector in _selectors(alert.expr)))


@_runbooks
def test_queries_of_a_runbook_are_over_the_catalogue(path: Path) -> None:
    queries, traces = _blocks(path, "promql"), _blocks(path, "traceql")
    assert queries
    for query in queries:
        selectors = _selectors(query)
        for selector in selectors:
            assert {matcher.name for matcher in selector.matchers.matchers} <= _emitted(selector.name)
        emitted = set[str]().union(*(_emitted(selector.name) for selector in selectors))
        for labels in _grouped(query):
            assert set(labels) <= emitted | {"le"}, query

    (trace,) = traces
    attributes = set(re.findall(r"span\.([a-z_.]+)", trace))
    assert attributes
    assert attributes <= set(semconv.ATTRIBUTES)


@_runbooks
def test_settings_and_thresholds_of_a_runbook_exist(path: Path) -> None:
    text = path.read_text()
    known = {variable_of(item) for item in fields(Settings)} | {"AGENT_OTEL"}
    chosen = dict(re.findall(r"--set (\w+)=([\w.]+)", text))

    assert set(re.findall(r"AGENT_OTEL(?:_[A-Z]+)*", text)) <= known
    Thresholds.parse(chosen)
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert (path.parent / link).exists()


# --- thresholds and options --------------------------------------------------------------------------------------

_OTHER = {"duration": "7m", "dollars": 10, "ratio": 0.75, "factor": 9, "count": 7, "bytes": "3MiB"}


@each_row("item", fields(Thresholds), ids=lambda item: item.name)
def test_every_threshold_changes_the_rules_that_say_so(item: Any) -> None:
    other = _OTHER[item.metadata["kind"].unit]
    changed = Thresholds.parse({item.name: other})
    differing = [_key(rule) for rule, new in zip(_ends(Thresholds()), _ends(changed), strict=True) if rule != new]

    assert set(alerts.uses()[item.name]) == set(differing) != set()
    for rule in _rules(changed, Options()):
        promql_parser.parse(rule.expr)


def _ends(thresholds: Thresholds) -> tuple[Alert | Recording, ...]:
    """The alerts, with the series that they read, and the series that no alert reads."""
    every = alerts.alerts(thresholds, Options())
    read = [recording for alert in every for recording in alert.reads]
    return *every, *(rule for rule in alerts.recordings(thresholds, Options()) if rule not in read)


def _rules(thresholds: Thresholds, options: Options) -> tuple[Alert | Recording, ...]:
    return *alerts.recordings(thresholds, options), *alerts.alerts(thresholds, options)


def _key(rule: Alert | Recording) -> str:
    return rule.record if isinstance(rule, Recording) else rule.name


def test_thresholds_are_read_from_text_and_from_numbers() -> None:
    chosen = Thresholds.parse({"limit_hit_window": "30m", "payload_near_ratio": 0.9, "grown_min_bytes": "32KiB"})

    assert replace(Thresholds(), limit_hit_window="30m", payload_near_ratio=0.9, grown_min_bytes=32_768) == chosen
    assert chosen == Thresholds.parse(
        {"limit_hit_window": " 30m", "payload_near_ratio": "0.90", "grown_min_bytes": 32_768}
    )
    assert Thresholds() == Thresholds.parse({})


@each_row(
    ("name", "value", "said"),
    [
        ("limit_hits_window", "30m", "unknown threshold 'limit_hits_window'; is it 'limit_hit_window'?"),
        ("x", 1, "unknown threshold 'x'"),
        ("limit_hit_window", "30", "limit_hit_window: '30' is not a duration above 0"),
        ("limit_hit_window", 30, "limit_hit_window: 30 is not a duration above 0"),
        ("limit_hit_window", "5m1h", "is not a duration"),
        ("limit_hit_window", "0m", "is not a duration above 0"),
        ("limit_hit_window", "", "is not a duration"),
        ("limit_hit_window", "1h\n", None),
        ("errors_for", "", "errors_for: '' is not a duration as Prometheus writes it, such as 10m, or 0s"),
        ("errors_for", "0s", None),
        ("errors_ratio", 1.5, "errors_ratio: 1.5 is not a ratio above 0 and not above 1"),
        ("errors_ratio", 0, "is not a ratio"),
        ("errors_ratio", "nan", "is not a ratio"),
        ("errors_ratio", "20%", "is not a ratio"),
        ("errors_ratio", None, "errors_ratio: None is neither text nor a number"),
        ("errors_ratio", [0.5], "is neither text nor a number"),
        ("errors_min_calls", True, "is neither text nor a number"),
        ("errors_min_calls", 0, "is not a whole number from 1 up"),
        ("errors_min_calls", "2.5", "is not a whole number from 1 up"),
        ("errors_min_calls", "²", "is not a whole number from 1 up"),
        ("grown_factor", 1, "is not a factor above 1, such as 4"),
        ("grown_min_bytes", "32 kilobytes", "is not a size such as 16000, 32KiB or 2MiB"),
        ("costly_dollars", 3, "is not one of 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50"),
        ("dapr_ratio", 0.8, "is not one of 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99"),
    ],
)
def test_bad_thresholds_are_refused_in_words(name: str, value: object, said: str | None) -> None:
    if said is None:
        Thresholds.parse({name: value})
        return
    with pytest.raises(ValueError, match=re.escape(said)):
        Thresholds.parse({name: value})


def _alerts_of(text: str) -> Iterator[dict[str, Any]]:
    return (rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"] if "alert" in rule)


def test_options_are_in_every_rule() -> None:
    options = Options(
        keep_firing_for=False,
        runbook_url="https://runbooks.example/{alert}",
        dashboard_url="https://grafana.example/",
        labels={"team": "agents"},
        selector='{cluster="eu", namespace=~"prod|pre,prod"}',
        by=("cluster", "namespace"),
    )
    for rule in _rules(Thresholds(), options):
        for selector in _selectors(rule.expr):
            if ":" not in selector.name:
                matchers = [(one.name, one.value) for one in selector.matchers.matchers]
                assert [("cluster", "eu"), ("namespace", "prod|pre,prod")] == matchers[-2:]
        for labels in _grouped(rule.expr):
            assert ["job", "cluster", "namespace"] == list(labels)[:3]
            assert len(set(labels)) == len(labels)
    for rendered in _alerts_of(alerts.render(options=options)):
        assert "keep_firing_for" not in rendered
        assert "agents" == rendered["labels"]["team"]
        assert f"https://runbooks.example/{rendered['alert']}" == rendered["annotations"]["runbook_url"]
        assert rendered["annotations"]["dashboard"].startswith("https://grafana.example/d/agent-otel-")


def test_each_alert_takes_another_severity() -> None:
    chosen = {alert.name: f"level-{number}" for number, alert in enumerate(ALERTS)}
    options = Options(severities=chosen)

    assert chosen == {alert.name: alert.severity for alert in alerts.alerts(Thresholds(), options)}
    assert chosen == {rule["alert"]: rule["labels"]["severity"] for rule in _alerts_of(alerts.render(options=options))}
    with pytest.raises(ValueError, match=re.escape("unknown alert 'AgentLimitsHit'; is it 'AgentLimitHit'?")):
        alerts.render(options=Options(severities={"AgentLimitsHit": "info"}))


def test_the_resource_of_the_operator_has_the_metadata_it_is_given() -> None:
    options = Options(name="agents", namespace="monitoring", metadata_labels={"release": "prometheus"})
    resource = yaml.safe_load(alerts.render(options=options, form="operator"))

    assert {"name": "agents", "namespace": "monitoring", "labels": {"release": "prometheus"}} == resource["metadata"]
    assert ("monitoring.coreos.com/v1", "PrometheusRule") == (resource["apiVersion"], resource["kind"])


@each_row(
    ("options", "said"),
    [
        ({"selector": "namespace=prod"}, "selector"),
        ({"selector": 'namespace="prod"} or {a="b"'}, "selector"),
        ({"by": ("a-b",)}, "'a-b' is not a name of a label"),
        ({"labels": {"": "x"}}, "'' is not a name of a label"),
        ({"labels": {"severity": "x"}}, "'severity' is set by the rules themselves; use --severity AlertName=critical"),
        ({"severities": {"AgentLimitHit": ""}}, "severities: '' of AgentLimitHit is not a value such as critical"),
        ({"runbook_url": "https://example/{name}"}, "runbook_url"),
        ({"runbook_url": "https://example/{"}, "runbook_url"),
        ({"runbook_url": "https://example/{}"}, "runbook_url"),
    ],
)
def test_bad_options_are_refused_in_words(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        Options(**options)
    with pytest.raises(ValueError, match="'json' is not one of prometheus, operator, mimir"):
        alerts.render(form="json")


# --- Alertmanager ------------------------------------------------------------------------------------------------


@_suites
def test_alertmanager_routes_by_severity(suite: str) -> None:
    programs = starting.obtained(alertmanager.programs, suite)
    receivers = {"critical": "pager", "warning": "tickets", "info": "nobody"}

    assert "SUCCESS" in programs.check_config(SAMPLE)
    for alert in ALERTS:
        labels = {"alertname": alert.name, "severity": alert.severity, "component": "agent_otel"}
        assert [receivers[alert.severity]] == programs.route(SAMPLE, **labels)
    assert ["default"] == programs.route(SAMPLE, alertname="KubePodCrashLooping", severity="critical")


_SUPPORT = {"job": "agents", "workflow_runtime": "temporal", "gen_ai_workflow_name": "support"}
_SEARCH = {"job": "agents", "gen_ai_tool_name": "search"}


_CLIENT = {"job": "agents", "gen_ai_tool_name": "search", "gen_ai_agent_name": "support", "component": "agent_otel"}


@each_row(
    ("source", "target", "labels", "other"),
    [
        ("AgentWorkflowStuckRetries", "AgentWorkflowPayloadOverCap", _SUPPORT, {"gen_ai_workflow_name": "billing"}),
        ("AgentWorkflowPayloadOverCap", "AgentWorkflowPayloadNearCap", _SUPPORT, {"workflow_runtime": "dapr"}),
        ("AgentWorkflowPayloadNearCap", "AgentStateCostly", _SUPPORT, {"job": "others"}),
        ("AgentAnswersIncomplete", "AgentToolFirstTruncation", _SEARCH, {"gen_ai_tool_name": "fetch"}),
        ("AgentAnswersIncomplete", "AgentToolResultOverBudget", _SEARCH, {"gen_ai_tool_name": "fetch"}),
        ("AgentToolResultGrown", "AgentToolFirstTruncation", _SEARCH, {"gen_ai_tool_name": "fetch"}),
        ("AgentToolResultOverBudget", "AgentContextNearLimit", {"job": "agents"}, {"job": "others"}),
        # The server of a tool has another job, and knows no agent.
        (
            "AgentToolErrorRateHigh",
            "AgentToolErrorRateHigh",
            _CLIENT,
            {"job": "server", "gen_ai_agent_name": "", "gen_ai_tool_name": "fetch"},
        ),
    ],
)
def test_alertmanager_mutes_what_follows_from_something_worse(
    source: str, target: str, labels: dict[str, str], other: dict[str, str]
) -> None:
    same = {**labels, "job": "server", "gen_ai_agent_name": ""} if source == target else labels
    sent = [
        {"alertname": source, **labels},
        {"alertname": target, **same},
        {"alertname": target, **labels, **other},
    ]
    sent = [{name: value for name, value in each.items() if value} for each in sent]
    ends = (datetime.now(timezone.utc) + timedelta(hours=1)).isoformat()
    programs = starting.obtained(alertmanager.programs, prometheus.NEWEST)
    with alertmanager.server(programs, SAMPLE.read_text()) as engine:
        body = json.dumps([{"labels": each, "endsAt": ends} for each in sent])
        asking.post(f"{engine.url}/api/v2/alerts", body, "application/json")
        for _ in range(100):
            states = {tuple(sorted(one["labels"].items())): one["status"] for one in engine.alerts()}
            muted = [states.get(tuple(sorted(each.items())), {}).get("state") == "suppressed" for each in sent]
            if muted[1]:
                break
            time.sleep(0.1)

    assert [False, True, False] == muted


# --- on data -----------------------------------------------------------------------------------------------------

_servers = pytest.mark.parametrize("name", stores.NAMES)
#: Nothing before the half hour that there is; what is recorded is put where it is used.
_SHORT = Thresholds.parse(
    {
        item.name: "10m"
        for item in fields(Thresholds)
        if item.name.endswith("_window") and item.name != "grown_baseline_window"
    }
)


def _inlined(expression: str, recordings: tuple[Recording, ...]) -> str:
    for rule in reversed(recordings):
        expression = re.sub(rf"{re.escape(rule.record)}(?![\[\w])", f"({rule.expr})", expression)
        expression = expression.replace(f"{rule.record}[", f"({rule.expr})[")
    return expression


def _is_instant(rule: Alert | Recording, recordings: tuple[Recording, ...]) -> bool:
    """False for a rule that needs a history of recorded series."""
    is_own = re.search(r"_over_time\(\w+:", rule.expr) is None
    return is_own and all(_is_instant(each, recordings) for each in _read(rule.expr, recordings))


@_servers
def test_selectors_of_alerts_find_what_the_package_emits(store: Callable[[str], Prometheus], name: str) -> None:
    engine = store(name)
    selectors = {selector.prettify() for rule in _EVERY for selector in _selectors(rule.expr)}
    plain = {re.sub(r" offset .*", "", selector).strip() for selector in selectors if ":" not in selector}

    assert [] == [one for one in sorted(plain) if not engine.query(f"last_over_time({one}[30m])", END)]


@_servers
def test_recording_rules_return_data(store: Callable[[str], Prometheus], name: str) -> None:
    engine = store(name)
    recordings = alerts.recordings(_SHORT, Options())

    instant = [rule for rule in recordings if _is_instant(rule, recordings)]
    assert [] == [rule.record for rule in instant if not engine.query(_inlined(rule.expr, recordings), END)]


@_servers
def test_alerts_on_what_the_agents_did(store: Callable[[str], Prometheus], name: str) -> None:
    """A workflow dies at its cap, another comes near it, tools are cut and fail."""
    engine = store(name)
    recordings = alerts.recordings(_SHORT, Options())
    instant = [alert for alert in alerts.alerts(_SHORT, Options()) if _is_instant(alert, recordings)]
    found: dict[str, list[Any]] = {alert.name: [] for alert in instant}
    for alert in instant:
        found[alert.name] += engine.query(_inlined(alert.expr, recordings), END)
    dying = {
        alert: {one["metric"]["gen_ai_workflow_name"] for one in found[alert]}
        for alert in ("AgentWorkflowPayloadOverCap", "AgentWorkflowStuckRetries", "AgentWorkflowPayloadNearCap")
    }

    assert {
        "AgentWorkflowPayloadOverCap": {"read_attachments"},
        "AgentWorkflowStuckRetries": {"read_attachments"},
        "AgentWorkflowPayloadNearCap": {"compare_sources", "read_attachments"},
    } == dying
    assert {"read_attachments"} == {one["metric"]["workflow_name"] for one in found["AgentDaprPayloadNearStall"]}
    assert {
        "AgentAnswersIncomplete",
        "AgentHistoryLost",
        "AgentLimitHit",
        "AgentToolCallDenied",
        "AgentToolErrorRateHigh",
    } <= {alert for alert, series in found.items() if series}


@_servers
def test_every_expression_is_understood_as_it_is_shipped(store: Callable[[str], Prometheus], name: str) -> None:
    engine = store(name)
    for rule in _EVERY:
        engine.query(rule.expr, END)


#: All is well in the half hour, which has no hour before it.
_NOTHING = {"up == 0", "count by (job, version, python) (agent_otel_build_info offset 1h)"}


def _renamed(rules: Iterable[Alert | Recording], others: Iterable[Alert | Recording]) -> dict[str, str]:
    """Return the names of the series that rules read, and the names of the same series with other thresholds."""
    found: dict[str, str] = {}
    for rule, other in zip(rules, others, strict=True):
        if isinstance(rule, Recording) and isinstance(other, Recording):
            found[rule.record] = other.record
        if isinstance(rule, Alert) and isinstance(other, Alert):
            found |= _renamed(rule.reads, other.reads)
    return found


@_servers
def test_queries_of_runbooks_return_data(store: Callable[[str], Prometheus], name: str) -> None:
    engine = store(name)
    recordings = alerts.recordings(_SHORT, Options())
    shipped = _renamed(_ends(Thresholds()), _ends(_SHORT))
    empty = set()
    for query in (query.strip() for path in RUNBOOKS for query in _blocks(path, "promql")):
        short = query
        for record, other in shipped.items():
            short = short.replace(record, other)
        if "_before" not in query and not engine.query(_inlined(short, recordings), END):
            empty.add(query)

    assert empty == _NOTHING
