"""OpenTelemetry providers: the program's own, else providers built from the standard ``OTEL_*`` variables.

No provider is resolved before the first measured call, so that a provider that the program sets earlier always wins.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import inspect
import os
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opentelemetry import trace

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel.semconv.types import HISTOGRAM
from agent_otel.telemetry import forked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


#: The providers that this package has built, also those of a call that an interrupt ended.
_built: list[object] = []


def tracer_provider(*, build: bool) -> tuple[TracerProvider, bool]:
    """Return the TracerProvider in use, and true if this package built it.

    With ``build``, a provider is built where none is set and the variables name an exporter.
    """
    provider = trace.get_tracer_provider()
    if not is_placeholder(provider) or not build:
        return provider, _is_built(provider)
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
    owned = SDKProvider(resource=_resource(*_resource_origin()), shutdown_on_exit=False)
    for exporter in exporters:
        if isinstance(exporter, ConsoleSpanExporter):
            owned.add_span_processor(SimpleSpanProcessor(exporter))
        else:
            owned.add_span_processor(BatchSpanProcessor(pace_spans(exporter), schedule_delay_millis=delay))
    _built.append(owned)
    trace.set_tracer_provider(owned)
    return trace.get_tracer_provider(), trace.get_tracer_provider() is owned


def meter_provider(*, build: bool) -> tuple[MeterProvider | None, bool]:
    """Return the MeterProvider in use or None, and true if this package built it.

    With ``build``, a provider is built where none is set and the variables name an exporter.
    """
    if METRICS_API not in sys.modules and not needs_metrics_api():
        return None, False
    from opentelemetry import metrics  # noqa: PLC0415 - imported already, by the program or by `preload`

    provider = metrics.get_meter_provider()
    if not is_placeholder(provider):
        return provider, _is_built(provider)
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
        made if isinstance(made, MetricReader) else PeriodicExportingMetricReader(pace_metrics(made), interval)
        for made in exporters
    ]
    resource = _resource(*_resource_origin())
    owned = SDKProvider(metric_readers=readers, resource=resource, views=_views(), shutdown_on_exit=False)
    _built.append(owned)
    metrics.set_meter_provider(owned)
    return metrics.get_meter_provider(), metrics.get_meter_provider() is owned


def _is_built(provider: object) -> bool:
    return any(provider is built for built in _built)


def _views() -> list[Any]:
    """Return views that set the buckets and the limits of series of our metrics.

    The OTLP exporter of SDK 1.30 ignores the instruments' bucket advice. Newer SDKs add up all but the first 2,000
    series of an instrument in one without attributes; a program's labels alone may have 200 sets of values.
    """
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


@functools.lru_cache(maxsize=1)
def _resource(*_: object) -> Resource:
    """Return the resource of built providers; the arguments are its origin.

    The SDK runs the detectors in threads and waits for them, which an event loop must not do. `load` builds the
    resource earlier.
    """
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - 0.1 s, only when needed

    return Resource.create()


def _resource_origin() -> tuple[object, ...]:
    """Return the process and the variables from which a resource is built."""
    return (os.getpid(), *map(os.environ.get, _RESOURCE_VARIABLES))


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
            _resource(*_resource_origin())


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


def _exporters(names: list[str], signal: str) -> list[Any]:
    """Create the exporters of these names; one that fails is left out with a warning."""
    made = (_exporter(name, signal) for name in names)
    return [exporter for exporter in made if exporter is not None]


class AbsentError(LookupError):
    """No installed package has an exporter of a name."""


def _exporter(name: str, signal: str) -> Any:
    entry = _entry_name(name, signal)
    try:
        made = _entry(signal, entry)()
    except AbsentError:
        _say_absent(signal, name, entry)
        return None
    except errors.ours(Exception) as error:
        _say_unusable(signal, name, error)
        return None
    forked.part_connections(made)
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
    """Load an exporter class by its entry point.

    Raises:
        AbsentError: no installed package provides an exporter of this name.
    """
    for entry in importlib.metadata.entry_points(group=f"opentelemetry_{signal.lower()}_exporter", name=name):
        return entry.load()
    raise AbsentError


def shielded_tracer_provider(*, build: bool) -> tuple[TracerProvider, bool]:
    """Do the same as ``tracer_provider``; on an error, log one warning and return the current provider."""
    try:
        return tracer_provider(build=build)
    except errors.ours(Exception) as error:
        _say_unusable("TRACES", "any", error)
        return trace.get_tracer_provider(), False


def shielded_meter_provider(*, build: bool) -> tuple[MeterProvider | None, bool]:
    """Do the same as ``meter_provider``; on an error, log one warning and return no provider."""
    try:
        return meter_provider(build=build)
    except errors.ours(Exception) as error:
        _say_unusable("METRICS", "any", error)
        return None, False


def _say_unusable(signal: str, name: str, error: Exception) -> None:
    errors.warn_once(
        f"exporter {signal} {name}",
        f"The OTEL_* variables ask for a {signal.lower()} exporter that cannot be made, {name!r}; nothing is pushed "
        f"through it: {errors.described(error)}",
    )


def _say_absent(signal: str, name: str, entry: str) -> None:
    hint = " OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf uses the one over HTTP." if entry == _GRPC else ""
    errors.warn_once(
        f"exporter {signal} {name}",
        f"The OTEL_* variables ask for the {signal.lower()} exporter {entry!r}, which no installed package has; "
        f"nothing is pushed through it.{hint}",
    )


#: Processor seconds that an exporter computes before it pauses.
_TURN_SECONDS = 0.0005
#: A pause: long enough for a waiting thread to wake up, so that it gets the interpreter.
_PAUSE_SECONDS = 0.00005

# Pauses of an exporter's thread while it encodes a batch, so that the program's threads get the interpreter. An
# exporter of OpenTelemetry encodes a batch in Python: 512 spans take 50 ms. A thread that computes keeps the
# interpreter for up to 5 ms (`sys.getswitchinterval`) each time that another thread asks for it, and a tool call asks
# several times. An exporter that pauses gives the interpreter up at once.


class PacedList(list[Any]):
    """A list that lets other threads run while its items are iterated over."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the items, and pause between two of them where the turn is over."""
        began = time.thread_time()
        for item in super().__iter__():
            yield item
            if time.thread_time() - began > _TURN_SECONDS:
                time.sleep(_PAUSE_SECONDS)
                began = time.thread_time()


def pace_spans(exporter: Any) -> Any:
    """Return the exporter of spans, whose ``export`` pauses between spans."""
    return _with_batches(exporter, PacedList)


def pace_metrics(exporter: Any) -> Any:
    """Return the exporter of metrics, whose ``export`` pauses between data points."""
    return _with_batches(exporter, _paced_metrics)


def _with_batches(exporter: Any, paced: Callable[[Any], Any]) -> Any:
    export = exporter.export

    @functools.wraps(export)
    def export_paced(batch: Any, *args: Any, **kwargs: Any) -> Any:
        return export(paced(batch), *args, **kwargs)

    exporter.export = export_paced
    return exporter


def _paced_metrics(batch: Any) -> Any:
    """Return a copy of ``MetricsData`` whose data points stand in lists that pause."""
    resources = [
        replace(resource, scope_metrics=[_paced_scope(scope) for scope in resource.scope_metrics])
        for resource in batch.resource_metrics
    ]
    return replace(batch, resource_metrics=resources)


def _paced_scope(scope: Any) -> Any:
    metrics = [
        replace(metric, data=replace(metric.data, data_points=PacedList(metric.data.data_points)))
        for metric in scope.metrics
    ]
    return replace(scope, metrics=metrics)
