"""Labels of the program's own: on every metric, on every span of ours, from three sources, in a limited number."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.unit.telemetry.conftest import CALL

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_PROGRAM = """
import json
import prometheus_client
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

call("search", "x" * 10)
with agent_otel.execution("run-1", workflow="review", labels={"tenant": "acme", "region": "eu"}):
    call("search", "x" * 20)
    with agent_otel.execution("run-2"):
        call("search", "x" * 30)
        agent_otel.payload("x" * 400, runtime="temporal", direction="input")
token = context.attach(baggage.set_baggage("tenant", "baggage-gmbh"))
call("search", "x" * 40)
context.detach(token)

value = prometheus_client.REGISTRY.get_sample_value
def size(**labels):
    return value("agent_otel_tool_result_size_bytes_sum", {"gen_ai_tool_name": "search", "team": "search", **labels})
sums = [size(tenant=tenant) for tenant in ("", "acme", "baggage-gmbh")]
spans = [[s.name, s.attributes.get("team"), s.attributes.get("tenant")] for s in exporter.get_finished_spans()]
text = prometheus_client.generate_latest().decode()
lines = [line for line in text.splitlines() if line.startswith(("agent_otel", "gen_ai")) and "_created" not in line]
labelled = all('tenant="' in line for line in lines)
calls = [line for line in lines if line.startswith("agent_otel_execution_tool_calls_sum") and "review" in line]
payload = 'agent_otel_workflow_payload_size_bytes_sum{' in text and 'tenant="acme"} 400.0' in text
print(json.dumps([sums, spans, labelled, "region" in text, payload, calls]))
"""


def test_values_come_from_the_setting_the_execution_and_the_baggage(environment: Callable[[str], Environment]) -> None:
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_LABELS": "team=search,tenant"}
    child = environment("bare").run(CALL + _PROGRAM, env=env)
    assert ("", 0) == (child.stderr, child.returncode)
    sums, spans, are_labelled, has_other, has_payload, calls = json.loads(child.stdout)
    assert [10, 50, 40] == sums
    tool = "execute_tool search"
    assert [tool, "search", None] == spans[0]
    assert [tool, "search", "acme"] in spans
    assert [tool, "search", "baggage-gmbh"] == spans[-1]
    assert ["invoke_workflow review", "search", "acme"] in spans
    assert (True, False, True) == (are_labelled, has_other, has_payload)
    (total,) = calls
    assert total.endswith('team="search",tenant="acme"} 1.0')


_MANY = """
import prometheus_client
for number in range(250):
    with agent_otel.execution(f"run-{number}", labels={"tenant": f"tenant-{number}"}):
        call("search", "x")
value = prometheus_client.REGISTRY.get_sample_value
print([value("agent_otel_tool_result_size_bytes_count", {"gen_ai_tool_name": "search", "tenant": tenant})
       for tenant in ("tenant-0", "tenant-199", "tenant-200", "_other")])
"""


def test_the_number_of_sets_is_limited(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(CALL + _MANY, env={"AGENT_OTEL": "1", "AGENT_OTEL_LABELS": "tenant"})
    assert "[1, 1, None, 50]\n" == child.stdout, child.stderr
    assert "further ones are counted as '_other'" in child.stderr
