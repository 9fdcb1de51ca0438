"""A Prometheus that scrapes an agent and evaluates rules every second."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from tests.patience import Deadline
from tests.system.engines import prometheus, starting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.environments import Environment
    from tests.system.engines.prometheus import Programs, Prometheus

# Twenty results of 5 bytes and three of 20,000, which have grown; then it waits to be scraped.
_AGENT = """
import threading
import agent_otel

@agent_otel.tool
def search(query):
    return "x" * 20_000 if query == "all" else "found"

for _ in range(20):
    search("x")
for _ in range(3):
    search("all")
print("ready", flush=True)
threading.Event().wait()
"""
_CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: agents
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
    metric_relabel_configs: [{relabel}]
"""


@contextlib.contextmanager
def server(
    bare: Environment,
    programs: Programs,
    rules: tuple[Path, ...] = (),
    *,
    relabel: str = "",
    more: str = "",
    **flags: str,
) -> Iterator[Prometheus]:
    """Start both; give Prometheus once it has the metrics, and an alert if it has rules.

    ``more`` is a line of the scrape configuration.
    """
    port = starting.free_port()
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_PROMETHEUS_PORT": str(port)}
    names = ", ".join(f'"{rule}"' for rule in rules)
    with bare.start(str(bare.python), "-c", _AGENT, env=env) as agent:
        assert agent.stdout
        ready = agent.stdout.readline()
        assert "ready\n" == ready, agent.communicate()[1]
        config = _CONFIG.format(rules=names, port=port, relabel=relabel) + (f"    {more}\n" if more else "")
        with prometheus.server(programs, config, None, **flags) as engine:
            seen = 'ALERTS{alertname="AgentToolResultGrown"}' if rules else 'up{job="agents"} == 1'
            wait_for(lambda: engine.query(seen))
            yield engine


def wait_for(holds: Callable[[], object]) -> None:
    """Wait until it does."""
    deadline = Deadline(60)
    while not holds():
        assert not deadline.has_passed()
        time.sleep(0.1)
