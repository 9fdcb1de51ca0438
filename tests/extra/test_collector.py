"""Through an OpenTelemetry Collector all arrives as it is scraped: names, labels, buckets, values.

The durable example is scraped by Prometheus and pushes at the same time; Prometheus scrapes the collector, too. What is
different is said here, and nothing else is. ``scripts/extra`` runs this.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from agent_otel import semconv
from tests.patience import Deadline
from tests.system.engines import prometheus, starting
from tests.system.engines.collector import collector
from tests.system.monitoring import durable_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.system.engines.collector import Collector
    from tests.system.engines.prometheus import Prometheus

Series = dict[tuple[tuple[str, str], ...], str]

SERVICE = "durable-agent"
OURS = '{{__name__=~"agent_otel_.+|gen_ai_.+", way="{way}"}}'
#: Labels that only the collector's exporter adds.
SCOPE = {"otel_scope_name", "otel_scope_version", "otel_scope_schema_url"}
#: Who was scraped: of a collector's metrics that is the service, as the resource of the process has it.
WHO = {"instance", "way"}
#: Prometheus 3 writes bounds of buckets in its own way; 2 keeps what it reads: "262144.0", from a collector "262144".
AS_WRITTEN = prometheus.BOOKWORM
SECONDS = 30


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter of the durable example's environment."""
    return durable_run.interpreter()


@pytest.fixture(scope="module")
def through() -> Iterator[Collector]:
    """The collector, as its exporter is by default."""
    with starting.or_skip(collector()) as engine:
        yield engine


@pytest.mark.parametrize("suite", prometheus.SUITES)
def test_through_a_collector_all_arrives_as_it_is_scraped(
    python: Path, through: Collector, tmp_path: Path, suite: str
) -> None:
    programs = starting.obtained(prometheus.programs, suite)
    direct = f"127.0.0.1:{starting.free_port()}"
    telemetry = {
        "AGENT_OTEL_PROMETHEUS_HOST": "127.0.0.1",
        "AGENT_OTEL_PROMETHEUS_PORT": direct.partition(":")[2],
        "OTEL_SERVICE_NAME": SERVICE,
        "OTEL_RESOURCE_ATTRIBUTES": f"service.instance.id={suite}",
        "OTEL_METRICS_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": through.otlp_metrics,
        "OTEL_METRIC_EXPORT_INTERVAL": "1000",
    }

    with (
        durable_run.durable_run(python, tmp_path, telemetry) as agent,
        prometheus.server(programs, scraping(direct, through)) as engine,
    ):
        agent.wait_until_near_cap()
        scraped, pushed = settled(engine, suite)

    # job and the names of all metrics are among the labels.
    assert (scraped.keys() - pushed.keys(), pushed.keys() - scraped.keys()) == (set(), set())
    assert scraped == pushed
    names = {dict(labels)["__name__"] for labels in scraped}
    for metric in (semconv.PAYLOAD_NEAR_CAP, semconv.PAYLOAD_CAP, semconv.RESULT_DELIVERED):
        assert metric.exposed_name in names
    for metric in (semconv.RESULT_SIZE, semconv.UTILIZATION):
        assert {f"{metric.exposed_name}_{part}" for part in ("bucket", "sum", "count")} <= names


def scraping(direct: str, through: Collector) -> str:
    """A configuration of Prometheus for both ways; the collector's job and instance are those of the process."""
    jobs: list[dict[str, Any]] = [
        {"job_name": SERVICE, "static_configs": [{"targets": [direct], "labels": {"way": "direct"}}]},
        {
            "job_name": "collector",
            "honor_labels": True,
            "static_configs": [{"targets": [through.target], "labels": {"way": "collector"}}],
        },
    ]
    return yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs})


def settled(engine: Prometheus, suite: str) -> tuple[Series, Series]:
    """Return what came on both ways, once it is the same or no more comes: the agent waits meanwhile."""
    deadline = Deadline(SECONDS)
    while True:
        scraped, pushed = (series(engine, suite, way) for way in ("direct", "collector"))
        if (scraped and scraped == pushed) or deadline.has_passed():
            return scraped, pushed
        time.sleep(0.5)


def series(engine: Prometheus, suite: str, way: str) -> Series:
    """Return the series of this package that came on one way, without what is known to be different."""
    found: Series = {}
    for each in engine.query(OURS.format(way=way)):
        labels = {name: value for name, value in each["metric"].items() if name not in SCOPE | WHO}
        if suite == AS_WRITTEN and "le" in labels:
            labels["le"] = f"{float(labels['le']):g}"
        if way == "direct" or each["metric"]["instance"] == suite:
            found[tuple(sorted(labels.items()))] = each["value"][1]
    return found
