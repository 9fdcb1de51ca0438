"""Every engine starts by itself, and the real SDK gets an answer from it, in a child process of its environment."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel import semconv
from tests import debian
from tests.debian import UnavailableError
from tests.servers.webhook import Webhook
from tests.system.engines import alertmanager, postgres, prometheus, restate, starting, temporal, victoria_metrics

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_HELLO = Path(__file__).parent / "hello"

_NEW_YEAR = 1767225600
_OPENMETRICS = f"""\
# TYPE hello counter
hello_total{{to="World"}} 1.0 {_NEW_YEAR}
hello_total{{to="World"}} 3.0 {_NEW_YEAR + 60}
# EOF
"""
_RULES = """\
groups:
  - name: hello
    interval: 1s
    rules:
      - alert: Hello
        expr: vector(1) == 1
        labels: {severity: info}
        annotations: {summary: "Hello, World!"}
"""
_RULE_TESTS = """\
rule_files: [rules.yml]
tests:
  - alert_rule_test:
      - alertname: Hello
        eval_time: 1m
        exp_alerts:
          - exp_labels: {severity: info}
            exp_annotations: {summary: "Hello, World!"}
"""
_PROMETHEUS = """\
rule_files: ["{rules}"]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["{target}"]}}]}}]}}
"""
_ALERTMANAGER = """\
route: {{receiver: here, group_wait: 0s, group_interval: 1s}}
receivers: [{{name: here, webhook_configs: [{{url: "{url}"}}]}}]
"""
_suites = pytest.mark.parametrize("suite", prometheus.SUITES)


def _run(environment: Environment, program: str, *arguments: str) -> Any:
    """Return what a program prints last."""
    done = environment.run(_HELLO / program, *arguments, timeout=110, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("name", "cap"), [("temporal", 2097152), ("temporal-1.20", None)])
def test_temporal(environment: Callable[[str], Environment], name: str, cap: int | None) -> None:
    with starting.or_skip(temporal.server()) as engine:
        said = _run(environment(name), "with_temporal.py", engine.address, "2097152")

    assert ["Hello, World!", cap, "Blob data size exceeds limit."] == said


def test_temporal_with_a_lower_cap(environment: Callable[[str], Environment]) -> None:
    with starting.or_skip(temporal.server(**{"limit.blobSize.error": 4096})) as engine:
        said = _run(environment("temporal"), "with_temporal.py", engine.address, "4096")

    assert ["Hello, World!", 4096, "Blob data size exceeds limit."] == said


def test_restate(environment: Callable[[str], Environment]) -> None:
    with starting.or_skip(restate.server()) as engine:
        said = _run(environment("restate"), "with_restate.py", engine.ingress, engine.admin)

    assert "Hello, World!" == said


def test_postgres(environment: Callable[[str], Environment]) -> None:
    with starting.or_skip(postgres.server()) as engine:
        said = _run(environment("langgraph-savers"), "with_postgres.py", engine.dsn)

    assert [["World", "Hello, World!"], 3] == said


@pytest.mark.parametrize("name", ["dapr-1.18", "dapr-1.19"])
def test_dapr_sidecar(environment: Callable[[str], Environment], name: str) -> None:
    said = _run(environment(name), "with_dapr.py")

    assert {
        "hello": [*["Hello, World!"] * 3, "Hello at last, World!", "Hello, World!"],
        "hello, not replaying": 1,
        "result": 3145728,
        "large result": "larger than max (5242932 vs. 4194304)",
        "input": 1048576,
        "input, replaying": [False, True],
        "large input": "RUNNING",
        "large input, replaying": [False, False, False],
        "refusals": ["trying to send message larger than max (3145785 vs. 2097152)"] * 3,
        "large history": "STALLED",
    } == said


@pytest.mark.parametrize(
    "name",
    ["aws-durable", "celery", "dbos", "dbos-2", "durabletask", "durabletask-1.5", "hatchet", "inngest", "prefect"],
)
def test_runtimes_that_need_no_server(environment: Callable[[str], Environment], name: str) -> None:
    runtime = re.sub(r"-[0-9.]+$", "", name).replace("-", "_")

    assert "Hello, World!" == _run(environment(name), "in_process.py", runtime)


@_suites
def test_prometheus_answers_from_what_was_backfilled(tmp_path: Path, suite: str) -> None:
    programs = starting.obtained(prometheus.programs, suite)
    (tmp_path / "metrics").write_text(_OPENMETRICS)
    programs.backfill(tmp_path / "metrics", tmp_path / "data")

    with prometheus.server(programs, data=tmp_path / "data") as engine:
        at = engine.query("hello_total", _NEW_YEAR + 60)
        over = engine.query_range("hello_total", _NEW_YEAR, _NEW_YEAR + 60, 60)
        with pytest.raises(AssertionError, match=r"400: .*parse error"):
            engine.query("hello_total{")

    labels = {"__name__": "hello_total", "to": "World"}
    assert [{"metric": labels, "value": [_NEW_YEAR + 60, "3"]}] == at
    assert [{"metric": labels, "values": [[_NEW_YEAR, "1"], [_NEW_YEAR + 60, "3"]]}] == over


@_suites
def test_promtool_tells_good_rules_from_bad_ones(tmp_path: Path, suite: str) -> None:
    programs = starting.obtained(prometheus.programs, suite)
    rules, tests = tmp_path / "rules.yml", tmp_path / "tests.yml"
    rules.write_text(_RULES)
    tests.write_text(_RULE_TESTS)

    assert "1 rules found" in programs.check_rules(rules)
    assert "SUCCESS" in programs.test_rules(tests)

    rules.write_text(_RULES + "      - {alert: Hello, expr: vector(1) == 1, labels: {severity: info}}\n")
    with pytest.raises(AssertionError, match="duplicate rule"):
        programs.check_rules(rules)
    tests.write_text(_RULE_TESTS.replace("World", "Moon"))
    with pytest.raises(AssertionError, match="FAILED"):
        programs.test_rules(tests)


@_suites
def test_an_alert_travels_from_prometheus_to_a_webhook(tmp_path: Path, suite: str) -> None:
    programs = starting.obtained(prometheus.programs, suite)
    routing = starting.obtained(alertmanager.programs, suite)
    (tmp_path / "rules.yml").write_text(_RULES)

    with Webhook() as webhook, alertmanager.server(routing, _ALERTMANAGER.format(url=webhook.receiver)) as engine:
        config = _PROMETHEUS.format(rules=tmp_path / "rules.yml", target=engine.target)
        with prometheus.server(programs, config) as source:
            (alert,) = webhook.wait_for(bool)
            (rule,) = source.rules()
            (firing,) = source.alerts()
        (known,) = engine.alerts()

    assert ({"alertname": "Hello", "severity": "info"}, {"summary": "Hello, World!"}) == (
        alert["labels"],
        alert["annotations"],
    )
    assert ("ok", "firing", alert["labels"]) == (rule["health"], firing["state"], known["labels"])


@_suites
def test_amtool_routes_alerts_and_refuses_a_bad_configuration(tmp_path: Path, suite: str) -> None:
    programs = starting.obtained(alertmanager.programs, suite)
    config = tmp_path / "alertmanager.yml"
    config.write_text(_ALERTMANAGER.format(url="http://127.0.0.1:9/"))

    assert "SUCCESS" in programs.check_config(config)
    assert ["here"] == programs.route(config, severity="critical")

    config.write_text("route: {receiver: nobody}\n")
    with pytest.raises(AssertionError, match="nobody"):
        programs.check_config(config)


def test_victoria_metrics_answers_from_what_was_imported() -> None:
    programs = starting.obtained(victoria_metrics.programs)
    with victoria_metrics.server(programs) as engine:
        engine.import_openmetrics(_OPENMETRICS)
        at = engine.query("hello_total", _NEW_YEAR + 60)

    assert [{"metric": {"__name__": "hello_total", "to": "World"}, "value": [_NEW_YEAR + 60, "3"]}] == at


def test_victoria_metrics_takes_what_is_pushed(environment: Callable[[str], Environment]) -> None:
    programs = starting.obtained(victoria_metrics.programs)
    with victoria_metrics.server(programs) as engine:
        environment("bare").run(
            _HELLO / "with_victoria_metrics.py",
            env={
                "AGENT_OTEL": "1",
                "OTEL_METRICS_EXPORTER": "otlp",
                "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf",
                "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": engine.otlp_metrics,
            },
            check=True,
        )
        engine.flush()
        (produced,) = engine.query(f"{semconv.RESULT_SIZE.exposed_name}_sum", time.time() + 5)

    assert ("hello", "13") == (produced["metric"]["gen_ai_tool_name"], produced["value"][1])


def test_vmalert_tells_good_rules_from_bad_ones(tmp_path: Path) -> None:
    programs = starting.obtained(victoria_metrics.programs)
    rules = tmp_path / "rules.yml"
    rules.write_text(_RULES)
    programs.check_rules(rules)

    rules.write_text(_RULES.replace("vector(1)", "vector("))
    with pytest.raises(AssertionError, match="vector"):
        programs.check_rules(rules)


def test_a_download_that_fails_or_is_interrupted_is_not_taken_for_done(tmp_path: Path) -> None:
    half = tmp_path / debian.NEWEST / "new-abc" / "prometheus"
    half.mkdir(parents=True)
    starting.obtained(debian.archive)

    with pytest.raises(UnavailableError, match="no-such-package"):
        debian.unpacked(tmp_path, debian.NEWEST, "no-such-package")

    assert ["lock"] == [path.name for path in (tmp_path / debian.NEWEST).iterdir()]
