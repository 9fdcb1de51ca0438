"""A CPython without the global interpreter lock: it stays without, and calls of many threads are all counted.

``scripts/extra`` runs this, and builds the interpreter.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests import interpreters
from tests.system.engines import starting

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

THREADS = 8
CALLS = 500
RESULT = 600  # bytes

_PROGRAM = """
import json, sys, threading
import agent_otel
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from prometheus_client import REGISTRY, generate_latest

threads, calls, result_bytes = map(int, sys.argv[1:4])
seen = []

class Kept(SpanExporter):
    def export(self, spans):
        seen.extend((span.context.span_id, span.attributes["tool.result.bytes"]) for span in spans
                    if "tool.result.bytes" in span.attributes)
        return SpanExportResult.SUCCESS

if "spans" in sys.argv:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Kept()))
    trace.set_tracer_provider(provider)

@agent_otel.tool
def search(query):
    return "x" * result_bytes

@agent_otel.tool
def rows(query):
    return {"rows": [{"number": number} for number in range(3)]}

start = threading.Barrier(threads)

def work(number):
    start.wait()
    for call in range(calls):
        # Executions of one thread alone, and one that all of them share.
        workflow = "own" if call % 2 else "shared"
        with agent_otel.execution(f"run-{number}-{call}" if call % 2 else "shared", workflow=workflow):
            search(str(call))
            rows(str(call))
            agent_otel.payload("y" * 100, runtime="queue", direction="input", workflow="work", execution="shared")

workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
for each in workers:
    each.start()
while any(each.is_alive() for each in workers):
    generate_latest(REGISTRY)  # a scrape reads what the threads write

def total(name, label=""):
    return sum(
        sample.value for family in REGISTRY.collect() for sample in family.samples
        if sample.name == f"agent_otel_{name}" and (not label or label in sample.labels.values())
    )

errors = sys.modules["agent_otel._internal.errors"]
print(json.dumps({
    "has_gil": sys._is_gil_enabled(),
    "results": [total(f"tool_result_size_bytes_{part}", "search") for part in ("count", "sum")],
    "structured": [total(f"tool_result_size_bytes_{part}", "rows") for part in ("count", "sum")],
    "executions": [total(f"execution_tool_calls_{part}", "own") for part in ("count", "sum")],
    "payloads": total("workflow_payload_size_bytes_sum"),
    "spans": [len(seen), len(dict(seen)), sum(size for _, size in seen)],
    "errors": [dict(errors.errors), errors.warnings()],
}))
"""


@pytest.mark.parametrize("spans", [[], ["spans"]], ids=["without spans", "with spans"])
def test_calls_of_many_threads_are_all_counted(environment: Callable[[str], Environment], spans: list[str]) -> None:
    starting.obtained(interpreters.find, interpreters.FREE_THREADED)
    python = environment("free-threaded")
    done = python.run(
        _PROGRAM, *map(str, (THREADS, CALLS, RESULT)), *spans, env={"AGENT_OTEL": "1"}, check=True, timeout=300
    )
    found: dict[str, Any] = json.loads(done.stdout)
    calls = THREADS * CALLS
    rows = len('{"rows":[{"number":0},{"number":1},{"number":2}]}')
    assert found == {
        "has_gil": False,
        "results": [calls, calls * RESULT],
        "structured": [calls, calls * rows],
        "executions": [calls / 2, calls],
        "payloads": 100 * calls,
        "spans": [2 * calls, 2 * calls, calls * (RESULT + rows)] if spans else [0, 0, 0],
        "errors": [{}, []],
    }
