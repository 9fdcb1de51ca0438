"""OpenTelemetry providers: the program's own, else providers built from the standard ``OTEL_*`` variables.

No provider is resolved before the first measured call, so that a provider that the program sets earlier always wins.
"""

from __future__ import annotations

import copy
import functools
import importlib
import importlib.metadata
import inspect
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from opentelemetry import trace

from agent_otel import semconv
from agent_otel._internal import errors, fork
from agent_otel.semconv.types import HISTOGRAM

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.trace import TracerProvider


# Interval of owned span processors unless OTEL_BSP_SCHEDULE_DELAY is set. Many ways to end a process skip atexit
# (uvicorn re-raises SIGTERM, multiprocessing calls os._exit), and spans that are still queued then are lost.
_SCHEDULE_DELAY_MILLIS = 1000.0
# Interval of owned metric readers unless OTEL_METRIC_EXPORT_INTERVAL is set. With OpenTelemetry's default of 60 s, a
# job that is killed in its first minute loses all its metrics. An interval much below the usual 15 s of a scrape adds
# no information, and costs money in backends that bill data points.
_EXPORT_INTERVAL_MILLIS = 10_000.0
#: Series of one metric in an owned provider; names and sets of values of the program's labels have lower limits.
_MOST_SERIES = 1_000_000
_LIMIT = "aggregation_cardinality_limit"
#: OpenTelemetry's API of metrics takes 3 ms to import, and a program that has not imported it has set no provider.
METRICS_API = "opentelemetry.metrics"
_RESOURCE_VARIABLES = ("OTEL_RESOURCE_ATTRIBUTES", "OTEL_SERVICE_NAME", "OTEL_EXPERIMENTAL_RESOURCE_DETECTORS")
_GRPC = "otlp_proto_grpc"
# Modules from which a provider is built, and modules that some versions of the exporters import only when they are
# constructed or at their first export.
_BUILT_FROM = {
    "TRACES": ("opentelemetry.sdk.trace.export", "concurrent.futures.thread"),
    "METRICS": ("opentelemetry.sdk.metrics.export", "opentelemetry.sdk.metrics.view"),
    _GRPC: ("grpc._channel", "grpc.experimental"),
    "otlp_proto_http": (
        "encodings.idna",
        "importlib.readers",
        "importlib.resources.readers",
        "netrc",
        "opentelemetry.exporter.http.transport._requests",
        "requests",
    ),
}


#: The attributes that lead from an exporter to its session of ``requests``, in SDKs of one age each.
_SESSIONS = (("_session",), ("_client", "_transport", "_session"))
#: The providers that this package has built, also those of a call that an interrupt ended.
_built: list[object] = []


def provider(signal: str, *, build: bool) -> tuple[Any, bool]:
    """Return the provider in use for ``TRACES`` or ``METRICS``, and true if this package built it.

    With ``build``, a provider is built where none is set and the variables name an exporter. An error is one warning.
    Without a provider, the result is the placeholder of traces or None for metrics.
    """
    try:
        current = _current(signal)
        if current is not None and not is_placeholder(current):
            return current, any(current is built for built in _built)
        made = (_exporter(name, signal) for name in exporter_names(signal)) if build and not sdk_disabled() else ()
        if exporters := [exporter for exporter in made if exporter is not None]:
            build_provider = _build_tracer_provider if signal == "TRACES" else _build_meter_provider
            owned = build_provider(exporters)
            current = _current(signal)
            return current, current is owned
    except errors.ours(Exception) as error:
        _say_unusable(signal, "any", error)
    return (trace.get_tracer_provider() if signal == "TRACES" else None), False


def _current(signal: str) -> Any:
    if signal == "TRACES":
        return trace.get_tracer_provider()
    if METRICS_API not in sys.modules and not needs_metrics_api():
        return None
    from opentelemetry import metrics  # noqa: PLC0415 - imported already, by the program or by `preload`

    return metrics.get_meter_provider()


