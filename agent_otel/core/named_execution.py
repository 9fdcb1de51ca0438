"""Executions that the program names: the span around the block, and the totals at its end."""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel._internal import collected, errors, failures
from agent_otel.core import execution_context, fragments, switches
from agent_otel.core.executions import executions
from agent_otel.core.remedy_hooks import result_remedies
from agent_otel.core.tool_visit import is_suppressed
from agent_otel.telemetry import metrics, spans
from agent_otel.telemetry.setup import Telemetry, telemetry

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from agent_otel.core.execution_context import Identity
    from agent_otel.telemetry.sinks.base import Exemplar


def _given_labels() -> dict[str, str] | None:
    """Return the labels of the execution that the program named in this context."""
    identity = execution_context.explicit.get()
    return None if identity is None else identity.labels


metrics.of_execution = _given_labels


class NamedExecution:
    """A block that the program names as an execution. If no span is open, it opens one and is one trace."""

    __slots__ = ("_identity", "_out", "_span", "_within")

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._out: Telemetry | None = None
        self._span: spans.OpenSpan | None = None
        self._within: Span | None = None

    @errors.guarded("execution.enter")
    def begin(self) -> None:
        """Open the span of the block and make it current."""
        if not switches.enabled or switches.muted.get() or is_suppressed():
            return
        collected.follow()
        collected.run_due()  # the end of another block of the same id may wait
        out = self._out = telemetry()  # with the labels of the block; its end is outside of them
        self._within = spans.current_span()
        self._span = _open_span(out, self._within, self._identity)
        if self._span is not None:
            self._span.attach()

    @errors.guarded("execution.finish")
    def finish(self, error: BaseException | None) -> None:
        """End the span, and record the totals; without tool calls or payloads, record nothing.

        The collector ends the block of an abandoned generator in the middle of any code.
        """
        exemplar = spans.exemplar_of_run(self._span, self._within)
        if self._span is not None:
            self._span.leave()
        # A generator that its consumer stopped reading has not failed.
        error_type = None if error is None or isinstance(error, GeneratorExit) else failures.error_type(error)
        collected.run(functools.partial(self._record, error_type, time.time_ns(), exemplar, error is not None))

    def close(self) -> None:
        """Close the span if an interrupt has ended `finish`."""
        if self._span is not None:
            self._span.close()

    def _record(self, error_type: str | None, ended_ns: int, exemplar: Exemplar | None, has_failed: bool) -> None:  # noqa: FBT001 - all are positional
        state = executions.known(self._identity.id)
        # The agent may be known by now.
        out = (state and state.out) or self._out or telemetry()
        if self._span is not None:
            self._span.write({**out.label_attributes, **(state.attributes() if state else {})}, error_type, None)
            self._span.end(ended_ns)
        end(out, self._identity.id, has_failed=has_failed, exemplar=exemplar)


def _open_span(out: Telemetry, within: Span | None, identity: Identity) -> spans.OpenSpan | None:
    if out.tracer is None or within is None or within.get_span_context().is_valid:
        return None
    operation, execution_id = semconv.INVOKE_WORKFLOW, identity.id
    attributes = execution_context.run_attributes(operation, execution_id, out.label_attributes, execution_id)
    return spans.open_run_span(out.tracer, out.settings.spans, operation, identity.workflow or "", attributes)


def end(out: Telemetry, execution_id: str, *, has_failed: bool = False, exemplar: Exemplar | None = None) -> None:
    """Record the totals of an execution that has ended, and forget it; one without state records nothing."""
    finished = executions.finish(execution_id)
    if finished is not None:
        if finished.unsettled is not None and not has_failed:
            finished.unsettled(finished.tool_calls)
        fragments.count_lost(out, finished)
        fragments.count_ignored(out, finished)
        out.metrics.execution(finished.tool_calls, finished.result_bytes, finished.payload_bytes)
        out.metrics.spent(execution_id, finished, exemplar)
    acting = result_remedies()
    if acting is not None:
        acting.finished(execution_id)
