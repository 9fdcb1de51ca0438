"""Collection of facts inside the interpreter that is diagnosed; prints them as JSON.

``agent-otel doctor`` starts it with ``python -c``, as that interpreter starts a program. It imports the frameworks that
are installed, as the program would, and sends one span and one data point to the exporters.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import site
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_otel._internal import env

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME = "agent_otel_doctor"
#: True when a start-up file has switched the package on; its import does so as well.
_active = False
_STARTUP_FILES = ("agent_otel_startup.pth", "agent_otel_startup.start")
#: Seconds that an exporter waits for a collector, unless the environment sets it.
_EXPORT_TIMEOUT = "3"
_SHORTEST_SECRET = 6


class Collecting(logging.Handler):
    """A handler that keeps the messages of loggers from a level on."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.lines: list[dict[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the text of a record."""
        self.lines.append({"level": record.levelname, "logger": record.name, "text": record.getMessage()})


def main(*, started: bool) -> None:
    """Print the facts on one line of standard output; ``started`` is true when a start-up file loaded the package."""
    global _active  # noqa: PLW0603 - set once
    _active = started and env.active
    facts = collect()
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def collect() -> dict[str, Any]:
    """Return all facts. A part that fails holds the class of its error."""
    handler = Collecting(logging.INFO)
    for name in ("agent_otel", "opentelemetry"):
        logging.getLogger(name).addHandler(handler)
    logging.getLogger("agent_otel").setLevel(logging.INFO)
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR", "")
    can_write = Path(folder).is_dir() and os.access(folder, os.W_OK)
    parts: dict[str, Callable[[], Any]] = {
        "interpreter": _interpreter,
        "switch": lambda: {"value": os.environ.get("AGENT_OTEL"), "active": _active, "on": env.ON, "off": env.OFF},
        "settings": _settings,
        "integrations": _integrations,
        "remedies": _remedies,
        "multiprocess": lambda: {"folder": folder, "can_write": can_write},
        "exporters": lambda: _exporters(handler),
        "telemetry": _telemetry,
    }
    facts: dict[str, Any] = {}
    with contextlib.redirect_stdout(sys.stderr):  # a framework may print while it is imported
        for name, part in parts.items():
            facts[name] = _collected(part)
    shown: dict[str, Any] = _without(_secrets(), {**facts, "messages": handler.lines})
    return shown


def _secrets() -> list[str]:
    """Return the values of the exporters' headers, and without their schemes such as ``Bearer``, the longest first."""
    lists = [value.split(",") for name, value in os.environ.items() if name.startswith("OTEL_") and "_HEADERS" in name]
    values = [header.partition("=")[2].strip() for headers in lists for header in headers]
    values += [value.rpartition(" ")[2] for value in values]
    return sorted((value for value in values if len(value) >= _SHORTEST_SECRET), key=len, reverse=True)


def _without(secrets: list[str], facts: Any) -> Any:
    """Return facts with masked secrets: an exporter's message may repeat a secret without its address."""
    from agent_otel._internal.errors import masked  # noqa: PLC0415

    if isinstance(facts, dict):
        return {name: _without(secrets, value) for name, value in facts.items()}
    if isinstance(facts, list | tuple):
        return [_without(secrets, value) for value in facts]
    if isinstance(facts, str):
        facts = masked(facts)
        for secret in secrets:
            facts = facts.replace(secret, "***")
    return facts


def _collected(part: Callable[[], Any]) -> Any:
    try:
        return part()
    except Exception as error:
        return {"error": type(error).__name__}


def _interpreter() -> dict[str, Any]:
    from agent_otel._internal import __version__  # noqa: PLC0415 - the package is read part by part

    folder = Path(importlib.import_module("agent_otel").__file__ or "").resolve().parent.parent
    folders = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    return {
        "executable": sys.executable,
        "version": ".".join(map(str, sys.version_info[:3])),
        "package": __version__,
        "folder": str(folder),
        "no_site": bool(sys.flags.no_site),
        "startup_files": [
            str(Path(place) / name) for place in folders for name in _STARTUP_FILES if (Path(place) / name).is_file()
        ],
    }


def _settings() -> list[dict[str, str]]:
    from dataclasses import fields  # noqa: PLC0415

    from agent_otel import settings  # noqa: PLC0415
    from agent_otel.settings.kinds import shown, variable_of  # noqa: PLC0415

    chosen = settings.current()
    rows = []
    for item in fields(chosen):
        variable = variable_of(item)
        if os.environ.get(variable, "").strip():
            value = "(secret)" if item.metadata["kind"].is_secret else shown(getattr(chosen, item.name))
            rows.append({"variable": variable, "value": value})
    return rows


