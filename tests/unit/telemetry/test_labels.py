"""Labels of the program's own: on every metric, on every span of ours, from three sources, in a limited number."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.unit.telemetry.conftest import CALL

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment
    from tests.servers.otlp import OtlpReceiver

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
    fixed = {"error_type": "", "gen_ai_tool_name": "search", "team": "search"}
    return value("agent_otel_tool_result_size_bytes_sum", {**fixed, **labels})
review = {"gen_ai_agent_name": "review", "gen_ai_workflow_name": "review"}
sums = [size(tenant=""), size(tenant="acme", **review), *map(lambda it: size(tenant=it), ("acme", "baggage-gmbh"))]
spans = [[s.name, s.attributes.get("team"), s.attributes.get("tenant")] for s in exporter.get_finished_spans()]
text = prometheus_client.generate_latest().decode()
lines = [line for line in text.splitlines() if line.startswith(("agent_otel", "gen_ai")) and "_created" not in line]
labelled = all('team="search",tenant="' in line for line in sorted(lines))
calls = [line for line in lines if line.startswith("agent_otel_execution_tool_calls_sum") and "review" in line]
payload = 'agent_otel_workflow_payload_size_bytes_sum{' in text and 'tenant="acme"} 400.0' in text
print(json.dumps([sums, spans, labelled, "region" in text, payload, calls]))
"""


def test_values_come_from_the_setting_the_execution_and_the_baggage(environment: Callable[[str], Environment]) -> None:
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_LABELS": "team=search,tenant"}
    child = environment("bare").run(CALL + _PROGRAM, env=env)
    assert ("", 0) == (child.stderr, child.returncode)
    sums, spans, are_labelled, has_other, has_payload, calls = json.loads(child.stdout)
    assert [10, 20, 30, 40] == sums
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
for number in range(10_000):
    with agent_otel.execution(f"run-{number}", labels={"tenant": f"tenant-{number}"}):
        call("search", "x")
call("search", "x")
value = prometheus_client.REGISTRY.get_sample_value
labels = {"error_type": "", "gen_ai_tool_name": "search", "team": "search"}
print([value("agent_otel_tool_result_size_bytes_count", {**labels, "tenant": tenant})
       for tenant in ("tenant-0", "tenant-199", "tenant-200", "_other", "")])
"""


def test_the_number_of_sets_is_limited(environment: Callable[[str], Environment]) -> None:
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_LABELS": "team=search,tenant", "AGENT_OTEL_SPANS": "off"}
    child = environment("bare").run(CALL + _MANY, env=env)
    assert "[1, 1, None, 9800, 1]\n" == child.stdout, child.stderr
    assert "further ones are counted as '_other'" in child.stderr


_HOSTILE = r"""
import json
import prometheus_client
from opentelemetry import baggage, context

class Silent:
    def __str__(self):
        raise RuntimeError("no text")

def named(labels):
    with agent_otel.execution("run", labels=labels):
        call("search", "x")

for labels in (["tenant"], "tenant=acme", {"tenant": Silent()}, {Silent(): "acme"}, {"tenant": None}):
    named(labels)
with agent_otel.execution(Silent()):
    call("search", "x")
for value in (7, "x" * 10_000_000, "a\x00b\nc\x1b[31m\u202ed\ud800", "\u3000\xa0caf\xe9"):
    named({"tenant": value})
token = context.attach(baggage.set_baggage("tenant", "evil\r\nteam=other"))
call("search", "x")
context.detach(token)
context.attach(baggage.set_baggage("tenant", 8))
call("search", "x")
samples = [sample for metric in prometheus_client.REGISTRY.collect() for sample in metric.samples]
print(json.dumps({s.labels["tenant"]: s.value for s in samples if s.name == "agent_otel_tool_result_size_bytes_count"}))
"""


def test_no_value_breaks_a_program_or_a_line(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(CALL + _HOSTILE, env={"AGENT_OTEL": "1", "AGENT_OTEL_LABELS": "tenant"})
    assert 0 == child.returncode, child.stderr
    expected = {"": 7, "7": 1, "x" * 256: 1, "a?b c?[31m?d?": 1, "  caf\xe9": 1, "evil  team=other": 1}
    assert expected == json.loads(child.stdout)


_CONTEXTS = """
import asyncio
import contextvars
import json
import threading

from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([reader]))

def search():
    call("search", "x")

def run_in_thread(target, *args):
    thread = threading.Thread(target=target, args=args)
    thread.start()
    thread.join()

async def serve(tenant):
    with agent_otel.execution(tenant, labels={"tenant": tenant}):
        await asyncio.gather(asyncio.to_thread(search), asyncio.create_task(asyncio.sleep(0)))
        search()

async def main():
    await asyncio.gather(*map(serve, ("first", "second")))

asyncio.run(main())
with agent_otel.execution("outer", labels={"tenant": "outer"}):
    with agent_otel.execution("inner", labels={"tenant": "inner"}):
        search()
    search()
    run_in_thread(contextvars.copy_context().run, search)
    run_in_thread(search)
