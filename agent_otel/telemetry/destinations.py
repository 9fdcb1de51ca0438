"""Choice of the metric sink when ``AGENT_OTEL_METRICS`` is ``auto``: the scraped registry, or an exporter."""

from __future__ import annotations

import gc
import logging
import os
import sys
from types import CellType, ModuleType

from agent_otel._internal import errors
from agent_otel.telemetry import providers


def registry_keeps() -> str:
    """Return the reason why metrics stay in the registry although an OTLP endpoint is set; empty when they do not.

    An endpoint alone is usually set for traces. Variables that name metrics decide without this rule.
    """
    if os.environ.get("OTEL_METRICS_EXPORTER", "").strip() or os.environ.get("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"):
        return ""
    if not providers.exporter_names("METRICS"):
        return ""
    if os.environ.get("OTEL_TRACES_EXPORTER", "").strip() and providers.exporter_names("TRACES"):
        return "only OTEL_TRACES_EXPORTER names an exporter"
    return "the program exposes it" if _is_exposed() else ""


def say(keeps: str, *, pushed: bool, owned: bool) -> None:
    """Log the chosen sink and the reason once, at INFO."""
    if keeps and not pushed:
        text = (
            f"Metrics stay in prometheus_client's registry, because {keeps}. OTEL_METRICS_EXPORTER=otlp pushes them "
            "instead, AGENT_OTEL_METRICS=both does both."
        )
    elif owned:
        text = "Metrics are pushed by the exporter that the OTEL_* variables name."
    elif pushed:
        text = "Metrics go to the program's own MeterProvider."
    else:
        text = "Metrics are in prometheus_client's registry: no provider and no exporter is there for them."
    errors.warn_once("metrics", text, level=logging.INFO)


def _is_exposed() -> bool:
    """Return True when the program serves the default registry through a server, an application or its own handler."""
    package = sys.modules.get("prometheus_client")
    if package is None:
        return False
    # start_http_server, make_wsgi_app and make_asgi_app return closures over the registry that they serve.
    if any(type(referrer) is CellType for referrer in gc.get_referrers(package.REGISTRY)):
        return True
    return bool(os.environ.get("PROMETHEUS_MULTIPROC_DIR")) or any(
        type(module) is ModuleType
        and name.partition(".")[0] not in ("agent_otel", "opentelemetry", "prometheus_client")
        and vars(module).get("generate_latest") is package.generate_latest
        for name, module in sys.modules.copy().items()
    )