def _build_tracer_provider(exporters: list[Any]) -> TracerProvider:
    from opentelemetry.sdk.trace import TracerProvider as SDKProvider  # noqa: PLC0415 - 0.1 s, only when needed
    from opentelemetry.sdk.trace.export import (  # noqa: PLC0415
        BatchSpanProcessor,
        ConsoleSpanExporter,
        SimpleSpanProcessor,
    )

    delay = None if os.environ.get("OTEL_BSP_SCHEDULE_DELAY") else _SCHEDULE_DELAY_MILLIS
    owned = SDKProvider(resource=_resource(), shutdown_on_exit=False)
    for exporter in exporters:
        if isinstance(exporter, ConsoleSpanExporter):
            owned.add_span_processor(SimpleSpanProcessor(exporter))
        else:
            owned.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=delay))
    _built.append(owned)
    trace.set_tracer_provider(owned)
    return owned


def _build_meter_provider(exporters: list[Any]) -> MeterProvider:
    from opentelemetry import metrics  # noqa: PLC0415 - as above
    from opentelemetry.sdk.metrics import MeterProvider as SDKProvider  # noqa: PLC0415 - 0.1 s, only when needed
    from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader  # noqa: PLC0415

    interval = None if os.environ.get("OTEL_METRIC_EXPORT_INTERVAL") else _EXPORT_INTERVAL_MILLIS
    readers = [
        made if isinstance(made, MetricReader) else PeriodicExportingMetricReader(made, interval) for made in exporters
    ]
    owned = SDKProvider(metric_readers=readers, resource=_resource(), views=_views(), shutdown_on_exit=False)
    _built.append(owned)
    metrics.set_meter_provider(owned)
    return owned


