"""``list`` and ``export`` of dashboards and alerts: what is written, and what is left alone."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
import yaml

from agent_otel import semconv
from agent_otel.cli import files
from tests.rows import each_row
from tests.system.engines import prometheus, starting
from tests.unit.cli.running import run

ROOT = Path(__file__).resolve().parent.parent.parent.parent
DASHBOARDS = [
    "agent-otel-agents.json",
    "agent-otel-executions.json",
    "agent-otel-health.json",
    "agent-otel-payload.json",
    "agent-otel-tools.json",
]


def _names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _states(out: str) -> dict[str, str]:
    rows = [line.split() for line in out.splitlines()[1:] if line.strip()]
    return {Path(row[-1]).name: row[0] for row in rows}


def test_dashboards_are_listed() -> None:
    ran = run("dashboards", "list")
    assert (0, "") == (ran.code, ran.err)
    assert ["uid", "title", "panels", "file"] == ran.rows[0]
    assert [name.removesuffix(".json") for name in DASHBOARDS] == [row[0] for row in ran.rows[1:]]


def test_files_to_import(tmp_path: Path) -> None:
    ran = run("dashboards", "export", tmp_path / "new" / "folder")
    assert (0, "") == (ran.code, ran.err)
    assert dict.fromkeys(DASHBOARDS, "written") == _states(ran.out)
    assert DASHBOARDS == _names(tmp_path / "new" / "folder")
    for name in DASHBOARDS:
        assert (ROOT / "dashboards" / name).read_bytes() == (tmp_path / "new" / "folder" / name).read_bytes()


def test_data_sources_of_traces_are_shown_on_request(tmp_path: Path) -> None:
    for form, names in (("json", DASHBOARDS), ("configmap", ["agent-otel-tools.yaml"])):
        folder = tmp_path / form
        assert 0 == run("dashboards", "export", folder, "--format", form, "--traces").code
        for name in names:
            text = (folder / name).read_text()
            board = json.loads(text if form == "json" else yaml.safe_load(text)["data"]["agent-otel-tools.json"])
            variables = {one["name"]: one.get("hide", 0) for one in board["templating"]["list"]}
            assert {0} == set(variables.values())
            assert ("traces" in variables) == (name != "agent-otel-health.json")


RUNBOOKS = "https://wiki.example/{alert}.md?from=tile"


def _links(node: object) -> list[tuple[str, str]]:
    """Title and address of each link at and below a node."""
    if isinstance(node, list):
        return [link for item in node for link in _links(item)]
    if not isinstance(node, dict):
        return []
    own = [(node["title"], node["url"])] if node.get("title") and node.get("url") else []
    return own + [link for item in node.values() for link in _links(item)]


@each_row("form", ["json", "configmap", "provisioning"])
def test_tiles_link_to_the_runbooks(tmp_path: Path, form: str) -> None:
    assert 0 == run("dashboards", "export", tmp_path, "--format", form, "--runbook-url", RUNBOOKS).code
    texts = [path.read_text() for path in tmp_path.rglob("agent-otel-*") if path.is_file()]
    if form == "configmap":
        texts = [text for one in texts for text in yaml.safe_load(one)["data"].values()]
    links = [link for text in texts for link in _links(json.loads(text))]
    runbooks = {title.partition(": ")[2]: url for title, url in links if title.startswith("Runbook: ")}
    names = {path.stem for path in (ROOT / "alerts" / "runbooks").glob("*.md")}
    assert {name: f"https://wiki.example/{name}.md?from=tile" for name in names} == runbooks
    assert ["/alerting/list?search=Agent"] * 4 == [url for title, url in links if title == "Alerts of agent_otel"]


def test_a_pattern_of_runbooks_has_no_other_braces(tmp_path: Path) -> None:
    ran = run("dashboards", "export", tmp_path / "new", "--runbook-url", "https://wiki.example/{name}")
    assert (1, "") == (ran.code, ran.out)
    assert "runbook_url: 'https://wiki.example/{name}' may hold {alert} and no other braces" in ran.err
    assert not (tmp_path / "new").exists()


def test_config_maps(tmp_path: Path) -> None:
    assert 0 == run("dashboards", "export", tmp_path, "--format", "configmap").code
    maps = [yaml.safe_load(path.read_text()) for path in sorted(tmp_path.iterdir())]
    assert {("ConfigMap", "1")} == {(one["kind"], one["metadata"]["labels"]["grafana_dashboard"]) for one in maps}
    held = {name: json.loads(text)["uid"] for one in maps for name, text in one["data"].items()}
    assert {name: name.removesuffix(".json") for name in DASHBOARDS} == held


def test_provisioning(tmp_path: Path) -> None:
    """What a Grafana mounts at /etc/grafana/provisioning and at /var/lib/grafana/dashboards."""
    assert 0 == run("dashboards", "export", tmp_path, "--format", "provisioning").code
    provider = "provisioning/dashboards/agent-otel.yaml"
    assert [*(f"dashboards/agent-otel/{name}" for name in DASHBOARDS), provider] == _names(tmp_path)
    (said,) = yaml.safe_load((tmp_path / provider).read_text())["providers"]
    assert ("file", "/var/lib/grafana/dashboards/agent-otel") == (said["type"], said["options"]["path"])


def test_again(tmp_path: Path) -> None:
    run("dashboards", "export", tmp_path)
    before = {name: (tmp_path / name).stat().st_mtime_ns for name in DASHBOARDS}
    ran = run("dashboards", "export", tmp_path)
    assert dict.fromkeys(DASHBOARDS, "unchanged") == _states(ran.out)
    assert before == {name: (tmp_path / name).stat().st_mtime_ns for name in DASHBOARDS}


def test_an_older_one_of_ours_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "agent-otel-tools.json").write_text('{"uid": "agent-otel-tools", "title": "As it was"}')
    assert "written" == _states(run("dashboards", "export", tmp_path).out)["agent-otel-tools.json"]


def test_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "theirs.json").write_text("{}")
    (tmp_path / "broken.yaml").write_bytes(b"\xff\xfe")
    (tmp_path / "folder").mkdir()
    assert 0 == run("dashboards", "export", tmp_path).code
    assert ["broken.yaml", *DASHBOARDS, "theirs.json"] == sorted(_names(tmp_path), key=lambda name: (
        name.replace("theirs", "z").replace("broken", "0")))  # fmt: skip
    assert ("{}", b"\xff\xfe") == ((tmp_path / "theirs.json").read_text(), (tmp_path / "broken.yaml").read_bytes())


@each_row("theirs", [b'{"uid": "mine"}', b"[]", b"not json", b"\xff\xfe", b""])
def test_one_of_our_name_is_not_replaced_and_nothing_else_is_written(tmp_path: Path, theirs: bytes) -> None:
    (tmp_path / "agent-otel-tools.json").write_bytes(theirs)
    ran = run("dashboards", "export", tmp_path)
    assert (1, f"Error: nothing was written to {tmp_path}: 1 of the files there are not ours\n") == (
        ran.code,
        ran.err,
    )
    assert ["refused", "agent-otel-tools.json", "is not ours; --overwrite replaces it"] in ran.rows
    assert ["would be written", "agent-otel-payload.json"] in ran.rows
    assert ["agent-otel-tools.json"] == _names(tmp_path)
    assert theirs == (tmp_path / "agent-otel-tools.json").read_bytes()


def test_it_is_replaced_when_told_so(tmp_path: Path) -> None:
    (tmp_path / "agent-otel-tools.json").write_text("mine")
    assert 0 == run("dashboards", "export", tmp_path, "--overwrite").code
    assert "agent-otel-tools" == json.loads((tmp_path / "agent-otel-tools.json").read_text())["uid"]


def test_a_folder_of_our_name(tmp_path: Path) -> None:
    (tmp_path / "agent-otel-tools.json").mkdir()
    ran = run("dashboards", "export", tmp_path, "--overwrite")
    assert 1 == ran.code
    assert ["refused", "agent-otel-tools.json", "Is a directory"] in ran.rows
    assert [] == _names(tmp_path)


@each_row("head", ["groups: []\n", "# my own rules\n", ""])
def test_rules_that_are_not_ours(tmp_path: Path, head: str) -> None:
    (tmp_path / "agent-otel.rules.yaml").write_text(head)
    ran = run("alerts", "export", tmp_path)
    assert (1, head) == (ran.code, (tmp_path / "agent-otel.rules.yaml").read_text())


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        ran = run("alerts", "export", folder)
        assert ran.code in {1, 2}
        assert "Error: " in ran.err
    assert "mine" == (tmp_path / "file").read_text()


def test_a_folder_that_cannot_be_made() -> None:
    ran = run("alerts", "export", "/proc/nowhere")
    assert (1, "", "Error: /proc/nowhere cannot be written: No such file or directory\n") == ran


def test_files_have_the_mode_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    run("alerts", "export", tmp_path)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert 1 == len(modes)
    assert ["agent-otel.rules.yaml", "other"] == _names(tmp_path)


#: The beginning of a summary, as a table shows its template.
_TOOL = (
    "Tool <gen_ai_tool_name>{{ with $labels.gen_ai_agent_name }} of agent {{ . }}{{ end }}"
    "{{ with $labels.job }} in job {{ . }}{{ end }}"
)


def test_alerts_are_listed() -> None:
    ran = run("alerts", "list")
    assert (0, "") == (ran.code, ran.err)
    assert ["alert", "severity", "for", "summary"] == ran.rows[0]
    assert ["AgentToolErrorRateHigh", "warning", "10m", f"{_TOOL}: many calls fail"] in ran.rows
    assert ["job_tool_agent:agent_otel_tool_results:increase15m"] in ran.rows


def test_thresholds() -> None:
    ran = run("alerts", "thresholds")
    assert (0, "") == (ran.code, ran.err)
    expected = "A larger share alerts."
    assert ["errors_ratio", "0.2", expected, "AgentToolErrorRateHigh"] in ran.rows


@each_row(
    ("form", "name", "committed"),
    [
        ("prometheus", "agent-otel.rules.yaml", "agent-otel.rules.yaml"),
        ("operator", "agent-otel.prometheusrule.yaml", "kubernetes/agent-otel.prometheusrule.yaml"),
        ("mimir", "agent-otel.mimir.yaml", "mimir/agent-otel.rules.yaml"),
    ],
)
def test_without_options_it_is_what_is_shipped(tmp_path: Path, form: str, name: str, committed: str) -> None:
    ran = run("alerts", "export", tmp_path, "--format", form)
    assert 0 == ran.code
    assert [name] == _names(tmp_path)
    text = (tmp_path / name).read_text()
    expected = (ROOT / "alerts" / committed).read_text()
    assert expected == text


def test_severities_are_set_on_the_command_line_and_in_a_file(tmp_path: Path) -> None:
    config = tmp_path / "options.yaml"
    config.write_text("severities: {AgentLimitHit: info, AgentRepeatsItself: warning}")
    given = ("--config", config, "--severity", "AgentRepeatsItself=critical", "--runbook-url", "./{alert}")
    assert (0, "") == (run("alerts", "export", tmp_path / "rules", *given).code, "")
    groups = yaml.safe_load((tmp_path / "rules" / "agent-otel.rules.yaml").read_text())["groups"]
    severities = {
        rule["alert"]: rule["labels"]["severity"] for group in groups for rule in group["rules"] if "alert" in rule
    }
    assert ("info", "critical", "warning") == tuple(
        severities[name] for name in ("AgentLimitHit", "AgentRepeatsItself", "AgentTelemetryGone")
    )


def test_without_an_address_of_runbooks_alerts_have_their_text(tmp_path: Path) -> None:
    ran = run("alerts", "export", tmp_path)
    assert 0 == ran.code
    assert "Warning: the alerts have no links to their runbooks" in ran.err
    assert "Warning: the alerts have no links to dashboards" in ran.err
    rules = tmp_path / "agent-otel.rules.yaml"
    starting.obtained(prometheus.programs, prometheus.NEWEST).check_rules(rules)
    groups = yaml.safe_load(rules.read_text())["groups"]
    found = {rule["alert"]: rule["annotations"] for group in groups for rule in group["rules"] if "alert" in rule}
    assert not any("runbook_url" in texts for texts in found.values())
    assert found["AgentLimitHit"]["runbook"].startswith(
        "Look for calls that repeat; without any, raise the limit.\n\nCalls were skipped because their execution had "
    )
    for name, texts in found.items():
        short = texts["runbook"]
        assert 60 < len(short) < 2_000, name
        assert "\n" not in short.partition("\n\n")[0], name
        assert "\n2. " in short, name
        assert "](" not in short, name
        assert "{{" not in short, name


@pytest.mark.parametrize("suite", prometheus.SUITES)
def test_every_option_and_promtool_takes_it(tmp_path: Path, suite: str) -> None:
    ran = run(
        *("alerts", "export", tmp_path, "--set", "errors_ratio=0.3", "--set", "limit_hit_window=30m"),
        *("--runbook-url", "https://wiki.example/{alert}", "--dashboard-url", "https://grafana.example/"),
        *("--label", "team=agents", "--selector", 'namespace="prod"', "--by", "cluster", "--no-keep-firing"),
    )
    assert (0, "") == (ran.code, ran.err)
    starting.obtained(prometheus.programs, suite).check_rules(tmp_path / "agent-otel.rules.yaml")
    text = (tmp_path / "agent-otel.rules.yaml").read_text()
    every = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    rules = {rule["alert"]: rule for rule in every if "alert" in rule}
    recorded = {rule["record"]: rule["expr"] for rule in every if "record" in rule}
    assert "keep_firing_for" not in text
    assert {"agents"} == {rule["labels"]["team"] for rule in rules.values()}
    limit = rules["AgentLimitHit"]
    assert "https://wiki.example/AgentLimitHit" == limit["annotations"]["runbook_url"]
    assert limit["annotations"]["dashboard"].startswith("https://grafana.example/d/agent-otel-executions?")
    assert "job_limit:agent_otel_limits_hit:increase30m > 0" == limit["expr"]
    gained = recorded["job_limit:agent_otel_limits_hit:increase30m"]
    assert f'{semconv.LIMITS_HIT.exposed_name}{{namespace="prod"}}[30m]' in gained
    assert "by (job, cluster, limit)" in gained
    assert "0.3" in rules["AgentToolErrorRateHigh"]["expr"]


def test_a_file_of_options_and_the_command_line_before_it(tmp_path: Path) -> None:
    (tmp_path / "options.yaml").write_text(
        "thresholds: {errors_ratio: 0.4, errors_for: 1h}\nlabels: {team: a, tier: 1}\nby: cluster\nname: ours\n"
        "namespace: monitoring\nmetadata_labels: {release: prometheus}\nkeep_firing_for: false\n"
    )
    options = ("--config", tmp_path / "options.yaml", "--set", "errors_ratio=0.5", "--label", "team=b")
    assert 0 == run("alerts", "export", tmp_path / "out", "--format", "operator", *options).code
    made = yaml.safe_load((tmp_path / "out" / "agent-otel.prometheusrule.yaml").read_text())
    expected = {"name": "ours", "namespace": "monitoring", "labels": {"release": "prometheus"}}
    assert expected == made["metadata"]
    rules = [rule for group in made["spec"]["groups"] for rule in group["rules"]]
    (errors,) = (rule for rule in rules if rule.get("alert") == "AgentToolErrorRateHigh")
    assert ("b", "1", "1h") == (errors["labels"]["team"], errors["labels"]["tier"], errors["for"])
    assert "0.5" in errors["expr"]
    assert not any("keep_firing_for" in rule for rule in rules)


@each_row(
    ("options", "expected"),
    [
        (("--set", "errors_ratio"), "--set: 'errors_ratio' is not name=value"),
        (("--set", "error_ratio=1"), "unknown threshold 'error_ratio'; is it 'errors_ratio'?"),
        (("--set", "errors_ratio=7"), "errors_ratio: '7' is not a ratio above 0 and not above 1, such as 0.2"),
        (("--label", "=x"), "--label: '=x' is not name=value"),
        (
            ("--label", "severity=page"),
            "labels: 'severity' is set by the rules themselves; use --severity AlertName=critical",
        ),
        (("--severity", "critical"), "--severity: 'critical' is not name=value"),
        (("--severity", "AgentLimitsHit=info"), "unknown alert 'AgentLimitsHit'; is it 'AgentLimitHit'?"),
        (("--by", "my label"), "'my label' is not a name of a label"),
        (("--selector", "prod"), 'selector: \'prod\' is not matchers such as namespace="prod",cluster=~"eu-.*"'),
        (("--runbook-url", "{x}"), "runbook_url: '{x}' may hold {alert} and no other braces"),
    ],
)
def test_bad_options_write_nothing(tmp_path: Path, options: tuple[str, str], expected: str) -> None:
    assert (1, "", f"Error: {expected}\n") == run("alerts", "export", tmp_path / "out", *options)
    assert not (tmp_path / "out").exists()


@each_row(
    ("text", "expected"),
    [
        ("thresholds: [1]", "thresholds: [1] is no name: value"),
        ("threshold: {}", "{file}: threshold is none of thresholds, keep_firing_for, runbook_url"),
        ("just text", "{file} holds no names with values; there may be thresholds"),
        ("a: [", "{file} cannot be read: while parsing a flow node"),
        ("selector: 7", "selector: 7 is no text"),
        ("keep_firing_for: 1", "keep_firing_for: 1 is neither true nor false"),
        ("thresholds: {errors_ratio: true}", "errors_ratio: True is neither text nor a number"),
    ],
)
def test_a_bad_file_of_options(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "options.yaml"
    file.write_text(text)
    ran = run("alerts", "export", tmp_path / "out", "--config", file)
    assert (1, "") == (ran.code, ran.out)
    assert expected.format(file=file) in ran.err
    assert not (tmp_path / "out").exists()


@each_row("form", ["json", "configmap", "provisioning"])
def test_dashboards_that_were_exported_are_known_as_ours(tmp_path: Path, form: str) -> None:
    """So that the next release's replace them."""
    run("dashboards", "export", tmp_path, "--format", form)
    every = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert all(files.is_ours(path, path.read_text()) for path in every)
    assert "scripts/generate" not in "".join(path.read_text() for path in every)


@each_row("form", ["prometheus", "operator", "mimir"])
def test_rules_that_were_exported_are_known_as_ours(tmp_path: Path, form: str) -> None:
    run("alerts", "export", tmp_path, "--format", form)
    ran = run("alerts", "export", tmp_path, "--format", form, "--set", "errors_ratio=0.3")
    assert (0, ["written"]) == (ran.code, [row[0] for row in ran.rows[1:]])
