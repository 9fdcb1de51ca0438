"""Where telemetry goes: the metric sink of ``AGENT_OTEL_METRICS=auto``, and the text for the log."""

from __future__ import annotations

import gc
import logging
import os
import sys
from types import CellType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal import errors
from agent_otel.telemetry import providers

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The client's functions that write an exposition, or return the function that does.
_WRITERS: Final = frozenset({"generate_latest", "choose_encoder"})


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


def of_spans(spans: str, *, exporting: bool, owned: bool) -> str:
    """Return a sentence on the destination of spans; ``spans`` is the setting."""
    if spans == "off":
        return "Spans are off."
    if providers.sdk_disabled():
        return "Spans are off, because OTEL_SDK_DISABLED is true."
    if owned:
        return "Spans are pushed by the exporter that the OTEL_* variables name."
    if exporting:
        return "Spans go to the program's own TracerProvider."
    return "Spans are exported once the program sets a TracerProvider."


def of_metrics(metrics: str, keeps: str, *, pushed: bool, owned: bool) -> str:
    """Return a sentence on the destination of metrics and its reason; ``metrics`` is the setting."""
    if metrics == "off":
        return "Metrics are off."
    if metrics == "prometheus":
        return "Metrics are in prometheus_client's registry."
    also = " They are in prometheus_client's registry as well." if metrics == "both" else ""
    if keeps and not pushed:
        return (
            f"Metrics stay in prometheus_client's registry, because {keeps}. OTEL_METRICS_EXPORTER=otlp pushes them "
            "instead, AGENT_OTEL_METRICS=both does both."
        )
    if owned:
        return f"Metrics are pushed by the exporter that the OTEL_* variables name.{also}"
    if pushed:
        return f"Metrics go to the program's own MeterProvider.{also}"
    return "Metrics are in prometheus_client's registry: no provider and no exporter is there for them."


def say(version: str, integrations: Mapping[tuple[str, str], str], spans: str, metrics: str) -> None:
    """Log the version, what is measured, and where spans and metrics go: one line at INFO, at first use."""
    measured = {name: version for (name, target), version in integrations.items() if target != "unmatched"}
    names = ", ".join(f"{name} {version}".rstrip() for name, version in sorted(measured.items()))
    text = f"agent_otel {version} measures {names or 'calls that the program hands to it'}. {spans} {metrics}"
    errors.warn_once("first use", text, level=logging.INFO)


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
        and _serves(vars(module), package)
        for name, module in sys.modules.copy().items()
    )


def _serves(names: Mapping[str, object], package: Any) -> bool:
    """Return True when a module has one of the client's writers, or a function that calls one."""
    if any(name in names and names[name] is getattr(package.exposition, name, None) for name in _WRITERS):
        return True
    if names.get("prometheus_client") is not package:
        return False
    values = list(names.values())  # another thread may be importing the module
    values += [member for value in values if type(value) is type for member in list(vars(value).values())]
    return any(type(value) is FunctionType and _writes(value.__code__) for value in values)


def _writes(code: CodeType) -> bool:
    inner = (constant for constant in code.co_consts if type(constant) is CodeType)
    return not _WRITERS.isdisjoint(code.co_names) or any(map(_writes, inner))
