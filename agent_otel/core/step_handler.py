"""Entry points of adapters of durable runtimes: steps while they run, and the payloads that they carry.

A step's input and output share one span, which shows the payload nearer to its cap. The entry points are apart from
those of `handler`, because a program without a durable runtime needs none of what they load.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any

from opentelemetry import trace

from agent_otel import semconv
from agent_otel._internal import errors, failures
from agent_otel.core import execution_context, run_visit, switches
from agent_otel.core import payload as payloads
from agent_otel.core.durable_runs import durable_runs
from agent_otel.core.executions import executions
from agent_otel.core.handler import execution_named
from agent_otel.core.payload_cap import cap_of
from agent_otel.core.thread import model_calls
from agent_otel.core.types import Payload
from agent_otel.measure.preview import clean
from agent_otel.measure.size import size
from agent_otel.settings.kinds import BOUNDARIES
from agent_otel.telemetry import spans
from agent_otel.telemetry.setup import telemetry

if TYPE_CHECKING:
    from typing_extensions import Self

    from agent_otel.core.payload import MeasuredPayload
    from agent_otel.core.types import Invocation, Serialised, Step, StepOutcome, StepReader

_DIRECTIONS = {*BOUNDARIES, semconv.INPUT, semconv.OUTPUT}


class StepVisit:
    """A step while it runs. An adapter that learns of both ends calls `begin` and `finish`.

    `leave` takes the step out of the context before its end, where its output is read later.
    """

    def __init__(self, step: Step, *, opened_by_handler: bool = False) -> None:
        self._out = payloads.telemetry_of(step)
        self.step = step
        self._opened_by_handler = opened_by_handler
        self._started_ns = time.time_ns()
        self._carrier = execution_context.Carrier(step.execution, self, step.attempt, step.workflow)
        self._around: execution_context.Carrier | None = None
        self.span: spans.OpenSpan | None = None
        self.refused = False
        self.weighed: MeasuredPayload | None = None
        #: The execution's tool calls before the step.
        self._calls = self._tool_calls()
        #: The serialised input, until the step ends.
        self._given: Serialised | None = None
        #: The input, kept until the labels of the step are known.
        self._unlabelled: Payload | None = None

    def _tool_calls(self) -> int:
        state = executions.known(self.step.execution or "")
        return 0 if state is None else state.tool_calls

    def begin(self, carried: Payload | None = None) -> None:
        """Make the step the one that runs in this context, and record its input."""
        self._around = execution_context.runtime.get()
        execution_context.runtime.set(self._carrier)
        if not self._opened_by_handler:
            self.open_span()
        if carried is not None:
            self.take_input(carried)

    def take_input(self, carried: Payload) -> None:
        """Record the input; if the runtime has yet to restore the baggage, wait for the labels in it."""
        self._given = carried.data
        if self._opened_by_handler and self._out.settings.labels:
            self._unlabelled = carried
        else:
            self.weigh(carried)

    def _label(self) -> None:
        """Take the labels of this context, and record an input that has waited for them."""
        self._out = payloads.telemetry_of(self.step)
        carried, self._unlabelled = self._unlabelled, None
        if carried is not None:
            self.weigh(carried)

    def open_span(self) -> None:
        """Open the span, or find the runtime's own, and make it current."""
        if self._opened_by_handler and self._out.settings.labels:
            self._label()
        out, current = self._out, spans.current_span()
        if self.span is None and out.tracer is not None and current is not None:
            attributes = payloads.step_attributes(self.step, out)
            conversation = execution_context.conversation()
            if conversation:
                attributes[semconv.CONVERSATION_ID] = clean(conversation)
            state = None if self.step.execution is None else executions.known(self.step.execution)
            if state is not None and state.turn:
                attributes[semconv.TURN] = state.turn
            mode, name = out.settings.spans, self.step.activity or ""
            around = functools.partial(durable_runs.around, out, self.step)
            self.span = spans.open_step_span(out.tracer, mode, name, attributes, self._started_ns, current, around)
            if self.span is not None:
                durable_runs.opened(self.step, self.span.span)
        if self.span is not None:
            if self.span.foreign and self.weighed is not None:  # it may have ended when the output is available
                self.span.write(self.weighed.attributes(), None, None)
            if self._carrier.let_go is None:
                self._carrier.let_go = self.span.leave
            self.span.attach()

    def weigh(self, carried: Payload, *, refused: bool = False) -> None:
        """Measure a payload of the step, and keep the one that is nearer to its cap."""
        self.take(payloads.weigh(self._out, self.step, carried, refused=refused))

    def take(self, weighed: MeasuredPayload) -> None:
        """Keep the payload that is nearer to its cap."""
        utilization, size_bytes = weighed.utilization, weighed.carried.bytes
        known = self.weighed
        if known is None or (utilization, size_bytes) >= (known.utilization, known.carried.bytes):
            self.weighed = weighed

    def leave(self) -> None:
        """Leave the step's context when its own code has ended; its output may be read later, in another context."""
        if self.span is not None:
            self.span.detach()
        if execution_context.runtime.get() is self._carrier:
            execution_context.runtime.set(self._around)
        self._carrier.is_over = True

    @errors.guarded("step.finish")
    def finish(self, outcome: StepOutcome | None = None, error_type: str | None = None) -> None:
        """End the step: record its output, or its error, and end its span."""
        self.leave()
        if self._unlabelled is not None:  # the step's own code has not run
            self._label()
        if outcome is not None:
            error_type = outcome.error_type or error_type
            if outcome.carried is not None:
                self.weigh(outcome.carried, refused=outcome.refused is not None)
            if outcome.refused is not None:
                self.refused = True
                payloads.reject(self._out, self.step, semconv.OUTPUT)
        given, self._given = self._given, None
        made = None if outcome is None or error_type is not None or outcome.carried is None else outcome.carried.data
        is_plain = not self._carrier.has_requested and self._tool_calls() == self._calls
        if made is not None and self.step.execution and self.step.activity and is_plain:
            span = None if self.span is None else self.span.span.get_span_context()
            with errors.reported("step.result"):
                model_calls.step_ended(self._out, self.step.execution, self.step.activity, given, made, span)
        payloads.finish(self._out, self.step, self.span, self.weighed, error_type, refused=self.refused)
        state = executions.known(self.step.execution) if self.step.execution else None
        if state is not None and state.out is None:
            state.out = self._out


