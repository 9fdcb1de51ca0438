"""Runs of durable workflows: one trace each where no span is open around their steps.

A runtime that reports both ends of a run in this process has a span around its steps, ``invoke_workflow``, which is
opened for the first step that needs it. In other processes, and with other runtimes, the steps are children of what the
runtime propagates, or roots. A root is linked to the run's first span: that of another process, where a message of the
runtime carries it, else the first in its own.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from agent_otel import semconv
from agent_otel._internal import errors, fork
from agent_otel._internal.object_kinds import text
from agent_otel.core.execution_context import run_attributes
from agent_otel.telemetry import spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_otel.core.types import Step
    from agent_otel.telemetry.setup import Telemetry

_MOST = 1_024


class _Run:
    """A run of a workflow: its first span here, and the span around its steps where the runtime reports both ends."""

    #: The time of the run's begin in epoch nanoseconds, 0 where the runtime has not reported it.
    began_ns = 0
    workflow: str | None = None
    #: The span that the runtime itself has propagated.
    parent: SpanContext | None = None
    first: SpanContext | None = None
    span: spans.OpenSpan | None = None


class DurableRuns:
    """The runs of this process; the least recently used is dropped first, and its span ends then."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Drop all runs and renew the lock, for a forked child; the parent ends the spans."""
        self._lock = threading.RLock()
        self._runs: OrderedDict[str, _Run] = OrderedDict()
        self._ends_at_exit = False

    def began(self, execution_id: str, workflow: str | None, traceparent: str | None) -> None:
        """Record the begin of a run whose end will be reported; ``traceparent`` is what the runtime has propagated."""
        with self._run(execution_id) as run:
            if not run.began_ns:
                run.began_ns, run.workflow = time.time_ns(), workflow
                run.parent = _sampled(traceparent)

    def ended(self, execution_id: str) -> None:
        """End the span of a run."""
        with self._lock:
            run = self._runs.pop(execution_id, None)
        _end(run)

    def propagated(self, execution_id: str, traceparent: object) -> None:
        """Record the span that the runtime propagates in a run: the parent of its steps where no span is open."""
        parent = _sampled(text(traceparent))
        if parent is not None:
            with self._run(execution_id) as run:
                run.parent = parent

    def carried(self, execution_id: str, traceparent: object) -> None:
        """Record the first span of a run, which a message of another process carried."""
        first = _sampled(text(traceparent))
        if first is not None:
            with self._run(execution_id) as run:
                run.first = first

    def carrier(self, execution_id: str) -> str | None:
        """Return the first span of a run for a message to another process; None where none is sampled."""
        with self._lock:
            run = self._runs.get(execution_id)
            first = None if run is None else run.first
        if first is None or not first.trace_flags.sampled:
            return None
        return f"00-{first.trace_id:032x}-{first.span_id:016x}-{first.trace_flags:02x}"

    def around(self, out: Telemetry, step: Step) -> tuple[Span | None, Sequence[Link]]:
        """Return the parent and the links of a step's span, where no span is open."""
        if step.execution is None:
            return None, ()
        with self._run(step.execution) as run:
            if run.span is None and run.began_ns:
                run.span = self._opened(out, step.execution, run)
            if run.span is not None:
                return run.span.span, ()
            if run.parent is not None:
                return NonRecordingSpan(run.parent), ()
            return None, () if run.first is None else (Link(run.first),)

    def opened(self, step: Step, span: Span) -> None:
        """Remember the first span of a run in this process, to which later roots are linked."""
        if step.execution is not None:
            with self._run(step.execution) as run:
                if run.first is None:
                    run.first = span.get_span_context()

    @contextlib.contextmanager
    def _run(self, execution_id: str) -> Iterator[_Run]:
        """Hold the lock and a run; a run that is dropped for it ends afterwards, because exporters may be slow."""
        dropped = None
        try:
            with self._lock:
                run = self._runs.get(execution_id)
                if run is None:
                    run = self._runs[execution_id] = _Run()
                    dropped = self._runs.popitem(last=False)[1] if len(self._runs) > _MOST else None
                else:
                    self._runs.move_to_end(execution_id)
                yield run
        finally:
            _end(dropped)

    def _opened(self, out: Telemetry, execution_id: str, run: _Run) -> spans.OpenSpan | None:
        if out.tracer is None:
            return None
        operation = semconv.INVOKE_WORKFLOW
        attributes = run_attributes(operation, execution_id, out.label_attributes)
        if not self._ends_at_exit:
            # Registered after the provider's own, this runs before it.
            atexit.register(self.end_all)
            self._ends_at_exit = True
        within = None if run.parent is None else trace.set_span_in_context(NonRecordingSpan(run.parent))
        mode, name = out.settings.spans, run.workflow or ""
        return spans.open_run_span(out.tracer, mode, operation, name, attributes, start_ns=run.began_ns, within=within)

    @errors.guarded("run.exit")
    def end_all(self) -> None:
        """End all spans, when the interpreter exits."""
        with self._lock:
            runs, self._runs = self._runs, OrderedDict()
        for run in runs.values():
            _end(run)


def _end(run: _Run | None) -> None:
    if run is not None and run.span is not None:
        run.span.end()


def _sampled(traceparent: str | None) -> SpanContext | None:
    """Return the context of a propagated span that is sampled; below another one no span would be recorded."""
    if not traceparent:
        return None
    found = TraceContextTextMapPropagator().extract({"traceparent": traceparent})
    context = trace.get_current_span(found).get_span_context()
    return context if context.is_valid and context.trace_flags.sampled else None


durable_runs = DurableRuns()
fork.after_fork(durable_runs.reset)
