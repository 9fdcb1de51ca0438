"""The ``/metrics`` endpoint, if a port is set: one daemon thread serves it from the import of a framework on.

While another process has the port, the thread retries; so a sibling takes over when a worker is recycled. A process
that forks before its first tool call is taken for the parent of workers and closes the port for them. It keeps the
port when ``PROMETHEUS_MULTIPROC_DIR`` is set, because each process then serves the metrics of all.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import sys
import threading
import time
from functools import partial
from itertools import accumulate
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import prometheus_client
from prometheus_client import multiprocess, utils
from prometheus_client import values as client_values
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar as ClientExemplar

from agent_otel import semconv
from agent_otel._internal import errors, fork
from agent_otel.semconv.types import COUNTER, GAUGE, HISTOGRAM
from agent_otel.telemetry.sinks import Cells, CounterCell, HistogramCell, Series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.metrics_core import Metric as Family

    from agent_otel.semconv.types import Metric
    from agent_otel.telemetry.sinks import Exemplar, Kept

    #: Returns gauges of value 1, with label values, that are not in the registry yet.
    Unpublished = Callable[[], list[tuple[Metric, tuple[str, ...]]]]


_RETRY_SECONDS = 1.0
_POLL_SECONDS = 0.5


class _LeftError(Exception):
    """A signal to the serving thread that this process closes the port for others."""


class _Silent(WSGIRequestHandler):
    """A request handler that logs no line to standard error."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that the class gives it
        """Log nothing."""


class _Server(ThreadingMixIn, WSGIServer):
    """The listening socket, and a thread for each request."""

    daemon_threads = True
    allow_reuse_port = False
    is_left = False

    def __init__(self, host: str, port: int) -> None:
        self.address_family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        super().__init__(address[:2], _Silent)  # type: ignore[arg-type]

    def server_bind(self) -> None:
        """Bind without looking up the host's full name, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing about a client that resets its connection, as probes of load balancers do."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def service_actions(self) -> None:
        """Stop serving when this process closes the port for others."""
        if self.is_left:
            raise _LeftError


class _Registry(Collector):
    """A proxy of the program's registry: a closure over that would be taken for the program's own application."""

    def __init__(self, unpublished: Unpublished) -> None:
        self._unpublished = unpublished

    def collect(self) -> Iterator[Family]:
        """Yield the registry's metrics and those that are unpublished, by which an idle process is seen."""
        names = set()
        for family in prometheus_client.REGISTRY.collect():
            names.add(family.name)
            yield family
        waiting: dict[str, GaugeMetricFamily] = {}
        for metric, values in self._unpublished():
            name = metric.prometheus_name
            if name not in waiting:
                waiting[name] = GaugeMetricFamily(name, metric.meaning, labels=metric.prometheus_labels)
            waiting[name].add_metric(values, 1)
        yield from (family for name, family in waiting.items() if name not in names)

    def restricted_registry(self, names: list[str]) -> Any:
        """Return the part of the registry that a scrape selects by ``name[]``."""
        return prometheus_client.REGISTRY.restricted_registry(names)


def _is_multiprocess() -> bool:
    return bool(os.environ.get("PROMETHEUS_MULTIPROC_DIR"))


