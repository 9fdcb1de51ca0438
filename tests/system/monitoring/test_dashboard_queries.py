"""Every query of the dashboards, on every server that they are for, with half an hour of a real agent's metrics."""

from __future__ import annotations

import math
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from agent_otel import semconv
from agent_otel.alerts import promql
from tests.system.engines import asking, prometheus, starting
from tests.system.monitoring import boards, stores
from tests.system.monitoring.simulated import END, START, STEP_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.system.engines.prometheus import Prometheus

_servers = pytest.mark.parametrize("name", stores.NAMES)


def _values(engine: Prometheus, query: boards.Query) -> list[float]:
    if query.instant:
        found = [row["value"] for row in engine.query(query.expression, END)]
    else:
        rows: list[Any] = engine.query_range(query.expression, START, END, STEP_SECONDS)
        found = [value for row in rows for value in row["values"]]
    return [float(value) for _, value in found]


@_servers
@pytest.mark.parametrize("uid", boards.UIDS)
def test_queries_return_data(store: Callable[[str], Prometheus], name: str, uid: str) -> None:
    engine = store(name)
    empty, endless = [], []
    for query in boards.queries(uid):
        values = _values(engine, query)
        if not any(math.isfinite(value) for value in values):
            empty.append(query.name)
        if any(math.isinf(value) for value in values):
            endless.append(query.name)

    # The stores have no rules.
    assert ([], []) == ([name for name in empty if "Firing alerts" not in name], endless)


def _by_labels(engine: Prometheus, query: boards.Query) -> dict[tuple[tuple[str, str], ...], float]:
    rows = engine.query(query.expression, END)
    return {tuple(sorted(row["metric"].items())): float(row["value"][1]) for row in rows}


@pytest.mark.parametrize("uid", boards.UIDS)
def test_servers_agree(store: Callable[[str], Prometheus], uid: str) -> None:
    """The two Prometheus within what they extrapolate; VictoriaMetrics knows each process from its first value on."""
    for query in boards.queries(uid):
        if query.instant:
            oldest, newest, other = (_by_labels(store(name), query) for name in stores.NAMES)

            assert pytest.approx(oldest, rel=0.02, nan_ok=True) == newest, query.name
            assert oldest.keys() == other.keys(), query.name


@_servers
def test_all_that_happened_is_counted(store: Callable[[str], Prometheus], samples: Path, name: str) -> None:
    """Also what was there at the first scrape of a process, which `increase` does not know of."""
    lives: dict[str, list[float]] = {}
    for line in samples.read_text().splitlines():
        if line.startswith(f"{semconv.ARGS_SIZE.exposed_name}_count{{"):
            series, value, _ = line.rsplit(" ", 2)
            before = lives.setdefault(series, [])
            if before and float(value) >= before[-1]:
                before.pop()
            before.append(float(value))
    happened = sum(sum(ends) for ends in lives.values())
    (query,) = (query for query in boards.queries("agent-otel-tools") if query.panel == "Tool calls")

    assert happened > 900
    assert {(): pytest.approx(happened, rel=0.01)} == _by_labels(store(name), query)


_CASES = {
    # What one counter says each minute -> what it gained in the half hour before minute 120.
    "0+1x120": 30,  # it was there before
    "_x100 5x20": 5,  # new, and seen for the first time when all was over
    "_x100 5x9 6x10": 6,
    "_x118 7": 7,  # new, and scraped once
    "8x120": 0,
    "8x100 2x19": 2,  # a restart
    "4x70 _x40 9x9": 5,  # not scraped for a while, and not new
    "5x70 stale _x29 2x19": 2,  # of a new process of the same name, which counted first in the half hour
    "_x100 3x9 2x10": 2,  # new, and restarted: `increase` does not know of the first 3
}


