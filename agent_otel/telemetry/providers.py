"""OpenTelemetry providers: the program's own when it has them, else built from the standard ``OTEL_*`` variables.

Nothing here runs before the first measured call, so that a provider the program sets first always wins.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.metadata
import os
from typing import TYPE_CHECKING, Any

from opentelemetry import metrics, trace

from agent_otel import semconv
from agent_otel._internal import errors

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

# Owned providers flush this often unless OTEL_BSP_SCHEDULE_DELAY says otherwise: many ways for a process to end skip
# atexit (uvicorn re-raises SIGTERM, multiprocessing uses os._exit), and what is still queued then is lost.
_SCHEDULE_DELAY_MILLIS = 1000.0
# As often metrics are sent unless OTEL_METRIC_EXPORT_INTERVAL says otherwise. OpenTelemetry's minute loses all of a job
# that is killed in its first one; shorter than a scrape's usual 15 s says no more and costs stores that bill points.
_EXPORT_INTERVAL_MILLIS = 10_000.0
# What a provider is built from, and what exporters import when they are made or at their first export: modules that
# some version imports late, and others not at all.
_BUILT_FROM = {
    "TRACES": ("opentelemetry.sdk.trace.export", "concurrent.futures.thread"),
    "METRICS": ("opentelemetry.sdk.metrics.export", "opentelemetry.sdk.metrics.view"),
    "otlp_proto_grpc": ("grpc._channel", "grpc.experimental"),
    "otlp_proto_http": (
        "encodings.idna",
        "importlib.readers",
        "importlib.resources.readers",
        "netrc",
        "opentelemetry.exporter.http.transport._requests",
        "requests",
    ),
}


def tracer_provider(*, build: bool) -> tuple[TracerProvider, bool]:
    """Return the provider in force and whether it is ours; with ``build`` one is made where there is none."""
    provider = trace.get_tracer_provider()
    if not is_placeholder(provider) or not build:
        return provider, False
    names = exporter_names("TRACES")
    if not names or sdk_disabled():
        return provider, False
    from opentelemetry.sdk.trace import TracerProvider as SDKProvider  # noqa: PLC0415 - 0.1 s, only when needed
    from opentelemetry.sdk.trace.export import (  # noqa: PLC0415
        BatchSpanProcessor,
        ConsoleSpanExporter,
        SimpleSpanProcessor,
    )

    exporters = _exporters(names, "TRACES")
    if not exporters:
        return provider, False
    delay = None if os.environ.get("OTEL_BSP_SCHEDULE_DELAY") else _SCHEDULE_DELAY_MILLIS
    owned = SDKProvider(shutdown_on_exit=False)
    for exporter in exporters:
        if isinstance(exporter, ConsoleSpanExporter):
            owned.add_span_processor(SimpleSpanProcessor(exporter))
        else:
            owned.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=delay))
    trace.set_tracer_provider(owned)
    return trace.get_tracer_provider(), trace.get_tracer_provider() is owned


def meter_provider(*, build: bool) -> tuple[MeterProvider | None, bool]:
    """Return the MeterProvider in force, or None, and whether it is ours."""
    provider = metrics.get_meter_provider()
    if not is_placeholder(provider):
        return provider, False
    names = exporter_names("METRICS")
    if not build or not names or sdk_disabled():
        return None, False
    from opentelemetry.sdk.metrics import MeterProvider as SDKProvider  # noqa: PLC0415 - 0.1 s, only when needed
    from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader  # noqa: PLC0415

    exporters = _exporters(names, "METRICS")
    if not exporters:
        return None, False
    interval = None if os.environ.get("OTEL_METRIC_EXPORT_INTERVAL") else _EXPORT_INTERVAL_MILLIS
    readers = [
        made if isinstance(made, MetricReader) else PeriodicExportingMetricReader(made, interval) for made in exporters
    ]
    owned = SDKProvider(metric_readers=readers, views=_views(), shutdown_on_exit=False)
    metrics.set_meter_provider(owned)
    return metrics.get_meter_provider(), metrics.get_meter_provider() is owned


def _views() -> list[Any]:
    """Say the catalogue's buckets again: the OTLP exporter of SDK 1.30 prefers its own to an instrument's advice."""
    if "exponential" in os.environ.get("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", ""):
        return []
    from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View  # noqa: PLC0415

    return [
        View(instrument_name=metric.name, aggregation=ExplicitBucketHistogramAggregation(metric.buckets))
        for metric in semconv.METRICS.values()
        if metric.kind == semconv.HISTOGRAM
    ]


def load(signal: str) -> None:
    """Import what a provider for ``TRACES`` or ``METRICS`` would be built from; what cannot be had is for later."""
    names = [] if sdk_disabled() else [_entry_name(name, signal) for name in exporter_names(signal)]
    for name in names:
        with contextlib.suppress(Exception):
            _entry(signal, name)
    for module in [module for part in (signal, *names) for module in _BUILT_FROM.get(part, ())] if names else ():
        with contextlib.suppress(ImportError):
            importlib.import_module(module)


def exporter_names(signal: str) -> list[str]:
    """Exporters named by the environment for ``TRACES`` or ``METRICS``; an OTLP endpoint alone means ``otlp``."""
    named = os.environ.get(f"OTEL_{signal}_EXPORTER", "").strip()
    if not named and (
        os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    ):
        named = "otlp"
    return [name.strip() for name in named.split(",") if name.strip() not in ("", "none")]


def sdk_disabled() -> bool:
    """Whether ``OTEL_SDK_DISABLED`` switches OpenTelemetry off."""
    return os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def is_placeholder(provider: object) -> bool:
    """Return True while the API waits for a provider to be set; a proxy of Logfire's has the same name."""
    kind = type(provider)
    return kind.__name__ in ("ProxyTracerProvider", "_ProxyMeterProvider") and kind.__module__.startswith(
        "opentelemetry."
    )


