"""The shipped rules and the sample of Alertmanager's configuration, as a test runs them: with short times."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from agent_otel.alerts import Options, Thresholds, render
from tests.system.engines import asking, starting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.servers.webhook import Webhook
    from tests.system.engines.alertmanager import Alertmanager
    from tests.system.engines.victoria_metrics import Programs, VictoriaMetrics

ROOT = Path(__file__).resolve().parents[3]
GRAFANA = "https://grafana.example.org"
RUNBOOKS = "https://runbooks.example.org/{alert}"
#: How long what the agent did alerts. What mutes other alerts is over first: a muted one is told to be over only then.
WINDOW = "20s"
MUTING_WINDOW = "10s"


def rules(**times: str) -> str:
    """The rules, for a Grafana and runbooks of an organisation; no other threshold than those of time is changed."""
    short = {"over_budget_window": WINDOW, "payload_over_window": MUTING_WINDOW, "keep_firing": "1s"}
    chosen = Thresholds.parse({**short, **times})
    rules = render(chosen, Options(dashboard_url=GRAFANA, runbook_url=RUNBOOKS))
    return rules.replace("interval: 15s", "interval: 1s")


def routing(webhook: Webhook) -> str:
    """The sample, with one webhook for everybody who is told, and without its patience."""
    sample = yaml.safe_load((ROOT / "alerts" / "alertmanager.yaml").read_text())
    for route in _routes(sample["route"]):
        route |= {"group_wait": "0s", "group_interval": "1s", "repeat_interval": "1s"}
    for receiver in sample["receivers"]:
        for hook in receiver.get("webhook_configs", ()):
            hook["url"] = webhook.receiver
    return yaml.safe_dump(sample)


def _routes(route: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield route
    for each in route.get("routes", ()):
        yield from _routes(each)


def scraping(rules: Path, job: str, target: str, engine: Alertmanager) -> str:
    """A configuration of Prometheus for one target."""
    return yaml.safe_dump(
        {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [{"job_name": job, "static_configs": [{"targets": [target]}]}],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [engine.target]}]}]},
        }
    )


def relabelling() -> str:
    """A ``-relabelConfig`` of VictoriaMetrics: what is pushed has a service, and what is scraped a job.

    The series that vmalert records have a job, and no service that may replace it: hence the ``regex``.
    """
    pairs = {"service_name": "job", "service_instance_id": "instance"}
    return yaml.safe_dump(
        [{"source_labels": [name], "regex": "(.+)", "target_label": label} for name, label in pairs.items()]
    )


@contextlib.contextmanager
def vmalert(programs: Programs, rules: Path, store: VictoriaMetrics, engine: Alertmanager) -> Iterator[None]:
    """Evaluate rules every second over what VictoriaMetrics has, and write there what they record."""
    address = f"127.0.0.1:{starting.free_port()}"
    flags = {
        "rule": str(rules),
        "datasource.url": store.url,
        "remoteWrite.url": store.url,
        "remoteWrite.flushInterval": "1s",
        "notifier.url": engine.url,
        "evaluationInterval": "1s",
        "rule.evalDelay": "0s",
        "rule.maxResolveDuration": "1m",  # 4 s otherwise, which a busy machine needs for less
        "httpListenAddr": address,
    }
    with (
        starting.folder() as folder,
        starting.process(
            programs.vmalert,
            *(f"-{name}={value}" for name, value in flags.items()),
            answers=lambda: asking.is_healthy(f"http://{address}/health"),
            env={},
            cwd=folder,
        ),
    ):
        yield


def names(alerts: Sequence[dict[str, Any]]) -> set[str]:
    """The names of alerts."""
    return {alert["labels"]["alertname"] for alert in alerts}
