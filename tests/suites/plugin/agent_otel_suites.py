"""The pytest plugin of a framework's own tests: sets a TracerProvider where asked, and writes what the package counted.

It stands alone in its folder, which is on the path of the framework's tests.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

if "SUITES_PROVIDER" in os.environ:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    trace.set_tracer_provider(TracerProvider())

_seen: dict[str, str] = {}


def pytest_runtest_setup() -> None:
    """Keep the test and the traceback of the first internal error of each place, from the package's first use on."""
    found: Any = sys.modules.get("agent_otel._internal.errors")
    if found is None or found.handler.__module__ == __name__:
        return
    handle = found.handler

    def keep(where: str) -> None:
        _seen.setdefault(where, f"{os.environ.get('PYTEST_CURRENT_TEST')}\n{traceback.format_exc()}")
        handle(where)

    found.handler = keep


def pytest_unconfigure() -> None:
    """Write the internal errors, the warnings and the sizes of the metrics of this process into a file of its own."""
    found = sys.modules.get("agent_otel._internal.errors")
    if found is None:
        return
    counts = {"errors": dict(found.errors), "seen": _seen, "warnings": found.warnings(), "measured": _measured()}
    folder = Path(os.environ["SUITES_COUNTS"])
    (folder / f"{os.getpid()}.json").write_text(json.dumps(counts), encoding="utf-8")


def _measured() -> dict[str, float]:
    """Return the sums of all counters and the counts of all histograms in the registry of ``prometheus_client``."""
    try:
        client: Any = importlib.import_module("prometheus_client")  # only now: the suite may not load it
    except ImportError:
        return {}
    totals: dict[str, float] = {}
    for family in client.REGISTRY.collect():
        for sample in family.samples:
            if sample.name.startswith(("agent_otel_", "gen_ai_")) and sample.name.endswith(("_total", "_count")):
                totals[sample.name] = totals.get(sample.name, 0) + sample.value
    return totals
