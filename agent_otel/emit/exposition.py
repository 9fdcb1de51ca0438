"""The ``/metrics`` endpoint: served only when a port is set, from the first use on, by a daemon thread."""

from __future__ import annotations

import os

import prometheus_client
from prometheus_client import multiprocess

from agent_otel import _shield


def serve(port: int, host: str) -> None:
    """Serve the registry; a port that cannot be had is one warning.

    OpenMetrics with exemplars is served to scrapers that accept it. In multiprocess mode the endpoint answers for
    all processes.
    """
    registry = prometheus_client.REGISTRY
    try:
        if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
            registry = prometheus_client.CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        prometheus_client.start_http_server(port, host, registry)
    except ValueError as error:
        _shield.say_once(f"port {port}", f"Cannot serve metrics on {host}:{port}: {error}")
    except OSError as error:
        _shield.say_once(
            f"port {port}",
            f"Cannot serve metrics on {host}:{port} ({error.strerror or error}); another process has it, often a "
            "sibling worker. Give each worker a port of its own, or push with OTEL_METRICS_EXPORTER=otlp.",
        )
