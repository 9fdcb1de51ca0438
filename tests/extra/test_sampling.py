"""The collector's configuration of docs/growth.md keeps each call that is truncated, large or failed.

``scripts/extra`` runs this.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from tests.patience import Deadline
from tests.servers.otlp import OtlpReceiver
from tests.system.engines import starting
from tests.system.engines.collector import running
from tests.system.monitoring import durable_run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "growth.md"
PROGRAM = """
import agent_otel
from opentelemetry import trace

RESULTS = {"truncated": "x" * 3_000 + "\\n[truncated]", "large": "x" * 40_000, "other": "x" * 2_000}

@agent_otel.tool
def search(kind: str) -> str:
    if kind == "failed":
        raise ValueError(kind)
    return RESULTS[kind]

for number in range(1_000):
    kind = {0: "truncated", 1: "large", 2: "failed"}.get(number % 20, "other")
    try:
        search(kind)
    except ValueError:
        pass
trace.get_tracer_provider().force_flush()
"""
LARGE_BYTES = 32_768  # the page's
MOST_OTHERS = 100  # of 850, of which 8 or 9 are expected


def test_all_that_is_truncated_large_or_failed_is_kept() -> None:
    with OtlpReceiver() as receiver:
        endpoint = f"127.0.0.1:{starting.free_port()}"
        with starting.or_skip(running(_configured(endpoint, receiver.http_endpoint))):
            _call(f"http://{endpoint}")
            deadline = Deadline(120)  # the collector decides on a trace ten seconds after its first span
            while _kinds(receiver).total() < 150 and not deadline.has_passed():
                time.sleep(0.5)
        kinds = _kinds(receiver)
    assert {"truncated": 50, "large": 50, "failed": 50} == {kind: kinds[kind] for kind in kinds if kind != "other"}
    assert kinds["other"] < MOST_OTHERS


def _configured(endpoint: str, onward: str) -> dict[str, Any]:
    """Return the page's configuration with endpoints on this machine."""
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    config: dict[str, Any] = yaml.safe_load(block)
    config["receivers"]["otlp"]["protocols"]["http"]["endpoint"] = endpoint
    config["exporters"]["otlp_http"]["endpoint"] = onward
    return config


def _call(endpoint: str) -> None:
    variables = {
        "AGENT_OTEL": "1",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
    }
    subprocess.run([durable_run.interpreter(), "-c", PROGRAM], env=variables, check=True)


def _kinds(receiver: OtlpReceiver) -> Counter[str]:
    """Return the number of received spans by what is expected to keep them."""
    found: Counter[str] = Counter()
    for span in list(receiver.spans):
        if span.attributes.get("tool.result.truncated"):
            found["truncated"] += 1
        elif span.attributes.get("tool.result.bytes", 0) >= LARGE_BYTES:
            found["large"] += 1
        else:
            found["failed" if "error.type" in span.attributes else "other"] += 1
    return found
