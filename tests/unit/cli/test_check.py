"""``agent-otel alerts check`` against real servers that scrape, or are pushed to by, a real agent."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from agent_otel.alerts import ALERTS, RECORDINGS
from tests.rows import each_row
from tests.system.engines import asking, prometheus, starting, victoria_metrics
from tests.unit.cli import watched
from tests.unit.cli.other import Other
from tests.unit.cli.running import Ran, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.environments import Environment
    from tests.system.engines.prometheus import Prometheus
    from tests.system.engines.victoria_metrics import Programs, VictoriaMetrics

RULES = len(ALERTS) + len(RECORDINGS)
VERSIONS = {"bookworm": "2.42.0", prometheus.NEWEST: "3."}
# One series of the left side matches two of the right, which shows only when it is evaluated.
AMBIGUOUS = """
vector(1) * on () (label_replace(vector(1), "x", "1", "", "") or label_replace(vector(1), "x", "2", "", ""))
"""
# One result of 20,000 bytes; metrics are pushed as the program ends.
PUSHING = """
import agent_otel

@agent_otel.tool
def search(query):
    return "x" * 20_000

search("all")
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the rule file that an export writes."""
    folder = tmp_path_factory.mktemp("rules")
    assert 0 == run("alerts", "export", folder).code
    return folder / "agent-otel.rules.yaml"


@pytest.fixture(scope="module", params=prometheus.SUITES)
def suite(request: pytest.FixtureRequest) -> str:
    """Run on an old Prometheus and on a new one."""
    return str(request.param)


@pytest.fixture(scope="module")
def engine(environment: Callable[[str], Environment], suite: str, exported: Path) -> Iterator[Prometheus]:
    """Return a Prometheus with the rules and a scraped agent."""
    programs = starting.obtained(prometheus.programs, suite)
    with watched.server(environment("bare"), programs, (exported,)) as server:
        yield server


@pytest.fixture(scope="module")
def programs() -> Programs:
    """Return VictoriaMetrics and vmalert."""
    return starting.obtained(victoria_metrics.programs)


def _check(engine: Prometheus, *arguments: str) -> Ran:
    return run("alerts", "check", "--url", engine.url, *arguments)


def _report(engine: Prometheus, *arguments: str) -> dict[str, Any]:
    ran = _check(engine, "--json", *arguments)
    report: dict[str, Any] = json.loads(ran.out)
    assert report["ok"] is (ran.code == 0)
    assert "" == ran.err
    return report


def _states(report: dict[str, Any], kind: str = "rules") -> dict[str, str]:
    return {row["name"]: row["state"] for row in report[kind]}


def test_all_is_well(engine: Prometheus, suite: str) -> None:
    report = _report(engine)
    assert [] == report["problems"]
    assert "Prometheus" == report["server"]
    assert report["version"].startswith(VERSIONS[suite])
    # The group of payloads has an interval of its own.
    found = {(rule["state"], rule["detail"]) for rule in report["rules"]}
    assert RULES == len(report["rules"])
    assert {("ok", "")} <= found <= {("ok", ""), ("ok", "not evaluated yet")}


def test_metrics_that_a_tool_call_makes(engine: Prometheus) -> None:
    report = _report(engine)
    present = {name for name, state in _states(report, "metrics").items() if state == "present"}
    assert {
        "agent_otel_build_info",
        "agent_otel_process_start_time_seconds",
        "agent_otel_tool_args_size_bytes",
        "agent_otel_tool_invalid_arguments_total",
        "agent_otel_tool_repeats_total",
        "agent_otel_tool_result_delivered_bytes_total",
        "agent_otel_tool_result_largest_bytes",
        "agent_otel_tool_result_shape_changes_total",
        "agent_otel_tool_result_size_bytes",
        "agent_otel_tool_schema_changes_total",
        "agent_otel_tool_results_grown_total",
        "agent_otel_tool_results_large_total",
        "agent_otel_tool_results_over_budget_total",
        "agent_otel_tool_results_cleared_total",
        "agent_otel_tool_results_suspected_total",
        "agent_otel_tool_results_truncated_total",
        "gen_ai_execute_tool_duration_seconds",
    } == present
    (cap,) = (row for row in report["metrics"] if row["name"] == "agent_otel_workflow_payload_cap_bytes")
    assert {"state": "missing", "group": "payloads", "detail": "needs a durable runtime"} == {
        key: cap[key] for key in ("state", "group", "detail")
    }


def test_an_alert_that_fires(engine: Prometheus) -> None:
    (alert,) = _report(engine)["alerts"]
    labels = {"component": "agent_otel", "gen_ai_tool_name": "search", "job": "agents", "severity": "warning"}
    assert ("AgentToolResultGrown", "firing", labels) == (alert["name"], alert["state"], alert["labels"])
    assert "Tool search in job agents: results are much larger than before" == alert["summary"]


def test_what_a_person_reads(engine: Prometheus) -> None:
    ran = _check(engine)
    assert (0, "") == (ran.code, ran.err)
    assert f"at {engine.url}" in ran.out
    assert re.search(r"^(\d+) of \1 rules are loaded as exported\.$", ran.out, re.MULTILINE)
    (row,) = (row for row in ran.rows if row and row[0] == "firing")
    assert ["firing", "AgentToolResultGrown"] == row[:2]


def test_rules_that_were_loaded_with_other_thresholds(engine: Prometheus) -> None:
    report = _report(engine, "--set", "grown_min=4", "--set", "errors_for=1h")
    changed = {row["name"]: row["detail"] for row in report["rules"] if row["state"] != "ok"}
    assert {
        "AgentToolResultGrown": "its expression",
        "AgentToolErrorRateHigh": "for: 600 s instead of 3600 s",
    } == changed
    assert [] == report["problems"]


def test_a_path_that_it_is_not_below(engine: Prometheus) -> None:
    ran = run("alerts", "check", "--url", f"{engine.url}/prometheus")
    expected = f"Error: {engine.url}/prometheus is not Prometheus's address: it has no /api/v1/query (404)\n"
    assert (1, "", expected) == ran


def test_no_rules_and_dropped_labels(environment: Callable[[str], Environment], suite: str) -> None:
    programs = starting.obtained(prometheus.programs, suite)
    drop = "{regex: gen_ai_tool_name, action: labeldrop}"
    with watched.server(environment("bare"), programs, relabel=drop) as engine:
        report = _report(engine)
        said = _check(engine)
    first = "gen_ai_execute_tool_duration_seconds has no gen_ai_tool_name"
    problems = [
        f"none of the {RULES} rules is loaded",
        f"15 metrics lack labels ({first}): does a relabelling drop them?",
    ]
    assert problems == report["problems"]
    assert {"missing"} == set(_states(report).values())
    assert [f"Problem: {problem}" for problem in problems] == said.out.splitlines()[-2:]
    assert (1, "") == (said.code, said.err)


def test_histograms_without_classic_buckets(environment: Callable[[str], Environment], exported: Path) -> None:
    """A Prometheus that converts them leaves the rules over buckets without a series."""
    programs = starting.obtained(prometheus.programs, prometheus.NEWEST)
    native = {"more": "convert_classic_histograms_to_nhcb: true", "enable-feature": "native-histograms"}
    with watched.server(environment("bare"), programs, (exported,), **native) as engine:
        report = _report(engine)
        said = _check(engine)
    found = {row["name"] for row in report["metrics"] if row["state"] == "no buckets"}
    names = [
        "gen_ai_execute_tool_duration_seconds",
        "agent_otel_tool_result_size_bytes",
        "agent_otel_tool_args_size_bytes",
    ]
    assert {*names} == found
    (problem,) = report["problems"]
    assert problem.startswith("3 histograms have no classic buckets, such as gen_ai_execute_tool_duration_seconds; ")
    assert f"Problem: {problem}" == said.out.splitlines()[-1]
    assert (1, "") == (said.code, said.err)


def test_rules_that_are_partly_there_changed_and_failing(suite: str, exported: Path, tmp_path: Path) -> None:
    """One is taken out, one has another severity, one is laid out anew, one fails as it is evaluated."""
    loaded = yaml.safe_load(exported.read_text())
    rules = {rule.get("alert") or rule["record"]: rule for group in loaded["groups"] for rule in group["rules"]}
    rules["AgentLimitHit"]["labels"]["severity"] = "critical"
    rules["AgentHistoryLost"]["expr"] = " ".join(rules["AgentHistoryLost"]["expr"].split()) + " # as it was"
    rules["AgentToolErrorRateHigh"]["expr"] = AMBIGUOUS
    for group in loaded["groups"]:
        group["rules"] = [rule for rule in group["rules"] if rule.get("alert") != "AgentTelemetryGone"]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(loaded))
    programs = starting.obtained(prometheus.programs, suite)
    config = f"global: {{evaluation_interval: 1s}}\nrule_files: ['{tmp_path}/rules.yaml']\n"
    with prometheus.server(programs, config) as engine:
        watched.wait_for(lambda: all(rule["health"] != "unknown" for rule in engine.rules()))
        report = _report(engine)
    found = {row["name"]: (row["state"], row["detail"]) for row in report["rules"] if row["state"] != "ok"}
    state, detail = found.pop("AgentToolErrorRateHigh")
    assert "failing" == state
    assert "many-to-many matching not allowed" in detail
    expected = {
        "AgentLimitHit": ("changed", "severity: critical instead of warning"),
        "AgentTelemetryGone": ("missing", ""),
    }
    assert expected == found
    assert [
        f"1 of the {RULES} rules are not loaded",
        "1 rules fail when they are evaluated",
        "there is no metric of agent_otel: is the agent scraped, and has it called a tool?",
    ] == report["problems"]


def test_metrics_that_are_older_than_asked_for(suite: str, tmp_path: Path) -> None:
    programs = starting.obtained(prometheus.programs, suite)
    then = time.time() - 3 * 24 * 3600
    text = f'# TYPE agent_otel_build_info gauge\nagent_otel_build_info{{version="0.1.0",python="3"}} 1 {then}\n# EOF\n'
    (tmp_path / "metrics").write_text(text)
    programs.backfill(tmp_path / "metrics", tmp_path / "data")
    with prometheus.server(programs, data=tmp_path / "data") as engine:
        states = [
            _states(_report(engine, "--since", since), "metrics")["agent_otel_build_info"] for since in ("1d", "1w")
        ]
    assert ["missing", "present"] == states


def test_nobody_listens() -> None:
    with contextlib.closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        ran = run("alerts", "check", "--url", url)
    assert (1, "", f"Error: Prometheus at {url} does not answer: [Errno 111] Connection refused\n") == ran


@each_row(
    ("status", "body", "expected"),
    [
        (200, "<!doctype html>", "/api/v1/query answers with text/html, not with JSON"),
        (
            401,
            "{}",
            "wants to know who asks (401: Unauthorized): set PROMETHEUS_TOKEN, or PROMETHEUS_USER and PROM",
        ),
        (503, "starting", "answers /api/v1/query with 503: Service Unavailable"),
        (302, "", "redirects /api/v1/query to /login: set PROMETHEUS_TOKEN"),
    ],
)
def test_another_server(status: int, body: str, expected: str) -> None:
    with Other(status, {"Content-Type": "text/html", "Location": "/login"}, body) as other:
        ran = run("alerts", "check", "--url", other.url)
    assert (1, "") == (ran.code, ran.out)
    assert expected in ran.err


def test_other_json() -> None:
    with Other(200, {"Content-Type": "application/json"}, '{"ok": true}') as other:
        ran = run("alerts", "check", "--url", other.url)
    assert 1 == ran.code
    assert "/api/v1/query answers with other JSON than Prometheus's" in ran.err


@each_row(
    ("arguments", "expected"),
    [
        (("--since", "soon"), "--since: 'soon' is no duration such as 15m or 1h30m"),
        (("--header", "X-Scope-OrgID=1"), "--header: 'X-Scope-OrgID=1' is not name:value"),
        (("--header", "X-Größe: 1"), "--header: 'X-Größe' cannot be sent"),
        (("--set", "large=1"), "unknown threshold 'large'"),
    ],
)
def test_bad_options(arguments: tuple[str, str], expected: str) -> None:
    ran = run("alerts", "check", "--url", "http://127.0.0.1:1", *arguments)
    assert (1, "", f"Error: {expected}\n") == ran


def test_metrics_in_it_and_rules_in_vmalert(
    environment: Callable[[str], Environment], programs: Programs, exported: Path
) -> None:
    with victoria_metrics.server(programs) as engine:
        _push(environment("bare"), engine)
        alone = _report(engine)
        with _vmalert(programs, engine, exported) as rules_url:
            report = _report(engine, "--rules-url", rules_url)
    hint = "VictoriaMetrics has none of its own, give vmalert's address as --rules-url"
    assert [f"none of the {RULES} rules is loaded: {hint}"] == alone["problems"]
    assert ("VictoriaMetrics", []) == (report["server"], report["problems"])
    assert {"ok"} == set(_states(report).values())
    assert "present" == _states(report, "metrics")["agent_otel_tool_result_size_bytes"]


def test_names_that_kept_their_dots(environment: Callable[[str], Environment], programs: Programs) -> None:
    with victoria_metrics.server(programs, **{"opentelemetry.usePrometheusNaming": "false"}) as engine:
        _push(environment("bare"), engine)
        report = _report(engine)
    assert "metrics came by OTLP with dots in their names, such as agent_otel." in report["problems"][1]
    assert "-opentelemetry.usePrometheusNaming of VictoriaMetrics" in report["problems"][1]


def _push(bare: Environment, engine: VictoriaMetrics) -> None:
    env = {
        "AGENT_OTEL": "1",
        "OTEL_METRICS_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": engine.otlp_metrics,
        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf",
    }
    bare.run(PUSHING, env=env, check=True)
    engine.flush()


@contextlib.contextmanager
def _vmalert(programs: Programs, engine: VictoriaMetrics, rules: Path) -> Iterator[str]:
    url = f"http://127.0.0.1:{starting.free_port()}"
    options = {
        "rule": str(rules),
        "datasource.url": engine.url,
        "remoteWrite.url": engine.url,
        "notifier.blackhole": "true",
        "evaluationInterval": "1s",
        "httpListenAddr": url.removeprefix("http://"),
    }
    command: list[str | Path] = [programs.vmalert, *(f"-{name}={value}" for name, value in options.items())]

    def answers() -> bool:
        return asking.is_healthy(f"{url}/health")

    with starting.folder() as folder, starting.process(*command, answers=answers, env={}, cwd=folder):
        yield url
