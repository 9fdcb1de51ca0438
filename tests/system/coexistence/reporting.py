"""What programs under two instrumentations report of themselves: their spans and histograms, as JSON on stdout.

Runs in the child's environment, so that it knows nothing but OpenTelemetry.
"""

from __future__ import annotations

import importlib
import json
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

_exporter = InMemorySpanExporter()
_reader = InMemoryMetricReader()


def provide() -> trace.Tracer:
    """Set providers of the program's own; return a tracer for the bodies of its tools."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(_exporter))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([_reader]))
    return trace.get_tracer("body")


def activate(other: str, order: str) -> None:
    """Switch on the other instrumentation (``module:Class``) and ours, theirs ``before`` or ``after`` ours."""
    module, _, name = other.partition(":")
    if order == "before":
        getattr(importlib.import_module(module), name)().instrument()
    importlib.import_module("agent_otel.auto")
    if order == "after":
        getattr(importlib.import_module(module), name)().instrument()


def report() -> None:
    """Print everything that was finished and recorded."""
    spans = [
        {
            "scope": span.instrumentation_scope.name if span.instrumentation_scope else "",
            "name": span.name,
            "id": span.context.span_id,
            "parent": span.parent.span_id if span.parent else None,
            "attributes": {key: value for key, value in (span.attributes or {}).items() if _is_plain(value)},
        }
        for span in sorted(_exporter.get_finished_spans(), key=lambda span: span.start_time or 0)
    ]
    data = _reader.get_metrics_data()
    points = [
        {
            "name": metric.name,
            "scope": scope.scope.name,
            "attributes": dict(point.attributes or {}),
            "count": getattr(point, "count", None),
        }
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    ]
    print(json.dumps({"spans": spans, "points": points}))


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int)
