"""``agent_otel.flush()``: what has been recorded arrives before the process is suspended or killed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.unit.telemetry.conftest import CALL

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment
    from tests.servers.otlp import OtlpReceiver

# SIGKILL stands for the freeze: nothing of the process runs after the flush.
_KILLED = (
    CALL
    + """
import json, os, signal
call("search", "x" * 300)
print(json.dumps(agent_otel.flush()), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
)
_OWN_PROVIDERS = """
import os
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

spans = TracerProvider()
spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), schedule_delay_millis=3_600_000))
trace.set_tracer_provider(spans)
metrics.set_meter_provider(MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter(), 3_600_000)]))
"""


@pytest.mark.parametrize("providers", ["", _OWN_PROVIDERS], ids=["built", "of the program"])
def test_what_was_recorded_arrives_before_the_process_stops(
    environment: Callable[[str], Environment], receiver: OtlpReceiver, providers: str
) -> None:
    long = {"OTEL_BSP_SCHEDULE_DELAY": "3600000", "OTEL_METRIC_EXPORT_INTERVAL": "3600000"}
    env = {"AGENT_OTEL": "1", "OTEL_METRICS_EXPORTER": "otlp", **long, **receiver.environment()}
    child = environment("bare").run(providers + _KILLED, env=env)

    assert [True] == [json.loads(line) for line in child.stdout.splitlines()]
    assert -9 == child.returncode
    assert [300] == [span.attributes["tool.result.bytes"] for span in receiver.spans]
    sizes = [point for point in receiver.points if point.name == "agent_otel.tool.result.size"]
    assert [(1, 300)] == [(point.count, point.sum) for point in sizes]


@pytest.mark.parametrize("providers", ["", _OWN_PROVIDERS], ids=["built", "of the program"])
def test_a_collector_that_hangs_is_not_waited_for(
    environment: Callable[[str], Environment], hanging: OtlpReceiver, providers: str
) -> None:
    env = {"AGENT_OTEL": "1", "OTEL_METRICS_EXPORTER": "otlp", **hanging.environment()}
    program = _KILLED.replace("flush()", "flush(0.5)")
    child = environment("bare").run(providers + program, env=env)

    assert "false\n" == child.stdout


def test_off_and_before_the_first_call_nothing_is_to_be_flushed(environment: Callable[[str], Environment]) -> None:
    program = "import agent_otel, sys; print(agent_otel.flush(), 'opentelemetry.sdk' in sys.modules)"
    for env in ({}, {"AGENT_OTEL": "1"}):
        assert "True False\n" == environment("bare").run(program, env=env, check=True).stdout