def _exporters(names: list[str], signal: str) -> list[Any]:
    """Make the exporters of these names; one that cannot be made is one warning and does not cost the others."""
    made = (_exporter(name, signal) for name in names)
    return [exporter for exporter in made if exporter is not None]


def _exporter(name: str, signal: str) -> Any:
    try:
        return _entry(signal, _entry_name(name, signal))()
    except Exception as error:
        _say_unusable(signal, name, error)
        return None


def _entry_name(name: str, signal: str) -> str:
    """Return the name of an exporter's entry point: ``otlp`` means what the standard protocol variables say."""
    if name != "otlp":
        return name
    protocol = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL") or os.environ.get(
        "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"
    )
    return "otlp_proto_grpc" if protocol.strip() == "grpc" else "otlp_proto_http"


@functools.cache
def _entry(signal: str, name: str) -> Any:
    """Find an exporter class by its entry point; LookupError for a name that no package provides."""
    for entry in importlib.metadata.entry_points(group=f"opentelemetry_{signal.lower()}_exporter", name=name):
        return entry.load()
    raise LookupError("no installed package has an exporter of that name")


def shielded_tracer_provider(*, build: bool) -> tuple[TracerProvider, bool]:
    """As ``tracer_provider``; what fails is one warning and the provider that is there."""
    try:
        return tracer_provider(build=build)
    except Exception as error:
        _say_unusable("TRACES", "any", error)
        return trace.get_tracer_provider(), False


def shielded_meter_provider(*, build: bool) -> tuple[MeterProvider | None, bool]:
    """As ``meter_provider``; what fails is one warning and no provider."""
    try:
        return meter_provider(build=build)
    except Exception as error:
        _say_unusable("METRICS", "any", error)
        return None, False


def _say_unusable(signal: str, name: str, error: Exception) -> None:
    errors.warn_once(
        f"exporter {signal} {name}",
        f"The OTEL_* variables ask for a {signal.lower()} exporter that cannot be made, {name!r}; nothing is pushed "
        f"through it: {type(error).__name__}: {error}",
    )