points = [
    (metric.name, dict(point.attributes), point)
    for resource in reader.get_metrics_data().resource_metrics
    for scope in resource.scope_metrics
    for metric in scope.metrics
    for point in metric.data.data_points
]
sizes = {a.get("tenant", ""): point.count for name, a, point in points if name == "agent_otel.tool.result.size"}
print(json.dumps([sizes, [name for name, a, _ in points if a.get("team") != "search"]]))
"""


def test_tasks_threads_and_nested_executions_have_their_own(environment: Callable[[str], Environment]) -> None:
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_LABELS": "team=search,tenant", "AGENT_OTEL_METRICS": "otel"}
    child = environment("bare").run(CALL + _CONTEXTS, env=env)
    # The last thread has no copy of the context.
    expected = {"first": 2, "second": 2, "inner": 1, "outer": 2, "": 1}
    assert [expected, []] == json.loads(child.stdout), child.stderr


_OTHER_SPANS = """
import json
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from agent_otel.core import step_handler
from agent_otel.core.thread import delivery
from agent_otel.core.types import ModelRequest, Payload, RequestPart, Step
from agent_otel.telemetry.setup import telemetry

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

with agent_otel.execution("x1"):
    with agent_otel.tool_call("measured", {"a": 1}, call_id="c0") as made:
        made.result("y" * 5000)
    delivery.take(telemetry(), ModelRequest([
        RequestPart("user", "hello"),
        RequestPart("tool_arguments", '{"q": 1}', "c0", "measured"), RequestPart("tool_results", "y" * 1000, "c0"),
        RequestPart("tool_arguments", '{"q": 1}', "c1", "unmeasured"), RequestPart("tool_results", "z" * 100, "c1"),
    ], model="m"))
step_handler.execution_began("run-7", "wf")
step_handler.begin_step(Step("dapr", "act", "wf", "run-7"), Payload("input", 100)).finish()
step_handler.execution_ended("run-7")
with trace.get_tracer("theirs").start_as_current_span("RunActivity:act", attributes={"temporalActivityID": "1"}):
    large = Payload("input", 1_900_000, data='{"a": "%s"}' % ("x" * 1_900_000))
    step_handler.begin_step(Step("temporal", "act", "wf", "run-8"), large).finish()
agent_otel.flush()
print(json.dumps(sorted([s.name, s.attributes.get("team")] for s in exporter.get_finished_spans())))
"""


def test_each_kind_of_span_has_them(environment: Callable[[str], Environment]) -> None:
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_LABELS": "team=search"}
    child = environment("bare").run(CALL + _OTHER_SPANS, env=env, check=True)
    assert json.loads(child.stdout) == [
        ["RunActivity:act", "search"],
        ["execute_activity act", "search"],
        ["execute_tool measured", "search"],
        ["execute_tool unmeasured", "search"],
        ["invoke_workflow", "search"],
        ["invoke_workflow wf", "search"],
        ["tool_result_truncated measured", "search"],
        ["workflow_payload act", "search"],
    ]


_FORK = """
import os, time
call("search", "x")
time.sleep(0.05)
with agent_otel.execution("run-1", labels={"tenant": "acme"}):
    call("search", "x")
assert agent_otel.flush(60)
if not os.fork():
    call("search", "x")
    os._exit(not agent_otel.flush(60))
assert os.wait()[1] == 0
os._exit(0)
"""


def test_a_process_and_its_forked_child_begin_with_each_set(
    environment: Callable[[str], Environment], receiver: OtlpReceiver
) -> None:
    """Alerts look for the start that has the labels of a counter."""
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_LABELS": "team=search,tenant", "OTEL_METRICS_EXPORTER": "otlp"}
    child = environment("bare").run(CALL + _FORK, env=receiver.environment() | env)
    assert ("", 0) == (child.stderr, child.returncode)
    points = [point for point in receiver.points if point.name == "agent_otel.process.start_time"]
    process, acme = {"team": "search"}, {"team": "search", "tenant": "acme"}
    assert [process, acme, process, acme] == [point.attributes for point in points]
    began, acme_began, *forked = (point.value for point in points)
    assert began < acme_began < min(forked)


_MANY_SERIES = """
for tenant in range(30):
    with agent_otel.execution(f"run-{tenant}", labels={"tenant": f"t{tenant}"}):
        for tool in range(10):
            call(f"tool-{tool}", "x")
with agent_otel.execution("last", labels={"tenant": "t29"}):
    call("tool-9", "x" * 5000 + "...[truncated 9999 characters]")
assert agent_otel.flush(60)
"""


def test_each_set_has_its_series_when_they_are_pushed(both_ends: Environment, receiver: OtlpReceiver) -> None:
    """Newer SDKs keep 2,000 series of a metric unless a view says otherwise; here are eleven a tool and tenant."""
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_LABELS": "tenant", "OTEL_METRICS_EXPORTER": "otlp", "AGENT_OTEL_SPANS": "off"}
    both_ends.run(CALL + _MANY_SERIES, env=receiver.environment() | env, check=True)
    points = receiver.latest("agent_otel.tool.results.truncated")
    assert 3300 == len(points)
    counted = {"gen_ai.tool.name": "tool-9", "layer": "tool", "reason": "marker", "tenant": "t29"}
    assert [(counted, 1)] == [(point.attributes, point.value) for point in points if point.value]