class _Endpoint:
    """The endpoint of this process: its port, its server and the serving thread."""

    def __init__(self) -> None:
        self._address: tuple[str, int] | None = None
        self._error: Exception | None = None
        self._unpublished: Unpublished = list
        self._is_used = False
        self._server: _Server | None = None
        self._binding = threading.Lock()
        self._turn = 0  # number of the serving thread; earlier threads end
        self._process = os.getpid()
        fork.after_fork(self._after_fork_in_child)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_parent=self._after_fork_in_parent)

    def open(self, host: str, port: int, unpublished: Unpublished = list) -> None:
        """Serve the registry and what is ``unpublished``, as soon as the port is free."""
        if self._address is None:
            self._address, self._unpublished = (host, port), unpublished
            self._bind()
            try:
                self._start()
            except errors.ours(RuntimeError) as error:  # no thread can start: a subinterpreter, the system's limit
                server, self._error = self._server, error
                self._leave()
                if server is not None:
                    server.server_close()

    def use(self, host: str, port: int) -> None:
        """Serve the registry at the first tool call at the latest; warn once when the port cannot be bound."""
        if self._process != os.getpid():  # forked without Python's hooks, as by uWSGI: the server is the parent's
            self._after_fork_in_child()
        self._is_used = True
        self.open(host, port)
        self._bind()
        if self._server is None and self._error is not None:
            _say(host, port, self._error)

    def _start(self) -> None:
        self._turn += 1
        threading.Thread(target=self._serve, args=(self._turn,), name="agent_otel-metrics", daemon=True).start()

    def _bind(self) -> None:
        with self._binding:
            if self._address is not None and self._server is None:
                self._try(*self._address)

    def _try(self, host: str, port: int) -> None:
        try:
            registry: Any = _Registry(self._unpublished)
            if _is_multiprocess():
                registry = prometheus_client.CollectorRegistry()
                multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
            server = _Server(host, port)
            server.set_app(prometheus_client.make_wsgi_app(registry))
        except errors.ours(OSError, ValueError) as error:
            self._error = error
        else:
            self._error, self._server = None, server

    def _serve(self, turn: int) -> None:
        while turn == self._turn:
            server = self._server
            if server is None:
                time.sleep(_RETRY_SECONDS)
                if turn == self._turn:
                    self._bind()
                continue
            try:
                server.serve_forever(_POLL_SECONDS)
            except _LeftError:
                server.server_close()
                return

    def _leave(self) -> None:
        self._turn += 1
        self._address = self._server = None

    def _after_fork_in_parent(self) -> None:
        if self._address is not None and not self._is_used and not _is_multiprocess():
            if self._server is not None:
                self._server.is_left = True
                self._server.socket.close()  # at once: the next worker would inherit it, and answer nobody
            self._leave()

    def _after_fork_in_child(self) -> None:
        """Close the inherited socket, and serve only if the parent had made no tool call, as a worker has."""
        self._process = os.getpid()
        self._binding = threading.Lock()
        if self._server is not None:
            self._server.socket.close()
            self._server = None
        if self._address is not None and not self._is_used:
            self._start()
        else:
            self._leave()


def _say(host: str, port: int, error: Exception) -> None:
    if getattr(error, "errno", None) != errno.EADDRINUSE:
        reason = errors.described(error)
        errors.warn_once(f"port {port}", f"agent_otel cannot serve metrics on {host}:{port}: {reason}")
        return
    errors.warn_once(
        f"port {port}",
        f"agent_otel cannot serve metrics on {host}:{port}, which AGENT_OTEL_PROMETHEUS_PORT names (Address already in "
        "use): another process has it, often a sibling worker, and only its numbers are scraped. Set "
        "PROMETHEUS_MULTIPROC_DIR to an empty folder, so that the worker with the port answers for all; or give each "
        "worker a port of its own, or push with OTEL_METRICS_EXPORTER=otlp.",
        level=logging.INFO if _is_multiprocess() else logging.WARNING,
    )


endpoint = _Endpoint()


# Metric families of the Prometheus sink's cells, in the client's registry, for a scrape. In multiprocess mode
# (``PROMETHEUS_MULTIPROC_DIR``) the sink uses the client's own metrics, because only these write the files that its
# collector adds up; the client then drops exemplars.

_text_of: Callable[[float], str] = utils.floatToGoString


def _given(kept: Kept | None) -> ClientExemplar | None:
    return None if kept is None else ClientExemplar(kept[0].labels, kept[1], kept[0].at)


