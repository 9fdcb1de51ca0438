"""The telemetry of a process: providers, sinks and endpoint, resolved once at the first measured call."""

from __future__ import annotations

import functools
import hmac
import platform
import secrets
import threading
import time
from typing import TYPE_CHECKING

from agent_otel import semconv, settings
from agent_otel._internal import errors, fork
from agent_otel._internal.version import __version__
from agent_otel.settings.kinds import keys_of
from agent_otel.telemetry import destinations, forked, providers
from agent_otel.telemetry import flush as lifecycle
from agent_otel.telemetry.costliest import costliest
from agent_otel.telemetry.labels import Labelled, Labels
from agent_otel.telemetry.model_metrics import ModelMetrics
from agent_otel.telemetry.payload_metrics import PayloadMetrics
from agent_otel.telemetry.tool_metrics import Metrics

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from agent_otel.semconv.types import Metric
    from agent_otel.settings import Settings
    from agent_otel.telemetry.sinks.base import Sink

_NOWHERE = (
    "AGENT_OTEL_METRICS=otel, but the program has no MeterProvider and no OTEL_* variable names an exporter: "
    "what is counted until the program sets one is lost"
)
#: Seconds without a new attempt after a first use that failed; doubled with each failure that follows.
_FIRST_WAIT_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 300.0
#: The telemetry of this process; None before the first measured call.
resolved: Telemetry | None = None
_flusher: lifecycle.Flusher | None = None
_owned: list[object] = []
_integrations: dict[tuple[str, str], str] = {}
_lock = threading.Lock()
#: The thread that resolves telemetry while the lock is held.
_resolver: int | None = None


class UnavailableError(Exception):
    """Telemetry is being resolved in this thread, or could not be a short time ago and the next attempt is not due."""


class _Attempts:
    """Attempts to resolve telemetry, each of which costs milliseconds and files that are read."""

    def __init__(self) -> None:
        self._wait = 0.0
        self._due = 0.0

    def check(self) -> None:
        """Raise UnavailableError while no attempt is due."""
        if self._wait and time.monotonic() < self._due:
            raise UnavailableError

    def failed(self) -> None:
        """Wait from now on, twice as long as the last time."""
        self._wait = min(2 * self._wait or _FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS)
        self._due = time.monotonic() + self._wait


_attempts = _Attempts()


class Telemetry:
    """The tracer, the metrics and the settings of this process."""

    __slots__ = (
        "_by_values",
        "args_key",
        "captures",
        "label_attributes",
        "labels",
        "metrics",
        "models",
        "payloads",
        "settings",
        "sinks",
        "tracer",
    )

    def __init__(
        self, chosen: Settings, tracer: Tracer | None, sinks: list[Sink], values: tuple[str, ...] | None = None
    ) -> None:
        #: The labels of the program; None without any, and where the values are given.
        self.labels = Labels(chosen.labels) if chosen.labels and values is None else None
        names = tuple(name for name, _ in chosen.labels)
        if values is None:
            values = () if self.labels is None else self.labels.fixed
        self.label_attributes = {name: value for name, value in zip(names, values, strict=True) if value}
        self.sinks = sinks
        labelled = [Labelled(sink, names, values) for sink in sinks] if names else sinks
        metrics = Metrics([*labelled], chosen.large_result_bytes, chosen.remedies)
        self._by_values: dict[tuple[str, ...], Telemetry] = {}
        self.settings = chosen
        self.tracer = tracer
        self.metrics = metrics
        self.payloads = PayloadMetrics(metrics)
        self.models = ModelMetrics(metrics)
        self.captures = chosen.capture_content
        self.args_key = _args_key(chosen)

    def labelled(self) -> Telemetry:
        """Return the telemetry whose metrics and spans have the program's labels of this context."""
        values = () if self.labels is None else self.labels.now()
        found = self._by_values.get(values)
        if found is None:
            found = Telemetry(self.settings, self.tracer, self.sinks, values)
            found.args_key = self.args_key
            if self.labels is None or values != self.labels.fixed:  # alerts look for the start with a counter's labels
                found.metrics.set(semconv.PROCESS_START, (), time.time())
            found = self._by_values.setdefault(values, found)
        return found