class WrappedStep(StepVisit):
    """A wrapped function that runs a step, as a context manager around the user's call."""

    def __init__(self, reader: StepReader, step: Step, call: Invocation) -> None:
        super().__init__(step, opened_by_handler=reader.opened_by_handler)
        self._reader = reader
        self._call = call
        self._outcome: StepOutcome | None = None

    def __enter__(self) -> Self:
        with errors.reported("step.enter"):
            self.begin()
            carried = self._reader.carried(self._call)
            if carried is not None:
                self.take_input(carried)
        return self

    @errors.guarded("step.outcome")
    def returned(self, value: Any) -> None:
        """Read the output of the step."""
        self._outcome = self._reader.outcome(self._call, value)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        with errors.reported("step.finish"):
            if error is not None and self._outcome is None and self._reader.failed is not None:
                self._outcome = self._reader.failed(error)
        self.finish(self._outcome, failures.class_name(type(error)) if error is not None else None)

    def close(self) -> None:
        """Complete an ``__exit__`` that an interrupt has ended."""
        self.leave()
        if self.span is not None:
            self.span.close()


def _running() -> StepVisit | None:
    """Return the visit of the step that runs in this context."""
    carrier = None if execution_context.runtime.get() is None else execution_context.running_step()
    visit = carrier.visit() if carrier is not None else None
    return visit if isinstance(visit, StepVisit) else None


def step_retried(attempt: int) -> None:
    """Name the attempt of the running step, where the runtime makes all attempts inside of one step."""
    visit, carrier = _running(), execution_context.running_step()
    if visit is not None and carrier is not None:
        visit.step = visit.step._replace(attempt=attempt)
        carrier.attempt, carrier.calls = attempt, None


def _record(step: Step, carried: Payload, started_ns: int | None = None, refused: str | None = None) -> None:
    """Record a payload made outside any wrapped step function; ``started_ns`` is the start of the step that it ends."""
    out = payloads.telemetry_of(step)
    weighed = payloads.weigh(out, step, carried, refused=refused is not None)
    if refused is not None:
        payloads.reject(out, step, carried.direction, carried.kind)
    visit = _running()
    if visit is not None and visit.step.execution == step.execution and visit.step.activity == step.activity:
        visit.take(weighed)
        visit.refused = visit.refused or refused is not None
        return
    if started_ns is None and refused is None and not weighed.notable:
        return
    if spans.current_span() is None or out.tracer is None:
        payloads.finish(out, step, None, weighed, None, refused=refused is not None)
        return
    span = None
    # No span for a retry: some runtimes retry a rejected payload a dozen times a second.
    if started_ns is not None or ((weighed.notable or refused is not None) and not carried.again):
        name = step.activity or step.workflow or ""
        parent, links = (
            (None, ()) if trace.get_current_span().get_span_context().is_valid else durable_runs.around(out, step)
        )
        attributes = payloads.step_attributes(step, out)
        operation = semconv.PAYLOAD_CHILD if started_ns is None else semconv.EXECUTE_ACTIVITY
        span = spans.started(out.tracer, operation, name, attributes, started_ns, parent, links)
        durable_runs.opened(step, span.span)
    payloads.finish(out, step, span, weighed, None, refused=refused is not None)


