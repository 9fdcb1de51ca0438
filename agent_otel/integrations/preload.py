"""Imports what the first tool call needs, when a framework or ``agent_otel.tool`` is imported.

Imports inside a call would hold an event loop for a second, read files in it, and leave a child that is forked amid
them waiting for ever. Modules and the resource of providers are loaded here. Providers are resolved at the first call,
so that one of the program's own wins. Where a port is set, ``/metrics`` is served from here on.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from agent_otel import settings
from agent_otel._bootstrap import import_hook
from agent_otel._internal import errors
from agent_otel.core import captured_content, remedy_hooks
from agent_otel.telemetry import providers, setup

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.settings import Settings

_is_done = False


def load() -> None:
    """Import all that the settings call for, once; nothing is raised."""
    global _is_done  # noqa: PLW0603 - once per process
    if not _is_done:
        _is_done = True
        for part in (_sinks, _providers, _content, _remedies):
            errors.guarded("preload")(part)(settings.current())


def _sinks(chosen: Settings) -> None:
    if chosen.metrics in ("otel", "both") or (chosen.metrics == "auto" and providers.needs_metrics_api()):
        _otel_sink()
    elif chosen.metrics == "auto":
        import_hook.install({providers.METRICS_API: errors.guarded("preload")(_otel_sink)})
    if chosen.metrics in ("auto", "prometheus", "both") or (chosen.prometheus_port and chosen.metrics != "off"):
        importlib.import_module("agent_otel.telemetry.sinks.prometheus").prepare(chosen)
    if chosen.prometheus_port and chosen.metrics != "off":
        exposition = importlib.import_module("agent_otel.telemetry.metrics_server")
        exposition.endpoint.open(chosen.prometheus_host, chosen.prometheus_port, setup.unpublished)


def _otel_sink(_: str = "") -> None:
    importlib.import_module("agent_otel.telemetry.sinks.otel")


def _providers(chosen: Settings) -> None:
    if chosen.sdk and chosen.spans != "off":
        providers.load("TRACES")
    if chosen.sdk and chosen.metrics in ("auto", "otel", "both"):
        providers.load("METRICS")


def _content(chosen: Settings) -> None:
    if chosen.labels:
        importlib.import_module("opentelemetry.baggage")
    if chosen.capture_content and chosen.redact:
        with errors.suppressed(Exception):  # its module may be importing the framework; the first use looks again
            captured_content.redactor(chosen.redact)


def _remedies(chosen: Settings) -> None:
    if chosen.claim_check:
        importlib.import_module("encodings.idna")  # with which the name of a server is looked up
    remedy_hooks.result_remedies()
    remedy_hooks.request_remedies()
    remedy_hooks.dialogues()
    remedy_hooks.summaries()
    remedy_hooks.model_boundary()
    remedy_hooks.backpressure()


def _maker(module: str, name: str) -> Callable[..., Any]:
    """Return a function that makes what is in a module of the remedies, and imports that at its first call."""

    def make(*chosen: Settings) -> Any:
        return getattr(importlib.import_module(f"agent_otel.remedies.{module}"), name)(*chosen)

    return make


remedy_hooks.make_result_remedies = _maker("tool_results", "Remedies")
remedy_hooks.make_request_remedies = _maker("history.request_rewriter", "Requests")
remedy_hooks.make_dialogues = _maker("claim_check.dialogue", "Dialogues")
remedy_hooks.make_summaries = _maker("history.automatic_summaries", "Summaries")
remedy_hooks.make_model_boundary = _maker("model_boundary", "ModelBoundary")
remedy_hooks.make_backpressure = _maker("backpressure", "current")
