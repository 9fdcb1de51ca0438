"""Many threads, and a scraper among them: nothing is lost and nothing is counted twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

CODE = """
import sys, threading
import agent_otel, prometheus_client

sys.setswitchinterval(1e-5)
decorated = agent_otel.tool(lambda text: text * 3, name="triple")
done = threading.Event()

def scrape():
    while not done.is_set():
        prometheus_client.generate_latest()

def call():
    for _ in range(1000):
        decorated("ab")

threads = [threading.Thread(target=call) for _ in range(8)]
scraper = threading.Thread(target=scrape)
for thread in (scraper, *threads):
    thread.start()
for thread in threads:
    thread.join()
done.set()
scraper.join()
value = prometheus_client.REGISTRY.get_sample_value
labels = {"gen_ai_tool_name": "triple"}
succeeded = {**labels, "error_type": ""}
of = {"result_size_bytes_count": succeeded, "result_size_bytes_sum": succeeded, "args_size_bytes_count": labels}
print([value(f"agent_otel_tool_{name}", having) for name, having in of.items()])
"""


@pytest.mark.parametrize("name", ["bare", "bare-newest"])
def test_counts_are_exact(environment: Callable[[str], Environment], name: str) -> None:
    child = environment(name).run(CODE, env={"AGENT_OTEL": "1"}, check=True)
    assert [8000, 48000, 8000] == json.loads(child.stdout)
