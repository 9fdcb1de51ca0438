"""The half hour of metrics that dashboards and rules are tried on has all there is, and every server knows it."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from agent_otel import semconv
from agent_otel.semconv.types import HISTOGRAM, Metric
from tests.patience import Deadline
from tests.rows import each_row
from tests.system.engines.prometheus import NEWEST
from tests.system.monitoring import stores
from tests.system.monitoring.simulated import END, PROCESSES, RESEARCH, START, STEP_SECONDS, STEPS, SUPPORT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tests.system.engines.prometheus import Prometheus

_OTHERS = {
    "dapr_runtime_workflow_activity_payload_size_ratio": "histogram",
    "dapr_runtime_workflow_payload_size_ratio": "histogram",
    "process_start_time_seconds": "gauge",
    "up": "gauge",
}
_MOST_BYTES = 80_000_000
_servers = pytest.mark.parametrize("name", stores.NAMES)


def test_each_metric_of_the_catalogue_has_samples(samples: Path) -> None:
    kinds: dict[str, str] = {}
    found: Counter[str] = Counter()
    for line in samples.read_text().splitlines():
        if line.startswith("# TYPE "):
            family, kinds[family] = line.split()[2:]
        elif not line.startswith("#"):
            found[family] += 1

    assert {metric.prometheus_name: metric.kind for metric in semconv.METRICS.values()} | _OTHERS == kinds
    assert [] == [name for name in kinds if not found[name]]
    assert samples.stat().st_size < _MOST_BYTES


@each_row("metric", semconv.METRICS.values(), ids=lambda metric: metric.name)
def test_each_metric_says_something(store: Callable[[str], Prometheus], metric: Metric) -> None:
    """Not only zeros: a panel that is empty, or flat at 0, is seen to work by nobody."""
    part = "_count" if metric.kind == HISTOGRAM else ""
    engine = store(NEWEST)

    (most,) = engine.query(f"max(max_over_time({metric.exposed_name}{part}[30m]))", END)

    assert float(most["value"][1]) > 0


@_servers
def test_each_server_has_all_samples(samples: Path, store: Callable[[str], Prometheus], name: str) -> None:
    lines = (line for line in samples.read_text().splitlines() if not line.startswith("#"))
    expected = Counter(line.partition("{")[0] for line in lines)
    engine = store(name)

    deadline = Deadline(60)  # VictoriaMetrics finds the names of new series a moment after their import
    while expected != (counted := _counted(engine, expected)) and not deadline.has_passed():
        time.sleep(0.5)

    assert expected == counted


def _counted(engine: Prometheus, names: Iterable[str]) -> dict[str, int]:
    rows = {each: engine.query(f"sum(count_over_time({each}[31m]))", END) for each in names}
    return {each: int(found[0]["value"][1]) if found else 0 for each, found in rows.items()}


@_servers
def test_time_passes_as_it_was_simulated(store: Callable[[str], Prometheus], name: str) -> None:
    rows = store(name).query_range('up{job="support"}', START, END, STEP_SECONDS)
    began = store(name).query('count_values("at", process_start_time_seconds) by (job)', END)

    (support,) = rows
    assert [START + step * STEP_SECONDS for step in range(STEPS)] == [int(at) for at, _ in support["values"]]
    assert {"support": float(START), "daprd": float(START), "research": START + 80.0 * STEP_SECONDS} == {
        row["metric"]["job"]: float(row["metric"]["at"]) for row in began
    }


@_servers
def test_counters_begin_again_with_a_new_process(store: Callable[[str], Prometheus], name: str) -> None:
    delivered = semconv.RESULT_DELIVERED.exposed_name
    resets = store(name).query(f"sum by (job) (resets({delivered}[31m]))", END)
    tools = store(name).query(f"count by (job) ({delivered})", END)

    by_job = {row["metric"]["job"]: int(row["value"][1]) for row in resets}
    expected = {row["metric"]["job"]: int(row["value"][1]) for row in tools}
    assert [SUPPORT, RESEARCH, RESEARCH] == [process.job for process in PROCESSES]
    assert {SUPPORT: 0, RESEARCH: expected[RESEARCH]} == by_job