def _args_key(chosen: Settings) -> bytes:
    """Return the key of the arguments' hashes: that of processes with the same secrets, else one of this process.

    Repeats are counted within one process; results are stored under keys that a retry in another process has again.
    """
    if chosen.hash_key:
        return chosen.hash_key.encode("utf-8", "surrogateescape")
    secret = next(iter(keys_of(chosen.claim_check_key)), None)
    if secret is None:
        return secrets.token_bytes(32)
    return hmac.digest(secret.encode("utf-8", "surrogateescape"), semconv.ARGS_HASH.encode(), "sha256")


def telemetry() -> Telemetry:
    """Return the telemetry of this process; the first call resolves providers, sinks and the endpoint.

    Raises:
        UnavailableError: this has failed, and is not to be tried again yet.
    """
    out = resolved
    if out is None:
        out = _first()
    return out if out.labels is None else out.labelled()


def _first() -> Telemetry:
    if _lock.locked() and _resolver == threading.get_ident():
        # A handler of the program's log or of a signal calls a tool, and must not wait for the thread that it is in.
        raise UnavailableError
    _attempts.check()
    with fork.loading, _lock:
        if resolved is not None:
            return resolved
        _attempts.check()  # another thread may have failed meanwhile
        first, spans, metrics = _use_first()
    destinations.say(__version__, dict(_integrations), spans, metrics)
    return first


def _use_first() -> tuple[Telemetry, str, str]:
    global resolved, _resolver  # noqa: PLW0603 - resolved once per process
    _resolver = threading.get_ident()
    try:
        first, spans, metrics = _resolve(settings.current())
        for (name, target), version in list(_integrations.items()):
            _publish(first, name, version, target)
    except Exception:
        _attempts.failed()
        raise
    errors.handler = first.metrics.count_internal_error(errors.handler)
    resolved = first
    return first, spans, metrics


def report_integration(name: str, version: str, target: str) -> None:
    """Publish the version and a wrapped function of an integration, now or when telemetry is resolved."""
    # Without the lock: this runs inside an import of the program, and resolving imports while it holds the lock.
    _integrations[name, target] = version
    if resolved is not None:
        _publish(resolved, name, version, target)


def _publish(out: Telemetry, name: str, version: str, target: str) -> None:
    out.metrics.set(semconv.INSTRUMENTATION_INFO, (name, version, target), 1)


def integrations() -> dict[str, list[str]]:
    """Return what was reported of each integration: the first function wrapped at each site, or `unmatched`."""
    targets: dict[str, list[str]] = {}
    for name, target in _integrations:
        targets.setdefault(name, []).append(target)
    return targets


def unpublished() -> list[tuple[Metric, tuple[str, ...]]]:
    """Return the gauges of value 1, with label values, that the first call publishes; none after it."""
    if resolved is not None:
        return []
    chosen = settings.current()
    names, fixed = _fixed(chosen.labels)
    found = [(semconv.BUILD_INFO, _build(chosen))]
    for (name, target), version in list(_integrations.items()):
        found.append((semconv.INSTRUMENTATION_INFO, (name, version, target)))
    return [(metric._replace(labels=(*metric.labels, *names)), (*values, *fixed)) for metric, values in found]


