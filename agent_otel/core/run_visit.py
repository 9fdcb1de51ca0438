"""A run of an agent, or a block that the program names: one execution, and where no span is open, one trace.

A generator's run is current during its steps only. A run that continues in a task ends with that task.
"""

from __future__ import annotations

import functools
import secrets
import sys
import time
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext

from agent_otel import semconv
from agent_otel._internal import collected, errors, failures, fork
from agent_otel.core import execution_context, tool_names
from agent_otel.core.execution_context import Run, id_or_none, text_or_none
from agent_otel.core.executions import executions
from agent_otel.core.remedy_hooks import result_remedies
from agent_otel.core.thread import fragments
from agent_otel.core.tool_visit import measures
from agent_otel.telemetry import metrics, spans
from agent_otel.telemetry.setup import Telemetry, telemetry

if TYPE_CHECKING:
    from typing_extensions import Self

    from agent_otel.core.execution_context import Identity
    from agent_otel.core.execution_state import Totals
    from agent_otel.core.types import AgentRun, Invocation, RunReader
    from agent_otel.telemetry.sinks import Exemplar

_MOST_PAUSED = 1_024
#: The first spans of runs that wait to be resumed, by the runs' ids.
_paused: dict[str, SpanContext] = {}
fork.after_fork(_paused.clear)
#: Exceptions that end a generator. They are not failures.
_ENDS = (StopIteration, StopAsyncIteration, GeneratorExit)


class RunVisit:
    """A wrapped function that runs an agent, as a context manager around the user's call."""

    def __init__(self, reader: RunReader, begun: AgentRun, *, goes_on: bool = False) -> None:
        self._reader = reader
        #: True within an execution that has a name: the run gives its agent to that, which counts the totals.
        self._is_inside = execution_context.named() is not None
        #: True when the run continues after its context is left, unless an exception ends it.
        self.goes_on = goes_on
        #: True when the run waits for an approval or an input, and will be resumed.
        self._is_paused = False
        self._around: Run | None = None
        agent = text_or_none(begun.agent)
        conversation, workflow = id_or_none(begun.conversation), text_or_none(begun.workflow)
        self.run = Run(secrets.token_hex(16), agent or workflow, conversation, self, workflow)
        self._out = telemetry(self.run.agent, workflow)
        self._within = spans.current_span()
        is_traced = begun.traces or any(map(metrics.is_active, reader.also_traced_by))
        paused = None if begun.resumes is None else _paused.pop(begun.resumes, None)
        self._span = None
        if not is_traced and not self._is_inside:
            operation = semconv.INVOKE_AGENT if workflow is None else semconv.INVOKE_WORKFLOW
            name, ids = workflow or self.run.agent, (self.run.id, conversation)
            self._span = _open_span(self._out, self._within, operation, name, ids, paused=paused)
        opened = self._within if self._span is None else self._span.span
        if opened is not None and opened.get_span_context().is_valid:
            self.run.root = opened.get_span_context()

    def __enter__(self) -> Self:
        with errors.reported("run.enter"):
            self._around = execution_context.outermost.get()
            execution_context.outermost.set(self.run)
            if self._span is not None:
                self.run.let_go = self._span.leave
                self._span.attach()
        return self

    @errors.guarded("run.returned")
    def returned(self, value: Any) -> None:
        """Find the task that continues the run."""
        self.item(value)
        task = None if self._reader.goes_on is None else self._reader.goes_on(value)
        if task is not None:
            self.goes_on = True
            task.add_done_callback(self._done)

    def watches(self, value: Any) -> bool:
        """Return true when the run continues in the steps of this value: the reader has put the visit around them."""
        with errors.reported("run.watch"):
            if self._reader.watch is not None and self._reader.watch(value, self):
                self.goes_on = True
        return self.goes_on

    @errors.guarded("run.finish")
    def _done(self, task: Any) -> None:
        self.finish(failures.error_type(error) if (error := _error_of(task)) is not None else None)

    @errors.guarded("run.finish")
    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._leave()
        if not self.goes_on or error is not None:
            self._finish(error)

    def _leave(self) -> None:
        """Leave the context; safe to repeat. In a context in which the run did not begin it has no effect."""
        if self._span is not None:
            self._span.leave()
        if execution_context.outermost.get() is self.run:
            execution_context.outermost.set(self._around)

    def close(self) -> None:
        """Complete an ``__exit__`` that an interrupt has ended."""
        self._leave()
        error = sys.exc_info()[1]
        if error is not None and not self.run.is_over:
            self.__exit__(type(error), error, None)
        elif self._span is not None:
            self._span.close()

    def _finish(self, error: BaseException | None) -> None:
        is_end = isinstance(error, _ENDS) or (self._reader.is_cancelled_at_end and not isinstance(error, Exception))
        self.finish(None if error is None or is_end else failures.error_type(error))

    def finish(self, error_type: str | None = None) -> None:
        """End the run: record its totals, and end its span."""
        run = self.run
        if run.is_over:
            return
        run.is_over = True
        if self._is_inside:
            return
        totals, agent, state = run.totals, run.agent or "", executions.known(run.key)
        out = self._out.of((agent, run.workflow or agent))  # the agent may be known by now
        if totals.unsettled is not None and error_type is None and not self._is_paused:
            totals.unsettled(totals.tool_calls)
        if state is not None:
            fragments.count_lost(out, state)
        exemplar = spans.exemplar_of_run(self._span, self._within)
        _end_span(self._span, out, totals, error_type)
        if totals.tool_calls or totals.payload_bytes:
            out.metrics.execution(totals.tool_calls, totals.result_bytes, totals.payload_bytes)
        out.metrics.spent(run.id, totals, exemplar)
        state = executions.known(run.id) if run.conversation is None else None
        if state is not None:  # its calls are kept: a resumed run delivers results
            fragments.count_ignored(out, state)
        _tell_remedies(run.id)

    def step(self) -> Self:
        """Return the context manager around the next step of a generator."""
        return self

    @errors.guarded("run.item")
    def item(self, value: Any) -> None:
        """Check whether a result, or an item of a generator, pauses the run; other events are not results."""
        found = self._reader.pauses(value) if self._reader.pauses is not None else None
        if found:
            self._is_paused = True
            paused = (found if isinstance(found, str) else None) or self.run.conversation
            if paused is not None and self.run.root is not None:
                tool_names.keep(_paused, paused, self.run.root, _MOST_PAUSED)

    @errors.guarded("run.abandon")
    def abandon(self) -> None:
        """End the run of a generator that its consumer stopped reading."""
        self._finish(None)