@pytest.mark.parametrize("suite", prometheus.SUITES)
def test_gains_of_newborn_series(tmp_path: Path, suite: str) -> None:
    programs = starting.obtained(prometheus.programs, suite)
    expression = f"round(sum by (case) ({promql.gained('events_total', '30m')}))"
    test = {
        "interval": "1m",
        "input_series": [{"series": f'events_total{{case="{case}"}}', "values": case} for case in _CASES],
        "promql_expr_test": [
            {
                "expr": expression,
                "eval_time": "120m",
                "exp_samples": [{"labels": f'{{case="{case}"}}', "value": gained} for case, gained in _CASES.items()],
            }
        ],
    }
    file = tmp_path / "gained.yaml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": [test]}))

    programs.test_rules(file)


@pytest.mark.parametrize("uid", [uid for uid in boards.UIDS if uid != "agent-otel-agents"])
def test_alerts_of_other_programs_are_not_counted(tmp_path: Path, uid: str) -> None:
    """Agents of other kinds, such as those of monitoring products, have alerts with such names, too."""
    (query,) = (query for query in boards.queries(uid) if query.panel == "Alerts firing")
    firing = {
        'agent_otel_build_info{job="agents"}': "1x10",
        'ALERTS{alertname="AgentDown",alertstate="firing",severity="critical"}': "1x10",
        'ALERTS{alertname="AgentLimitHit",alertstate="firing",component="agent_otel",severity="warning"}': "1x10",
        'ALERTS{alertname="AgentLimitHit",alertstate="pending",component="agent_otel",limit="calls"}': "1x10",
    }
    test = {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in firing.items()],
        "promql_expr_test": [
            {"expr": query.expression, "eval_time": "10m", "exp_samples": [{"labels": "{}", "value": 1}]}
        ],
    }
    file = tmp_path / "firing.yaml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": [test]}))

    starting.obtained(prometheus.programs, prometheus.NEWEST).test_rules(file)


_PAGE = """# TYPE agent_otel_tool_result_size_bytes histogram
agent_otel_tool_result_size_bytes_bucket{{gen_ai_tool_name="search",le="65536.0"}} {scrapes} # {{{labels}}} 40000 {now}
agent_otel_tool_result_size_bytes_bucket{{gen_ai_tool_name="search",le="+Inf"}} {scrapes}
agent_otel_tool_result_size_bytes_count{{gen_ai_tool_name="search"}} {scrapes}
agent_otel_tool_result_size_bytes_sum{{gen_ai_tool_name="search"}} {scrapes}
# EOF
"""
_TRACE = "0af7651916cd43dd8448eb211c80319c"


class _Exposing(BaseHTTPRequestHandler):
    """A process whose every result has an exemplar."""

    scrapes = 0

    def do_GET(self) -> None:
        type(self).scrapes += 1
        labels = f'trace_id="{_TRACE}",span_id="b7ad6b7169203331"'
        page = _PAGE.format(scrapes=self.scrapes, labels=labels, now=time.time()).encode()
        self.send_response(200)
        self.send_header("content-type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.mark.parametrize("suite", prometheus.SUITES)
def test_exemplars_are_found_through_the_query(suite: str) -> None:
    """Prometheus looks for them with the whole expression of the graph."""
    programs = starting.obtained(prometheus.programs, suite)
    (query,) = (query for query in boards.QUERIES if query.panel == "Result size by tool, p95")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Exposing) as page:
        threading.Thread(target=page.serve_forever, daemon=True).start()
        target = f"127.0.0.1:{page.server_port}"
        job = {"job_name": "agents", "static_configs": [{"targets": [target]}]}
        config = yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [job]})
        with prometheus.server(programs, config, None, **{"enable-feature": "exemplar-storage"}) as engine:
            found: list[Any] = []
            while not found:  # the timeout of the test ends it
                asked = {"query": query.expression, "start": f"{time.time() - 60}", "end": f"{time.time()}"}
                found = asking.get(f"{engine.url}/api/v1/query_exemplars", asked)["data"]
                time.sleep(0.2)
        page.shutdown()

    assert ["search"] == [series["seriesLabels"]["gen_ai_tool_name"] for series in found]
    assert _TRACE == found[0]["exemplars"][0]["labels"]["trace_id"]