def _fixed(labels: tuple[tuple[str, str | None], ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of labels, and their values in the setting."""
    return tuple(name for name, _ in labels), tuple(value or "" for _, value in labels)


def _build(chosen: Settings) -> tuple[str, ...]:
    return __version__, platform.python_version(), "true" if chosen.scales_to_zero else ""


def flush(seconds: float) -> bool:
    """Flush the owned providers; return False when they do not finish within ``seconds``."""
    return _flusher is None or _flusher.flush(seconds)


def owns(provider: object) -> bool:
    """Return true when this package has built a provider."""
    return any(provider is owned for owned in _owned)


def _resolve(chosen: Settings) -> tuple[Telemetry, str, str]:
    """Return the telemetry, and a sentence each on where spans and metrics go."""
    tracer = None
    exporting = owned = False
    if chosen.spans != "off" and not providers.sdk_disabled():
        provider, owned = providers.shielded_tracer_provider(build=chosen.sdk)
        tracer = provider.get_tracer(semconv.SCOPE, __version__)
        exporting = not providers.is_placeholder(provider)
        if owned:
            _own(provider)
    spans = destinations.of_spans(chosen.spans, exporting=exporting, owned=owned)
    sinks, where = _sinks(chosen)
    made = Telemetry(chosen, tracer, sinks)
    metrics = made.metrics
    metrics.announce(chosen.limits)
    metrics.set(semconv.PROCESS_START, (), time.time())
    metrics.set(semconv.BUILD_INFO, _build(chosen), 1)
    if chosen.status_file:
        from agent_otel.telemetry.status_file import StatusFile  # noqa: PLC0415 - few processes have one

        StatusFile(chosen.status_file, lambda: _described(spans, where))
    return made, spans, where


def _described(spans: str, metrics: str) -> dict[str, object]:
    """Return what the status file has of this module."""
    return {
        "integrations": integrations(),
        "spans": spans,
        "metrics": metrics,
        "warnings": errors.warnings(),
        "costliest": costliest.rows(),
    }


def _sinks(chosen: Settings) -> tuple[list[Sink], str]:
    """Return the sinks of metrics, and a sentence on them."""
    sinks: list[Sink] = []
    provider, owned = None, False
    keeps = destinations.registry_keeps() if chosen.metrics == "auto" else ""
    if chosen.metrics in ("auto", "otel", "both") and not providers.sdk_disabled():
        provider, owned = providers.shielded_meter_provider(build=chosen.sdk and not keeps)
        if provider is None and chosen.metrics != "auto":
            from opentelemetry import metrics  # noqa: PLC0415 - a proxy, until the program sets its provider

            provider = metrics.get_meter_provider()
            if chosen.metrics == "otel":
                errors.warn_once("metrics nowhere", _NOWHERE)
        if provider is not None:
            from agent_otel.telemetry.sinks.otel import OTelSink  # noqa: PLC0415 - only the sinks in use are loaded

            sinks.append(made := OTelSink(provider.get_meter(semconv.SCOPE, __version__)))
            if owned:
                _own(provider)
                fork.after_fork(functools.partial(_begin_anew, provider, made, chosen.labels))
    where = destinations.of_metrics(chosen.metrics, keeps, pushed=bool(sinks), owned=owned)
    wanted = chosen.metrics in ("prometheus", "both") or (chosen.metrics == "auto" and not sinks)
    if wanted or (chosen.prometheus_port and chosen.metrics != "off"):
        from agent_otel.telemetry.sinks import prometheus  # noqa: PLC0415

        prometheus.prepare(chosen)
        if not prometheus.has_reader(provider):  # or each number would stand there twice
            sinks.append(prometheus.sink())
        if chosen.prometheus_port:
            from agent_otel.telemetry import metrics_server  # noqa: PLC0415

            metrics_server.endpoint.use(chosen.prometheus_host, chosen.prometheus_port)
            where += f" /metrics is on port {chosen.prometheus_port}."
    return sinks, where


@errors.guarded("emit.fork")
def _begin_anew(provider: object, sink: Sink, labels: tuple[tuple[str, str | None], ...]) -> None:
    """Count from 0 in a forked child, and record since when; the counts of a registry go on there."""
    forked.forget_counts(provider)
    names, fixed = _fixed(labels)
    for values in {fixed} if resolved is None else {fixed, *resolved._by_values}:  # noqa: SLF001 - of this module
        Labelled(sink, names, values).series(semconv.PROCESS_START, ()).record(time.time())


def _own(provider: object) -> None:
    """Register a provider that this package built for the flush at the end of the process."""
    global _flusher  # noqa: PLW0603 - one per process
    if owns(provider):
        return
    if _flusher is None:
        _flusher = lifecycle.Flusher()
        lifecycle.install(_flusher)
    _flusher.add(provider.force_flush)  # type: ignore[attr-defined]
    _owned.append(provider)


def _after_fork() -> None:
    """Renew the lock, which another thread of the parent process may have held."""
    global _lock  # noqa: PLW0603 - renewed in the child
    _lock = threading.Lock()


fork.after_fork(_after_fork)