class _Exposed(Collector):
    """The cells of one metric, as a collector of the client."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    def _family(self) -> Any:
        metric = self._cells.metric
        make = _FAMILIES[metric.kind]
        return make(metric.prometheus_name, metric.meaning, labels=metric.prometheus_labels)

    def describe(self) -> Iterator[Family]:
        """Yield the metric without samples, so that the registry reserves its name."""
        yield self._family()

    def collect(self) -> Iterator[Family]:
        """Yield the metric with its samples."""
        family = self._family()
        ends_with_run = self._cells.metric.labels[-1:] == (semconv.WORKFLOW_NAME,)
        for every, cell in self._cells.current():
            # A series that no named run moves is exposed without the labels of the run.
            values = every[:-2] if ends_with_run and not any(every[-2:]) else every
            if isinstance(cell, HistogramCell):
                counts, total, exemplars = cell.copied()
                bounds = map(_text_of, (*cell.bounds, float("inf")))
                marks = map(_given, map(exemplars.get, range(len(counts))))
                if any(counts):  # a histogram is exposed from its first value on, as in OpenTelemetry
                    family.add_metric(values, list(zip(bounds, accumulate(counts), marks, strict=True)), total)
            elif isinstance(cell, CounterCell):
                # In clients before 0.22, only a sample of a counter takes an exemplar.
                labels = dict(zip(family._labelnames, values))  # noqa: B905, SLF001 - as the client does
                family.add_sample(f"{family.name}_total", labels, cell.value, exemplar=_given(cell.exemplar))
            else:
                family.add_metric(values, cell.value)
        yield family


_FAMILIES: dict[str, Any] = {HISTOGRAM: HistogramMetricFamily, COUNTER: CounterMetricFamily, GAUGE: GaugeMetricFamily}
_METHODS = {HISTOGRAM: "observe", COUNTER: "inc", GAUGE: "set"}


class _ClientSeries(Series):
    """A series of one of the client's own metrics."""

    __slots__ = ("_record", "_takes_exemplars")

    def __init__(self, child: Any, kind: str) -> None:
        self._record = getattr(child, _METHODS[kind])
        self._takes_exemplars = kind != GAUGE

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        if exemplar is not None and self._takes_exemplars:
            self._record(value, exemplar.labels)
        else:
            self._record(value)


def client_metric(
    metric: Metric, registry: prometheus_client.CollectorRegistry | None
) -> Callable[[tuple[str, ...]], Series]:
    """Return the series of a metric of the client itself, or cells that nothing reads where its name is taken."""
    name, labels, meaning = metric.prometheus_name, metric.prometheus_labels, metric.meaning
    if metric.name == semconv.PROCESS_START.name:
        # A scrape gets the smallest start time, also of ended processes. The process that made it has the file: the
        # client begins all gauges of a forked child at 0 in the child's files.
        file = f"{os.getpid()}-start"
        value: Any = client_values.MultiProcessValue(lambda: file)  # type: ignore[no-untyped-call]
        return lambda values: _ClientSeries(value(GAUGE, name, name, labels, values, meaning, "min"), GAUGE)
    made: Any = prometheus_client.Counter
    if metric.kind == HISTOGRAM:
        made = partial(prometheus_client.Histogram, buckets=metric.buckets)
    elif metric.kind == GAUGE:
        mode: Any = "livemin" if metric is semconv.TURNS_LEFT else "livemax" if metric.is_momentary else "max"
        made = partial(prometheus_client.Gauge, multiprocess_mode=mode)
    try:
        made = made(name, meaning, labels, registry=registry or prometheus_client.REGISTRY)
    except errors.ours(ValueError):
        _say_taken(metric)
        return Cells(metric).series
    return lambda values: _ClientSeries(made.labels(*values) if values else made, metric.kind)


def expose(cells: Cells, registry: prometheus_client.CollectorRegistry | None) -> None:
    """Put the cells of a metric into a registry, by default the client's own."""
    try:
        (registry or prometheus_client.REGISTRY).register(_Exposed(cells))
    except errors.ours(ValueError):
        _say_taken(cells.metric)


def _say_taken(metric: Metric) -> None:
    errors.warn_once(
        f"taken {metric.prometheus_name}",
        f"Another part of the program already exposes {metric.prometheus_name}; ours is not exposed.",
    )