def _integrations() -> list[dict[str, Any]]:
    """Import the supported frameworks that are installed, and return the wrapped functions of each."""
    from agent_otel import settings  # noqa: PLC0415
    from agent_otel.integrations import versions  # noqa: PLC0415
    from agent_otel.integrations.registry import INTEGRATIONS  # noqa: PLC0415
    from agent_otel.telemetry import setup  # noqa: PLC0415

    disabled = settings.current().disabled_integrations
    rows = []
    for integration in INTEGRATIONS:
        version = versions.installed(integration.distribution)
        if version is None or not integration.is_chosen(os.environ):
            continue
        modules = {candidate.module for entry in integration.sites for candidate in entry.candidates}
        for module in sorted(modules if _active else ()):
            with contextlib.suppress(Exception, SystemExit):
                importlib.import_module(module)
        rows.append(
            {
                "name": integration.name,
                "distribution": integration.distribution,
                "version": version,
                "disabled": integration.is_disabled(disabled),
                "wrapped": setup.integrations().get(integration.name, []),
            }
        )
    return rows


def _remedies() -> list[dict[str, Any]]:
    """Return the remedies that are set, each with the integrations that it can act on and the rest."""
    from agent_otel import settings  # noqa: PLC0415

    rows = []
    for reader, ability, names in (
        ("ToolReader", "replace", settings.ON_RESULTS),
        ("ModelReader", "rewrite", settings.ON_REQUESTS),
    ):
        variables = settings.in_use(settings.current(), names)
        able = _able(reader, ability) if variables else {}
        acts, not_acts = ([name for name, is_able in able.items() if is_able is wanted] for wanted in (True, False))
        if able:
            rows.append({"variables": variables, "acts": acts, "without_effect": not_acts})
    return rows


def _able(reader: str, ability: str) -> dict[str, bool]:
    """Return the integrations that wrap a function of this kind; true where one of their readers has the ability.

    A layer above a provider's SDK without the ability is left out: its requests pass the SDK.
    """
    from agent_otel.integrations.registry import INTEGRATIONS  # noqa: PLC0415
    from agent_otel.telemetry import setup  # noqa: PLC0415

    found: dict[str, bool] = {}
    wrapped = setup.integrations()
    for name, module, candidate in (
        (entry.name, place.adapter, one)
        for entry in INTEGRATIONS
        for place in (entry.whole().sites if entry.name in wrapped else ())
        for one in place.candidates
    ):
        if f"{candidate.module}:{candidate.wraps[0].target}" not in wrapped.get(name, ()):
            continue
        adapter = importlib.import_module(f"agent_otel.integrations.{module}")
        readers = [getattr(adapter, wrap.reader) for wrap in candidate.wraps]
        own = [one for one in readers if type(one).__name__ == reader]
        is_able = any(getattr(one, ability) is not None for one in own)
        if is_able or not all(getattr(one, "outermost", False) for one in own):
            found[name] = found.get(name, False) or is_able
    return found


def _exporters(handler: Collecting) -> list[dict[str, Any]]:
    """Send a span and a data point through each exporter that the ``OTEL_*`` variables name."""
    from agent_otel.telemetry import providers  # noqa: PLC0415

    os.environ.setdefault("OTEL_EXPORTER_OTLP_TIMEOUT", _EXPORT_TIMEOUT)
    return [
        _sent(signal, name, handler)
        for signal in ("TRACES", "METRICS")
        for name in ([] if providers.sdk_disabled() else providers.exporter_names(signal))
    ]


def _sent(signal: str, name: str, handler: Collecting) -> dict[str, Any]:
    """Export one item and return the outcome."""
    from agent_otel.telemetry import providers  # noqa: PLC0415

    before = len(handler.lines)
    exporter = providers._exporter(name, signal)  # noqa: SLF001
    outcome = "no exporter"
    if exporter is not None and hasattr(exporter, "export"):
        with contextlib.redirect_stdout(sys.stderr):  # the console's exporter
            result = exporter.export(_spans() if signal == "TRACES" else _points())
        outcome = "delivered" if getattr(result, "name", "") == "SUCCESS" else "refused"
        exporter.shutdown()
    elif exporter is not None:
        outcome = "scraped"
    endpoint = getattr(exporter, "_endpoint", "")
    named = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT") or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
    return {
        "signal": signal.lower(),
        "name": name,
        "outcome": outcome,
        "target": endpoint if type(endpoint) is str and endpoint else named,
        "messages": [line["text"] for line in handler.lines[before:]],
    }


def _spans() -> Any:
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415

    span: Any = TracerProvider().get_tracer(_NAME).start_span(_NAME)
    span.end()
    return [span]


def _points() -> Any:
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: PLC0415

    reader = InMemoryMetricReader()
    MeterProvider(metric_readers=[reader]).get_meter(_NAME).create_counter(_NAME).add(1)
    return reader.get_metrics_data()


def _telemetry() -> bool:
    """Resolve the process's telemetry as the first tool call would; its messages name the destination."""
    from agent_otel.telemetry import setup  # noqa: PLC0415

    if _active:
        setup.telemetry()
    return _active
