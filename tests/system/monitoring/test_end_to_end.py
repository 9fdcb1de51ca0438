"""An agent drives its payload to the cap, and whoever is on call is told so before it dies, and when it is over.

The durable example is really instrumented and scraped, or pushes; the shipped rules and the sample of Alertmanager's
configuration are those of the repository, with short times. All expected numbers are worked out from the run's facts.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.alerts import ALERTS
from tests.patience import Deadline
from tests.servers.webhook import Webhook
from tests.system.engines import alertmanager, prometheus, starting, victoria_metrics
from tests.system.engines.prometheus import NEWEST
from tests.system.monitoring import alarms, durable_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.system.engines.alertmanager import Alertmanager
    from tests.system.monitoring.durable_run import DurableRun


Json = dict[str, Any]

JOB = "durable-agent"
_ON_WORKFLOW = {
    "workflow_runtime": "langgraph",
    "gen_ai_agent_name": "DurableAgent",
    "gen_ai_workflow_name": "DurableAgent",
}
_PAYLOAD_PAGE = "https://grafana.example.org/d/agent-otel-payload?var-job=durable-agent&var-workflow=DurableAgent"
_WHO = "Workflow DurableAgent on langgraph of agent DurableAgent in job durable-agent"


def _page(name: str, what: str, first_step: str) -> Json:
    """A page of the workflow: its labels, and its texts without the numbers."""
    labels = {"alertname": name, "severity": "critical", "component": "agent_otel", "job": JOB, **_ON_WORKFLOW}
    links = {"dashboard": _PAYLOAD_PAGE, "runbook_url": f"https://runbooks.example.org/{name}"}
    return {"labels": {**labels, "direction": "state"}, "first": first_step, "summary": f"{_WHO}: {what}", **links}


#: The state after three turns is 1.71 MB of 2 MiB, and a turn takes 0.57 MB: there is no room for the next one.
NEAR_CAP = _page(
    "AgentWorkflowPayloadNearCap", "a payload meets its cap in the next turn", "End or compact the execution"
)
#: The state after four turns is refused, and again both times that the thread is resumed.
OVER_CAP = _page("AgentWorkflowPayloadOverCap", "payloads are over their cap", "Terminate or reset the executions")
STUCK = _page("AgentWorkflowStuckRetries", "executions are stuck", "Terminate the executions")
TOLD = (NEAR_CAP, STUCK)
#: What is told only until what mutes it is known.
MUTED = {"AgentWorkflowPayloadOverCap"}
#: A pager shows so many characters.
MOST_CHARACTERS = 500
SECONDS = 100


def as_prometheus_says(alert: Json) -> Json:
    """The alert as it is."""
    return alert


def as_vmalert_says(alert: Json) -> Json:
    """The alert with a label more: the name of the rule's group."""
    return {**alert, "labels": {**alert["labels"], "alertgroup": "agent-otel-payload"}}


