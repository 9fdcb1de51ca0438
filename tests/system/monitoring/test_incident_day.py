"""Incidents and healthy agents in one process, under a real Prometheus: each incident is told once, by its names."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.patience import Deadline
from tests.system.engines import prometheus, starting
from tests.system.monitoring import alarms

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

_DAY = """
import sys, threading
sys.path.insert(0, "{root}")
import agent_otel
from agent_otel.remedies.claim_check.envelope import Claims, Origin
from agent_otel.remedies.claim_check.stores import open_store
from agent_otel.remedies.claim_check.writer import ClaimWriter
from tests.system.monitoring.traffic import _report
from tests.system.monitoring.transcript import Transcript

def call(tool, arguments, result):
    with agent_otel.tool_call(tool, arguments) as measured:
        measured.result(result)

for number in range(10):
    with agent_otel.execution(f"healthy-{number}", agent=f"healthy-{number}", workflow="healthy"):
        for turn in range(25):
            call(f"search_{number}", {"q": turn}, f"{turn} " * 900)
            agent_otel.payload(b"x" * 30_000, runtime="temporal", activity="answer", direction="input")

with agent_otel.execution("grows", agent="billing"):
    for number in range(25):
        call("report", {"q": number}, f"{number} " * (1_000 if number < 20 else 14_000))
with agent_otel.execution("loops", agent="looper"):
    for number in range(30):
        call("poll", {"q": "same"}, "nothing yet")
with agent_otel.execution("big", agent="archivist", workflow="archive"):
    agent_otel.payload(b"x" * 50_000_000, runtime="langgraph", activity="answer", direction="state")
for number in range(4):
    with agent_otel.execution(f"cut-{number}", agent="answerer"):
        talk = Transcript("temporal", "answers", "answerer", f"cut-{number}")
        talk.use("fetch", {"url": number}, f"{number} words " * 8_000, delivered=lambda page: page[:9_000])
        talk.ask(is_final=True)
    with agent_otel.execution(f"lost-{number}", agent="forgetful"):
        talk = Transcript("temporal", "chats", "forgetful", f"lost-{number}")
        talk.use("lookup", {"id": number}, f"Customer {number} is known.")
        talk.ask()
        talk.forget()
with agent_otel.execution("long", agent="reader"):
    Transcript("temporal", "reads", "reader", "long").exceed()
with agent_otel.execution("stuck", agent="retrier", workflow="retries"):
    talk = Transcript("temporal", "retries", "retrier", "stuck")
    for _ in range(4):
        talk.refused("answer", "input", 1_000_000, "too large")
store = ClaimWriter(Claims(open_store("file://{no_folder}"), key="secret", report=_report))
for number in range(6):
    store.put("lost", Origin("day", "day", "day", "download", f"call-{number}"))
with agent_otel.execution("near", agent="refunder", workflow="refund"):
    for turn in range(1, 6):
        agent_otel.payload(b"x" * 300_000 * turn, runtime="temporal", activity="answer", direction="input")
print("ready", flush=True)
threading.Event().wait()
"""
#: Alert, severity, and what it names.
_INCIDENTS = {
    ("AgentToolResultGrown", "warning", "report", "billing"),
    ("AgentRepeatsItself", "warning", "poll", "looper"),
    ("AgentStateCostly", "warning", "archive", "archivist"),
    ("AgentWorkflowPayloadNearCap", "critical", "refund", "refunder"),
    ("AgentWorkflowStuckRetries", "critical", "retries", "retrier"),
    ("AgentAnswersIncomplete", "critical", "fetch", "answerer"),
    ("AgentHistoryLost", "critical", "", "forgetful"),
    ("AgentRequestRejected", "critical", "", "reader"),
    ("AgentClaimCheckFailing", "critical", "", ""),
}
_SECONDS = 60


def _named(alert: dict[str, Any]) -> tuple[str, str, str, str]:
    labels = alert["labels"]
    who = labels.get("gen_ai_tool_name") or labels.get("gen_ai_workflow_name", "")
    return labels["alertname"], labels["severity"], who, labels.get("gen_ai_agent_name", "")


@pytest.mark.timeout(300)
def test_each_incident_is_told_once_and_healthy_agents_are_not(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    """The growth to the cap is told two turns before the refusal: five of seven turns of 300 KB to 2 MiB are over."""
    programs, port = starting.obtained(prometheus.programs, prometheus.NEWEST), starting.free_port()
    rules, no_folder = tmp_path / "rules.yaml", tmp_path / "file"
    no_folder.write_text("a file, where a folder should be")
    day = _DAY.replace("{root}", str(alarms.ROOT)).replace("{no_folder}", str(no_folder))
    rules.write_text(alarms.rules(claim_check_for="1s"))
    config = (
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        f'rule_files: ["{rules}"]\n'
        f'scrape_configs: [{{job_name: day, static_configs: [{{targets: ["127.0.0.1:{port}"]}}]}}]\n'
    )
    bare, env = environment("bare"), {"AGENT_OTEL": "1", "AGENT_OTEL_PROMETHEUS_PORT": str(port)}
    with bare.start(str(bare.python), "-c", day, env=env) as agents, prometheus.server(programs, config) as engine:
        assert agents.stdout
        assert "ready\n" == agents.stdout.readline(), agents.communicate()
        deadline = Deadline(_SECONDS)
        while _INCIDENTS - {_named(alert) for alert in engine.alerts()}:
            assert not deadline.has_passed(), sorted(map(_named, engine.alerts()))
            time.sleep(0.2)
        time.sleep(5)  # what a healthy agent would set off
        told = [_named(alert) for alert in engine.alerts()]
        texts = {alert["labels"]["alertname"]: alert["annotations"] for alert in engine.alerts()}

    # A page mutes the warnings of its name, and a refusal that the payload was refused, in Alertmanager.
    pages = {name for name, severity, _, _ in told if severity == "critical"}
    told = [each for each in told if each[1] == "critical" or each[0] not in pages]
    assert sorted(_INCIDENTS) == sorted(each for each in told if each[0] != "AgentWorkflowPayloadOverCap")
    for name, text in texts.items():
        assert len(text["summary"] + text["description"] + text["traces"]) < 500, name
    assert "The largest result in 15m has" in texts["AgentToolResultGrown"]["description"]
    assert "29 calls in 15m" in texts["AgentRepeatsItself"]["description"]
    assert "47.68MiB" in texts["AgentStateCostly"]["description"]
    assert "room for 1 turns" in texts["AgentWorkflowPayloadNearCap"]["description"]