@errors.guarded("run.enter")
def enter_run(reader: RunReader, invocation: Invocation, *, is_stream: bool = False) -> RunVisit | None:
    """Begin an outermost run of an agent; return None when the call begins none."""
    return begin(reader, reader.run(invocation), is_stream=is_stream) if measures() else None


#: Begins a run at the first step of a generator.
enter_run_stream = functools.partial(enter_run, is_stream=True)


def begin(reader: RunReader, begun: AgentRun | None, *, is_stream: bool = False) -> RunVisit | None:
    """Begin the run of an agent; return None for one inside another."""
    if begun is None or execution_context.open_run() is not None:
        return None
    return RunVisit(reader, begun, goes_on=is_stream)


def _error_of(task: Any) -> BaseException | None:
    """Return the exception of a task that is done."""
    import asyncio  # noqa: PLC0415 - the task's own module, loaded where there is a task

    if task.cancelled():
        return asyncio.CancelledError()
    # Not exception(), after which asyncio does not log an exception that the program never retrieves.
    error: BaseException | None = task._exception  # noqa: SLF001
    return error


def _open_span(  # noqa: PLR0913 - what is known of an execution
    out: Telemetry,
    within: Span | None,
    operation: str,
    name: str | None,
    ids: tuple[str, str | None],
    *,
    paused: SpanContext | None = None,
) -> spans.OpenSpan | None:
    """Open the span of an execution and its conversation (``ids``) where none is open, below that of the paused run."""
    if out.tracer is None or within is None or within.get_span_context().is_valid:
        return None
    attributes = execution_context.run_attributes(operation, ids[0], out.label_attributes, ids[1])
    around = None if paused is None else trace.set_span_in_context(NonRecordingSpan(paused))
    return spans.open_run_span(out.tracer, out.settings.spans, operation, name or "", attributes, within=around)


def _end_span(
    span: spans.OpenSpan | None,
    out: Telemetry,
    totals: Totals | None,
    error_type: str | None,
    ended_ns: int | None = None,
) -> None:
    if span is not None:
        span.write({**out.label_attributes, **(totals.attributes() if totals else {})}, error_type, None)
        span.end(ended_ns)


def _tell_remedies(execution_id: str) -> None:
    acting = result_remedies()
    if acting is not None:
        acting.finished(execution_id)


# Executions that the program names: the span around the block, and the totals at its end.


#: Returns the labels of the execution that the program named in this context.
metrics.of_execution = lambda: getattr(execution_context.explicit.get(), "labels", None)


class NamedExecution:
    """A block that the program names as an execution. If no span is open, it opens one and is one trace."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._out: Telemetry | None = None
        self._span: spans.OpenSpan | None = None
        self._within: Span | None = None

    @errors.guarded("execution.enter")
    def begin(self) -> None:
        """Open the span of the block and make it current."""
        if not measures():
            return
        collected.follow()
        collected.run_due()  # the end of another block of the same id may wait
        out, named = telemetry(), self._identity  # with the labels of the block; its end is outside of them
        self._out, self._within = out, spans.current_span()
        self._span = _open_span(out, self._within, semconv.INVOKE_WORKFLOW, named.workflow, (named.id, named.id))
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
        _end_span(self._span, out, state, error_type, ended_ns)
        end(out, self._identity.id, has_failed=has_failed, exemplar=exemplar)


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
    _tell_remedies(execution_id)