@dataclass(frozen=True)
class OnCall:
    """Whoever is told, and of what.

    ``said`` is how an alert is told; ``refresh`` makes what was written last visible to who evaluates the rules.
    """

    webhook: Webhook
    engine: Alertmanager
    said: Callable[[Json], Json] = as_prometheus_says
    refresh: Callable[[], None] = lambda: None

    def follow(self, agent: DurableRun) -> None:
        """Check who is told what: while the agent lives, when it has died, and when that is over."""
        agent.wait_until_near_cap()
        self.is_told(NEAR_CAP, "pager")
        assert self.names() == alarms.names([NEAR_CAP])

        ending = agent.go_on()
        assert (ending["answer"], ending["said"]) == (None, "sqlite3.DataError: string or blob too big")
        self.is_told(STUCK, "pager")
        self.wait_until(self.only_the_last_word_is_told)
        assert self.names() == alarms.names(TOLD)

    def is_over(self) -> None:
        """Check that all is told to be over soon after the process has ended."""
        self.wait_until(lambda: alarms.names(TOLD) <= alarms.names(self.webhook.alerts("resolved")))

    def is_told(self, alert: Json, receiver: str) -> None:
        """Wait until exactly this is told; it is repeated every second, with the numbers of that second.

        Before a turn that takes long, the same is told of two turns, as less severe.
        """
        known = {(name, alert["labels"][name]) for name in ("alertname", "severity")}
        self.wait_until(lambda: any(self.is_said(alert, each) for each in self.webhook.alerts()), alert)
        told_in = self.webhook.notifications
        there = [each for each in told_in if any(known <= one["labels"].items() for one in each["alerts"])]
        assert {each["receiver"] for each in there} == {receiver}

    def is_said(self, alert: Json, told: Json) -> bool:
        """Whether this is told: who, the first step, the tool and path that fill the state, since when, and where."""
        texts = told["annotations"]
        said = texts["description"]
        return (
            told["labels"] == self.said(alert)["labels"]
            and {name: texts[name] for name in ("summary", "dashboard", "runbook_url")}
            == {name: alert[name] for name in ("summary", "dashboard", "runbook_url")}
            and said.startswith(alert["first"])
            and "; most is of tool search_code at " in said
            and re.search(r" Since (now|\d\d:\d\d)\.$", said) is not None
            and 'span.gen_ai.workflow.name = "DurableAgent"' in texts["traces"]
            and len(texts["summary"] + said + texts["traces"]) < MOST_CHARACTERS
        )

    def only_the_last_word_is_told(self) -> bool:
        """Whether that the run stands still has muted that its payload was refused, and that it was near its cap."""
        known = {each["labels"]["alertname"]: each for each in self.engine.alerts()}
        stuck, over, near = (known.get(alert["labels"]["alertname"]) for alert in (STUCK, OVER_CAP, NEAR_CAP))
        if stuck is None or near is None:
            return False
        # That the payload was refused is over after `alarms.MUTING_WINDOW`.
        return all(each is None or each["status"]["state"] == "suppressed" for each in (over, near))

    def names(self) -> set[str]:
        """The alerts that were told, but for those that are only until what mutes them is known."""
        return alarms.names(self.webhook.alerts()) - MUTED

    def wait_until(self, condition: Callable[[], bool], expected: Json | None = None) -> None:
        """Wait until something is so; AssertionError with what was told instead when that takes too long."""
        deadline = Deadline(SECONDS)
        while not condition():
            said = "\n".join(dict.fromkeys(str(told(alert)) for alert in self.webhook.alerts()))
            assert not deadline.has_passed(), f"{expected or condition}, not what was told:\n{said}"
            self.refresh()
            time.sleep(0.2)


def told(alert: Json) -> Json:
    """What somebody reads of an alert."""
    return {"labels": alert["labels"], "annotations": alert["annotations"]}


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter of the durable example's environment, made outside the time that a test may take."""
    return durable_run.interpreter()


def test_the_alerts_are_among_those_that_are_shipped() -> None:
    assert {alert["labels"]["alertname"] for alert in (*TOLD, OVER_CAP)} <= {alert.name for alert in ALERTS}


@pytest.mark.parametrize("suite", prometheus.SUITES)
@pytest.mark.shows("001.alert")
def test_scraped_by_prometheus(python: Path, tmp_path: Path, suite: str) -> None:
    programs = starting.obtained(prometheus.programs, suite)
    routing = starting.obtained(alertmanager.programs, suite)
    port, rules = starting.free_port(), tmp_path / "rules.yaml"
    rules.write_text(alarms.rules())
    programs.check_rules(rules)
    # What is scraped is not pushed as well.
    telemetry = {"AGENT_OTEL_PROMETHEUS_PORT": str(port), "AGENT_OTEL_PROMETHEUS_HOST": "127.0.0.1"}

    with Webhook() as webhook, alertmanager.server(routing, alarms.routing(webhook)) as engine:
        config = alarms.scraping(rules, JOB, f"127.0.0.1:{port}", engine)
        with (
            prometheus.server(programs, config),
            durable_run.durable_run(python, tmp_path, telemetry) as agent,
        ):
            called = OnCall(webhook, engine)
            called.follow(agent)
            agent.end()
            called.is_over()


def test_pushed_into_victoria_metrics(python: Path, tmp_path: Path) -> None:
    programs = starting.obtained(victoria_metrics.programs)
    routing = starting.obtained(alertmanager.programs, NEWEST)
    rules, relabelling = tmp_path / "rules.yaml", tmp_path / "relabelling.yaml"
    rules.write_text(alarms.rules())
    relabelling.write_text(alarms.relabelling())

    with (
        Webhook() as webhook,
        alertmanager.server(routing, alarms.routing(webhook)) as engine,
        victoria_metrics.server(programs, relabelConfig=str(relabelling)) as store,
        alarms.vmalert(programs, rules, store, engine),
    ):
        telemetry = {
            "OTEL_SERVICE_NAME": JOB,
            "OTEL_METRICS_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf",
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": store.otlp_metrics,
            "OTEL_METRIC_EXPORT_INTERVAL": "1000",
        }
        with durable_run.durable_run(python, tmp_path, telemetry) as agent:
            # Else series that are new are found after ten seconds, or twenty where one is made of the other.
            OnCall(webhook, engine, as_vmalert_says, store.flush).follow(agent)
