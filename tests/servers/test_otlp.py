"""The OTLP receiver, driven by the real exporters."""

from __future__ import annotations

import importlib
import time
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.metrics import AlwaysOnExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

from tests.patience import Deadline
from tests.servers.otlp import OtlpReceiver

if TYPE_CHECKING:
    from collections.abc import Iterator

RESOURCE = Resource({"service.name": "tested"})
WAYS = ["grpc", "http", "http+gzip"]


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as running:
        yield running


def exporter(receiver: OtlpReceiver, signal: str, way: str, timeout: float = 10) -> Any:
    """Make the real exporter for ``trace`` or ``metric``."""
    protocol, _, gzip = way.partition("+")
    module = importlib.import_module(f"opentelemetry.exporter.otlp.proto.{protocol}.{signal}_exporter")
    made = getattr(module, "OTLPSpanExporter" if signal == "trace" else "OTLPMetricExporter")
    if protocol == "grpc":
        return made(endpoint=receiver.grpc_endpoint, insecure=True, timeout=timeout)
    compression = importlib.import_module("opentelemetry.exporter.otlp.proto.http").Compression
    return made(
        endpoint=f"{receiver.http_endpoint}/v1/{signal}s",
        timeout=timeout,
        compression=compression.Gzip if gzip else compression.NoCompression,
    )


@pytest.mark.parametrize("way", WAYS)
def test_spans(receiver: OtlpReceiver, way: str) -> None:
    provider = TracerProvider(resource=RESOURCE, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter(receiver, "trace", way)))
    tracer = provider.get_tracer("scope")
    attributes: dict[str, Any] = {"text": "größe", "number": 5, "part": 0.5, "flag": True, "list": ("a", "b")}
    with tracer.start_as_current_span("outer", kind=SpanKind.CLIENT) as outer:
        outer.set_status(StatusCode.ERROR, "broke")
        with tracer.start_as_current_span("inner", attributes=attributes) as inner:
            inner.add_event("seen", {"n": 1}, timestamp=42)
    provider.shutdown()

    got_inner, got_outer = receiver.wait_for_spans(2)
    assert got_inner.name == "inner"
    assert got_inner.kind == "INTERNAL"
    assert got_inner.attributes == {**attributes, "list": ["a", "b"]}
    assert got_inner.parent_span_id == got_outer.span_id == f"{outer.get_span_context().span_id:016x}"
    assert got_inner.trace_id == got_outer.trace_id == f"{outer.get_span_context().trace_id:032x}"
    assert [(event.name, event.time_ns, event.attributes) for event in got_inner.events] == [("seen", 42, {"n": 1})]
    assert got_inner.status == "UNSET"
    assert 0 < got_outer.start_ns <= got_inner.start_ns <= got_inner.end_ns <= got_outer.end_ns
    assert (got_outer.kind, got_outer.parent_span_id, got_outer.scope) == ("CLIENT", None, "scope")
    assert (got_outer.status, got_outer.status_message) == ("ERROR", "broke")
    assert got_outer.resource == {"service.name": "tested"}


@pytest.mark.parametrize("way", WAYS)
def test_metrics(receiver: OtlpReceiver, way: str) -> None:
    reader = PeriodicExportingMetricReader(exporter(receiver, "metric", way), export_interval_millis=3_600_000)
    provider = MeterProvider(
        [reader], resource=RESOURCE, exemplar_filter=AlwaysOnExemplarFilter(), shutdown_on_exit=False
    )
    meter = provider.get_meter("scope")
    counter = meter.create_counter("calls", unit="{call}", description="how many")
    histogram = meter.create_histogram("size", unit="By", explicit_bucket_boundaries_advisory=[10, 100])
    meter.create_gauge("cap").set(1.5)
    counter.add(2, {"tool": "a"})
    counter.add(3, {"tool": "b"})
    for measured in (5, 50, 500):
        histogram.record(measured, {"tool": "a"})
    provider.force_flush()
    counter.add(4, {"tool": "a"})
    provider.shutdown()

    calls = receiver.wait_for_metric("calls")
    assert [(point.attributes, point.value) for point in calls] == [({"tool": "a"}, 6), ({"tool": "b"}, 3)]
    assert (calls[0].unit, calls[0].kind, calls[0].description) == ("{call}", "sum", "how many")
    assert (calls[0].monotonic, calls[0].cumulative) == (True, True)
    assert (calls[0].scope, calls[0].resource) == ("scope", {"service.name": "tested"})
    [size] = receiver.wait_for_metric("size")
    assert (size.kind, size.count, size.sum) == ("histogram", 3, 555)
    assert (size.bounds, size.bucket_counts) == ((10, 100), (1, 1, 1))
    first = next(point for point in receiver.points if point.name == "size")
    assert [exemplar.value for exemplar in first.exemplars] == [5, 50, 500]
    [cap] = receiver.wait_for_metric("cap")
    assert (cap.kind, cap.value) == ("gauge", 1.5)
    assert receiver.wait_for_metric("never", timeout=0.05) == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("ignore")  # the exporters complain, each in its own way
def test_a_hanging_receiver_answers_nothing_and_lets_go_when_it_closes(way: str) -> None:
    with OtlpReceiver(hang=True) as receiver:
        provider = TracerProvider(resource=RESOURCE, shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(exporter(receiver, "trace", way, timeout=1)))
        provider.get_tracer("scope").start_span("lost").end()
        began, deadline = time.monotonic(), Deadline(9)
        provider.force_flush(3000)
        provider.shutdown()
        assert 0.9 < time.monotonic() - began
        assert not deadline.has_passed()
        assert receiver.exports_begun >= 1
        assert receiver.spans == []
        deadline = Deadline(3)
    assert not deadline.has_passed()
