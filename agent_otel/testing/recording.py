"""A recording: the package measures into memory for the time of one test, with fresh state and without a collector.

The program's own providers get the spans and metrics as they do in production. No provider is built from ``OTEL_*``
variables, and nothing listens on a port.
"""

from __future__ import annotations

import contextlib
import functools
import uuid
from typing import TYPE_CHECKING

from opentelemetry import metrics, trace

from agent_otel import semconv, settings
from agent_otel._bootstrap import startup
from agent_otel._internal import env
from agent_otel._internal.version import __version__
from agent_otel.core import execution_context, switches, tool_names
from agent_otel.core.executions import executions
from agent_otel.core.round_counts import round_counts
from agent_otel.core.tool_definitions import definitions, drift
from agent_otel.integrations import preload
from agent_otel.telemetry import setup
from agent_otel.telemetry.sinks.otel import OTelSink
from agent_otel.testing.agent_run import AgentRun
from agent_otel.testing.contracts import Contracts
from agent_otel.testing.memory_sink import MemorySink

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_otel.telemetry.sinks.base import Sink

#: The recordings that are open in this process, the innermost last.
_open: list[MemorySink] = []


@contextlib.contextmanager
def record(contracts: Path | None = None, *, update: bool = False) -> Iterator[AgentRun]:
    """Measure all agents of this process inside the block, whatever the thread or the task.

    ``contracts`` is the folder of the snapshots that `AgentRun.assert_contract` compares with; ``update`` writes them.
    The package is activated if it is not active yet, and measures nothing between the blocks in that case.

    Raises:
        RuntimeError: ``AGENT_OTEL`` switches the package off.
    """
    activate()
    was_enabled = switches.enabled
    sink = MemorySink()
    if not _open:
        _forget()
    before = setup.resolved, execution_context.default
    _open.append(sink)
    try:
        setup.resolved = _telemetry([*_open, *_of_the_program()])
        execution_context.default = f"test-{uuid.uuid4().hex}"
        switches.enabled = True
        yield AgentRun(sink, Contracts(contracts, update=update))
    finally:
        setup.resolved, execution_context.default = before
        switches.enabled = was_enabled
        _open.remove(sink)


def activate() -> None:
    """Activate the package if it is not active, measuring inside recordings only, and load what measures.

    Raises:
        RuntimeError: ``AGENT_OTEL`` switches the package off.
    """
    if not env.active:
        startup.activate()
        switches.enabled = False
    if not env.active:
        raise RuntimeError("AGENT_OTEL switches agent_otel off: unset it for tests that use agent_run")
    preload.load()


def _forget() -> None:
    """Drop what earlier tests have left: executions, and what was learned of tools."""
    for memory in (executions, drift, definitions, round_counts, tool_names):
        memory.reset()


def _telemetry(sinks: list[Sink]) -> setup.Telemetry:
    chosen = settings.current()
    tracer = None if chosen.spans == "off" else trace.get_tracer(semconv.SCOPE, __version__)
    return setup.Telemetry(chosen, tracer, sinks)


def _of_the_program() -> list[Sink]:
    return [] if settings.current().metrics == "off" else [_meters()]


@functools.lru_cache(maxsize=1)
def _meters() -> Sink:
    """Return the sink of the program's MeterProvider; it records nothing until the program sets one."""
    return OTelSink(metrics.get_meter(semconv.SCOPE, __version__))