def _views() -> list[Any]:
    """Return views with our buckets, which OTLP ignores in SDK 1.30, and without newer SDKs' limit of 2,000 series."""
    from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View  # noqa: PLC0415

    is_exponential = "exponential" in os.environ.get("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "")
    limit = {_LIMIT: _MOST_SERIES} if _LIMIT in inspect.signature(View).parameters else {}
    views = []
    for metric in semconv.METRICS.values():
        options: dict[str, Any] = dict(limit)
        if metric.kind == HISTOGRAM and not is_exponential:
            options["aggregation"] = ExplicitBucketHistogramAggregation(metric.buckets)
        if options:
            views.append(View(instrument_name=metric.name, **options))
    return views


def _resource() -> Resource:
    """Return the resource of built providers; `load` builds it earlier, because an event loop must not wait for it."""
    return _resource_of(os.getpid(), *map(os.environ.get, _RESOURCE_VARIABLES))


@functools.lru_cache(maxsize=1)
def _resource_of(*_: object) -> Resource:
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - 0.1 s, only when needed

    return Resource.create()


def load(signal: str) -> None:
    """Import the modules of a provider for ``TRACES`` or ``METRICS``; import errors are reported when it is built.

    The resource is built here unless the program has set a provider.
    """
    names = [] if sdk_disabled() else [_entry_name(name, signal) for name in exporter_names(signal)]
    for name in names:
        with errors.suppressed(Exception):
            _entry(signal, name)
    for module in [module for part in (signal, *names) for module in _BUILT_FROM.get(part, ())] if names else ():
        with errors.suppressed(ImportError):
            importlib.import_module(module)
    if names and not _is_set(signal):
        with errors.suppressed(Exception):
            _resource()


def needs_metrics_api() -> bool:
    """Return true when the environment asks for a MeterProvider."""
    return bool(exporter_names("METRICS") or os.environ.get("OTEL_PYTHON_METER_PROVIDER"))


def _is_set(signal: str) -> bool:
    """Return true when a provider is set; the public getters would set one that ``OTEL_PYTHON_*`` variables name."""
    if signal == "TRACES":
        return getattr(trace, "_TRACER_PROVIDER", None) is not None
    internal = getattr(sys.modules.get(METRICS_API), "_internal", None)
    return getattr(internal, "_METER_PROVIDER", None) is not None


def exporter_names(signal: str) -> list[str]:
    """Return the exporters that the environment names for a signal; an OTLP endpoint alone means ``otlp``."""
    named = os.environ.get(f"OTEL_{signal}_EXPORTER", "").strip()
    if not named and (
        os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    ):
        named = "otlp"
    return [name.strip() for name in named.split(",") if name.strip() not in ("", "none")]


def sdk_disabled() -> bool:
    """Return true when ``OTEL_SDK_DISABLED`` switches OpenTelemetry off."""
    return os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def is_placeholder(provider: object) -> bool:
    """Return True while no provider is set. The module is compared too, because Logfire has a class of this name."""
    kind = type(provider)
    return kind.__name__ in ("ProxyTracerProvider", "_ProxyMeterProvider") and kind.__module__.startswith(
        "opentelemetry."
    )


def _exporter(name: str, signal: str) -> Any:
    entry = _entry_name(name, signal)
    try:
        kind = _entry(signal, entry)
        made = None if kind is None else kind()
    except errors.ours(Exception) as error:
        _say_unusable(signal, name, error)
        return None
    if kind is None:
        hint = " OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf uses the one over HTTP." if entry == _GRPC else ""
        errors.warn_once(
            f"exporter {signal} {name}",
            f"The OTEL_* variables ask for the {signal.lower()} exporter {entry!r}, which no installed package has; "
            f"nothing is pushed through it.{hint}",
        )
        return None
    _part_connections(made)
    return made


def _entry_name(name: str, signal: str) -> str:
    """Return the name of an exporter's entry point; for ``otlp`` the standard protocol variables determine it."""
    if name != "otlp":
        return name
    variables = f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"
    protocol = next(filter(None, map(os.environ.get, variables)), "grpc")
    return _GRPC if protocol.strip() == "grpc" else "otlp_proto_http"


@functools.cache
def _entry(signal: str, name: str) -> Any:
    """Load an exporter class by its entry point; None where no installed package has one of this name."""
    found = importlib.metadata.entry_points(group=f"opentelemetry_{signal.lower()}_exporter", name=name)
    return next((entry.load() for entry in found), None)


def _say_unusable(signal: str, name: str, error: Exception) -> None:
    errors.warn_once(
        f"exporter {signal} {name}",
        f"The OTEL_* variables ask for a {signal.lower()} exporter that cannot be made, {name!r}; nothing is pushed "
        f"through it: {errors.described(error)}",
    )


# Reset of owned providers in a forked child, to which the SDK leaves its parent's counts and connections. The SDK has
# no public function for it.


def forget_counts(provider: Any) -> None:
    """Drop the counts that a forked child inherited, because the parent exports them.

    Renew the locks as well, because the parent's exporting thread may have held them at the fork.
    """
    consumer = provider._measurement_consumer  # noqa: SLF001
    consumer._lock = threading.Lock()  # noqa: SLF001
    for reader, storage in consumer._reader_storages.items():  # noqa: SLF001
        reader._export_lock = threading.Lock()  # noqa: SLF001
        storage._lock = threading.RLock()  # noqa: SLF001
        storage._instrument_view_instrument_matches = {}  # noqa: SLF001


def _part_connections(exporter: Any) -> None:
    """Let forked children open their own connections by copied adapters. A shared connection loses batches."""

    def renew(session: Any) -> None:
        for prefix, adapter in list(session.adapters.items()):
            session.mount(prefix, copy.copy(adapter))

    for path in _SESSIONS:
        session = functools.reduce(lambda owner, name: getattr(owner, name, None), path, exporter)
        if session is not None:
            fork.after_fork(errors.guarded("emit.fork")(functools.partial(renew, session)))
