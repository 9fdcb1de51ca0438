"""Labels that come with the baggage, through the runtimes that restore it for a step's code, and not before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.system.engines import temporal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_SUMS = """
import json
import os
import sys

import prometheus_client
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import agent_otel

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

def tell():
    names = ("workflow_payload_size_bytes", "tool_result_size_bytes", "execution_result_size_bytes")
    wanted = [f"agent_otel_{name}_sum" for name in names]
    samples = [sample for metric in prometheus_client.REGISTRY.collect() for sample in metric.samples]
    found = {
        " ".join(filter(None, (s.name[11:-4], s.labels.get("workflow_activity"), s.labels.get("direction")))): [
            s.labels["tenant"], s.value
        ]
        for s in samples if s.name in wanted
    }
    print(json.dumps([found, {span.name: span.attributes.get("tenant") for span in exporter.get_finished_spans()}]))
"""
_CELERY = """
from celery import Celery
from celery.contrib.testing.worker import start_worker
from opentelemetry.instrumentation.celery import CeleryInstrumentor

app = Celery("labels", broker="memory://", backend="cache+memory://")

@app.task(name="review")
def review(text):
    with agent_otel.tool_call("search", {}) as call:
        return call.result(text)

@app.task(name="first")
def first():
    return 1

with start_worker(app, pool="threads", concurrency=1, perform_ping_check=False, loglevel="ERROR"):
    first.delay().get(timeout=60)  # this package listens to the signals before the instrumentor does
    CeleryInstrumentor().instrument()
    token = context.attach(baggage.set_baggage("tenant", "acme"))
    review.delay("x" * 50).get(timeout=60)
    context.detach(token)
    tell()
    sys.stdout.flush()
    os._exit(0)  # to stop the worker takes seconds
"""
_TEMPORAL = """
import asyncio
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.contrib.opentelemetry import TracingInterceptor
from temporalio.worker import Worker

@activity.defn
async def review(text: str) -> str:
    with agent_otel.tool_call("search", {}) as call:
        return call.result(text)

@workflow.defn(sandboxed=False)
class Flow:
    @workflow.run
    async def run(self, text: str) -> str:
        return await workflow.execute_activity(review, text, start_to_close_timeout=timedelta(seconds=60))

async def main() -> None:
    client = await Client.connect(sys.argv[1], interceptors=[TracingInterceptor()])
    async with Worker(client, task_queue="labels", workflows=[Flow], activities=[review]):
        context.attach(baggage.set_baggage("tenant", "acme"))
        await client.execute_workflow(Flow.run, "x" * 50, id="labels", task_queue="labels")

asyncio.run(main())
tell()
sys.stdout.flush()
os._exit(0)  # the SDK's threads often abort a Python that ends right after its last worker
"""
_ENV = {"AGENT_OTEL": "1", "AGENT_OTEL_LABELS": "tenant"}


def _told(environment: Environment, program: str, *arguments: str) -> Any:
    child = environment.run(_SUMS + program, *arguments, env=_ENV, timeout=100)
    assert 0 == child.returncode, child.stderr
    return json.loads(child.stdout.splitlines()[-1])


def test_a_task_of_celery(environment: Callable[[str], Environment]) -> None:
    sums, spans = _told(environment("celery"), _CELERY)
    tenants = {name: tenant for name, (tenant, _) in sums.items() if "first" not in name}
    steps = ("workflow_payload_size_bytes review input", "workflow_payload_size_bytes review output")
    assert dict.fromkeys(("tool_result_size_bytes", *steps), "acme") == tenants
    assert ["acme"] * 2 == [spans["run/review"], spans["execute_tool search"]]


def test_an_activity_of_temporal(environment: Callable[[str], Environment]) -> None:
    with temporal.server() as server:
        sums, spans = _told(environment("temporal"), _TEMPORAL, server.address)
    # A payload is a JSON text of 52 bytes with its encoding, 80 bytes in protobuf.
    assert {
        "workflow_payload_size_bytes input": ["", 80],
        "workflow_payload_size_bytes output": ["", 80],
        "workflow_payload_size_bytes review input": ["acme", 80],
        "workflow_payload_size_bytes review output": ["acme", 80],
        "tool_result_size_bytes": ["acme", 50],
        "execution_result_size_bytes": ["acme", 50],
    } == sums
    assert ["acme"] * 2 == [spans["RunActivity:review"], spans["execute_tool search"]]