@errors.guarded("step.enter")
def enter_step(reader: StepReader, invocation: Invocation) -> WrappedStep | None:
    """Begin to measure a function that runs a step of a durable runtime; return None when it is not to be recorded."""
    if not switches.enabled or switches.muted.get():
        return None
    step = reader.step(invocation)
    return None if step is None else WrappedStep(reader, payloads.placed(step), invocation)


@errors.guarded("step.enter")
def begin_step(step: Step, carried: Payload | None = None, *, opened_by_handler: bool = False) -> StepVisit | None:
    """Begin a step whose end the adapter learns of elsewhere: it calls the visit's ``finish``.

    ``carried`` is the step's input. Where ``opened_by_handler`` is true, `step_started` opens the span. Return None
    when nothing is to be recorded.
    """
    if not switches.enabled or switches.muted.get():
        return None
    visit = StepVisit(payloads.placed(step), opened_by_handler=opened_by_handler)
    visit.begin(carried)
    return visit


@errors.guarded("step.start")
def step_started() -> None:
    """Open the step's span: the runtime is about to run the step's code, and all interceptors have opened theirs."""
    visit = _running()
    if visit is not None:
        visit.open_span()


@errors.guarded("execution.began")
def execution_began(execution_id: str, workflow: str, traceparent: str | None = None) -> None:
    """Report the run of a workflow that begins, or goes on, in this process, which calls `execution_ended` later.

    ``traceparent`` is the W3C header of a span that the runtime itself has propagated to the run.
    """
    execution_named(execution_id, workflow)
    plain_id = execution_context.id_or_none(execution_id)
    if switches.enabled and plain_id is not None:
        workflow_name = execution_context.text_or_none(workflow)
        durable_runs.began(plain_id, workflow_name, execution_context.text_or_none(traceparent))


@errors.guarded("execution.finish")
def execution_ended(execution_id: str) -> None:
    """Record the totals of an execution that a runtime reports as ended, whatever its outcome."""
    plain_id = execution_context.id_or_none(execution_id)
    if plain_id is None:
        return
    durable_runs.ended(plain_id)
    execution = executions.known(plain_id)
    if switches.enabled and execution is not None:
        run_visit.end(execution.out or telemetry(None, execution.workflow), plain_id)


def payload(step: Step, reading: Payload, started_ns: int | None = None, refused: str | None = None) -> None:
    """Record a payload that a runtime made outside any wrapped step function.

    ``started_ns`` (epoch nanoseconds) is the start of the step that the payload ends. ``refused`` is the runtime's
    message when it rejected the payload.
    """
    if switches.enabled:
        with errors.reported("payload"):
            _record(payloads.placed(step), reading, started_ns, refused)


def current_step() -> Step | None:
    """Return the step that runs in this context, for payloads that its own code hands on."""
    return execution_context.current_step() if switches.enabled else None


@errors.guarded("payload")
def is_over_cap(step: Step, reading: Payload) -> bool:
    """Return true when a payload is larger than its cap; its receiver, where it would be measured, never gets it."""
    cap = cap_of(step, reading.direction) if switches.enabled else None
    return cap is not None and reading.bytes > cap.bytes


@errors.guarded("payload")
def object_carried(step: Step, direction: str, value: Any) -> None:
    """Record a payload that the program reports itself, serialised or as the object to be serialised."""
    if not switches.enabled or switches.muted.get():
        return
    text = execution_context.text_or_none(direction)
    direction = text if text in _DIRECTIONS else semconv.OTHER
    # type() and not isinstance(), which would read __class__ from the value; the value may be a lazy proxy.
    is_serialised = issubclass(type(value), str | bytes | bytearray | memoryview)
    reading = Payload(direction, size(value).bytes, *((value,) if is_serialised else (None, value)))
    _record(payloads.named(step), reading)


@errors.guarded("payload.refused")
def payload_refused(step: Step, direction: str) -> None:
    """Count a payload that a runtime rejected after it was reported, or that no adapter could measure."""
    if switches.enabled:
        placed = payloads.placed(step)
        payloads.reject(payloads.telemetry_of(placed), placed, direction)
