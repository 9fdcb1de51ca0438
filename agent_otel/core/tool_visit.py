"""The way into and out of the wrapped functions of a tool call.

A framework's outer function (stage: handed back) and its inner one (stage: produced) share one record, which the
outermost of them opens and finishes. The span opens at the last moment before the handler, because another
instrumentation may open its own span until then.
"""

from __future__ import annotations

import json
import sys
import time
import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from opentelemetry import context, trace
from opentelemetry.trace import INVALID_SPAN

from agent_otel import semconv, settings
from agent_otel._internal import errors
from agent_otel._internal.object_kinds import fields, is_dict, is_text, text
from agent_otel.core import execution_context, switches
from agent_otel.core.captured_content import hide_in
from agent_otel.core.execution_context import LONGEST_ID, id_or_none, loop, text_or_none
from agent_otel.core.remedy_hooks import aact, act, askipped, request_remedies, result_remedies, skipped, skips_calls
from agent_otel.core.thread import tool_definitions
from agent_otel.core.thread.threads import open_calls, opened, parent_of, threads
from agent_otel.core.tool_invocation import (
    Dispatch,
    ToolInvocation,
    ask_for,
    keep,
    record_metrics,
    show_cut,
    span_attributes,
    start_attributes,
)
from agent_otel.core.tool_invocation import current as _current
from agent_otel.core.types import PRODUCED, ToolCall
from agent_otel.measure.arguments_hash import arguments as digest_arguments
from agent_otel.measure.prints import StreamEnds
from agent_otel.measure.size import Size, size
from agent_otel.measure.truncation import find_cut
from agent_otel.settings import without_effect
from agent_otel.telemetry import setup, spans
from agent_otel.telemetry.foreign_spans import add_event
from agent_otel.telemetry.spans import put_on_any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from opentelemetry.trace import Span, Tracer
    from typing_extensions import Self

    from agent_otel.core.types import Invocation, Slot, ToolReader, ToolResult
    from agent_otel.telemetry.spans import OpenSpan

#: The module of the key that suppresses instrumentation.
_SUPPRESSING = "opentelemetry.instrumentation.utils"


setup.of_run = execution_context.names
_innermost: ContextVar[Unrecorded | None] = ContextVar("agent_otel_unrecorded_call", default=None)


def unrecorded_in(record: ToolInvocation | None) -> Unrecorded | None:
    """Return the innermost call without a record that runs in this context within a recorded one, or within none."""
    innermost = _innermost.get()
    return innermost if innermost is not None and innermost.around is record else None


def running() -> ToolInvocation | None:
    """Return the tool call that runs in this context.

    An interrupt can end a call without running its visit's ``__exit__``; such a call is detached and not returned.
    """
    record = _current.get()
    if record is None or record.finished:
        return None
    if record.visit() is not None:
        return record
    _current.set(None)
    if record.span is not None:
        record.span.leave()
    return None


def running_handler() -> ToolInvocation | None:
    """Return the call that runs or is about to run; None inside functions that the handler's body calls."""
    record = running()
    return None if record is None or unrecorded_in(record) is not None else record


class Controlled:
    """A visit of a wrapped function. The policy, the limits and the remedies act on the call."""

    around: ToolInvocation | None = None
    is_outermost: bool
    reader: ToolReader
    record: Dispatch
    slot: Slot | None = None

    def take_turn(self) -> None:
        """Wait where the execution has too many parallel calls, before the block or in it."""
        if self.is_outermost and self.slot is None:
            self.slot = act("tool_call.queue", None, "take_turn", self.record, enclosing(self))

    async def atake_turn(self) -> None:
        """Do the same as `take_turn` without blocking the event loop."""
        if self.is_outermost and self.slot is None:
            self.slot = await aact("tool_call.queue", None, "take_turn", self.record, enclosing(self))

    def skipped(self, invocation: Invocation) -> Any:
        """Return the answer in place of the handler's result when the policy or a limit skips it, else LEFT_ALONE."""
        return skipped(self.record, self.reader, invocation)

    async def askipped(self, invocation: Invocation) -> Any:
        """Do the same as `skipped` without blocking the event loop."""
        return await askipped(self.record, self.reader, invocation)

    def returned(self, value: Any) -> ToolResult | None:
        """Read the value that the wrapped function returned; return the reading, or None."""
        raise NotImplementedError

    def failure_text(self, error: Exception) -> object:  # noqa: ARG002 - only a visit with a record has one
        """Record an exception; return its text for the model, or None without one."""
        return None

    def remedied(self, value: Any, invocation: Invocation) -> Any:
        """Read the value that the wrapped function returned; return it, or the replacement of a remedy."""
        reading = self.returned(value)
        if reading is None:
            return value
        return act("tool_call.remedy", value, "applied", self.record, self.reader, reading.value, value, invocation)

    async def aremedied(self, value: Any, invocation: Invocation) -> Any:
        """Do the same as `remedied` without blocking the event loop."""
        reading = self.returned(value)
        if reading is None:
            return value
        read = reading.value, value, invocation
        return await aact("tool_call.remedy", value, "applied", self.record, self.reader, *read)

    def raised(self, error: Exception, invocation: Invocation) -> None:
        """Replace the text for the model that an exception carries, where a remedy calls for it."""
        if (text := self.failure_text(error)) is not None:
            act("tool_call.remedy", error, "applied", self.record, self.reader, text, error, invocation)

    async def araised(self, error: Exception, invocation: Invocation) -> None:
        """Do the same as `raised` without blocking the event loop."""
        if (text := self.failure_text(error)) is not None:
            await aact("tool_call.remedy", error, "applied", self.record, self.reader, text, error, invocation)


class Visit(Controlled):
    """A wrapped function while it runs, as a context manager around the user's call.

    It raises nothing itself, and neither suppresses nor replaces an exception of the user's call.
    """

    record: ToolInvocation
    goes_on = False  # true when the function has returned a coroutine, around which this is entered again

    # Keywords would double the cost.
    def __init__(self, record: ToolInvocation, reader: ToolReader, is_outermost: bool, opens_span: bool) -> None:  # noqa: FBT001
        self.record = record
        self.reader = reader
        self.is_outermost = is_outermost
        self.opens_span = opens_span
        if is_outermost:
            record.visit = weakref.ref(self)

    def __enter__(self) -> Self:
        # Not in __init__: a signal handler that raises between __init__ and the block would leave the record current.
        try:
            if self.is_outermost:
                self.around = _current.get()
                _current.set(self.record)
            if self.opens_span:
                open_span(self.record, self.record.within if self.is_outermost else None)
        except errors.ours(Exception):
            errors.report_error("tool_call.enter")
        return self

    def returned(self, value: Any) -> ToolResult | None:
        """Read the value that the wrapped function returned; return the reading, or None."""
        reading = None
        try:
            record, reader = self.record, self.reader
            if record.is_read_early and reader.station == PRODUCED:
                return reader.result(value)  # for remedies
            if record.produced is not None and reader.station == PRODUCED:
                return None
            reading = reader.result(value)  # a remedy acts on what could not be measured, too
            if reading is not None:
                record.read(reader.station, reading)
            elif self.is_outermost:
                record.unasked = record.handed is None and not record.raised
        except errors.ours(Exception):
            errors.report_error("tool_call.result")
        return reading

    @errors.guarded("tool_call.remedy")
    def failure_text(self, error: Exception) -> object:
        """Record an exception; return its text for the model, or None without one."""
        if self.reader.failure_text is None or (text := self.reader.failure_text(error)) is None:
            return None
        self.record.raise_(error, self.reader)
        return text

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            record, is_outermost = self.record, self.is_outermost
            if self.goes_on and error is None:
                self.goes_on = False  # other calls may begin before the coroutine of this one is awaited
                self.leave()
                return
            if self.slot is not None:
                self.slot.release()
            self.leave()
            if error is not None:
                record.raise_(error, self.reader)
            if self.reader.station == PRODUCED:
                if record.span is not None:
                    leave_handler(record)
                if not is_outermost:
                    record.awaits = self.reader
            if is_outermost:
                finish(record)
        except errors.ours(Exception):
            errors.report_error("tool_call.finish")

    def leave(self) -> None:
        """Leave the context; safe to repeat, and without effect in another context than the call began in."""
        record = self.record
        # First the span, then the record: after an interrupt between the two, `running` still detects the call.
        if record.span is not None:
            record.span.leave()
        if self.is_outermost and _current.get() is record:
            _current.set(self.around)
            if record.loop is not loop.get():  # a request inside the tool has its own
                loop.set(record.loop)

    def close(self) -> None:
        """Do what an interrupt has left out of ``__exit__``."""
        self.leave()
        error = sys.exc_info()[1]
        if error is not None and self.is_outermost and not self.record.finished:
            self.__exit__(type(error), error, None)
        elif self.is_outermost and self.record.span is not None:
            self.record.span.close()


def enclosing(visit: Controlled) -> ToolInvocation | None:
    """Return the running call that makes the call of a visit."""
    record = _current.get()
    if record is visit.record:
        record = visit.around
    return None if record is None or record.finished or record.visit() is None else record


def open_span(
    record: ToolInvocation, within: Span | None = None, *, held: Span | None = None, attach: bool = True
) -> None:
    """Open the span of a call, or enrich another, and make it current.

    The other is ``held``, which another instrumentation holds for this call, or ``within`` (by default the current
    span), where its attributes name this tool.
    """
    if record.span is None and record.out.tracer is not None and record.tracing:
        current = held or within or trace.get_current_span()
        if current is INVALID_SPAN and record.run is not None:
            with threads.lock:  # of parallel calls, one is the parent of the others
                record.span = _open_span(record, record.out.tracer, parent_of(record.run, current))
                if record.span is not None:
                    opened(record.run, record.span.span)
        else:
            record.span = _open_span(record, record.out.tracer, current, is_held=held is not None)
    if record.span is not None and attach:
        record.span.attach()


def _open_span(record: ToolInvocation, tracer: Tracer, parent: Span, *, is_held: bool = False) -> OpenSpan | None:
    mode, attributes = record.out.settings.spans, start_attributes(record)
    return spans.open_tool_span(tracer, mode, record.name, attributes, record.start_ns, parent, is_held=is_held)


def leave_handler(record: ToolInvocation) -> None:
    """Detach the span after the handler, and write a span of another instrumentation while it is still open."""
    opened = record.span
    if opened is not None:
        opened.detach()
        if opened.foreign:
            _write(record)


def finish(record: ToolInvocation) -> None:
    """End the span of a call and record its metrics."""
    seconds = time.perf_counter() - record.started
    record.finished = True
    if record.unasked and (record.span is None or record.is_deferred) and record.produced is None:
        spans.drop(record.span)  # the framework has deferred the call, for example for an approval
        return
    exemplar = opened = None
    if record.tracing:
        if record.span is None:
            open_span(record, attach=False)
        if (opened := record.span) is None:
            exemplar = spans.exemplar_of(trace.get_current_span())
        else:
            if not (opened.foreign and record.written):
                _write(record)
            if record.cuts:
                _show_cut(record, opened.span)
            exemplar = spans.exemplar_of(opened.span)
    try:
        record_metrics(record, seconds, exemplar)
    finally:
        if opened is not None:
            opened.end()
    if record.state is not None or record.call.call_id is not None or (threads.has_some and record.tracing):
        keep(record)
    if record.out.settings.compact_arguments and (remedies := request_remedies()) is not None:
        remedies.completed(record.call.arguments)


def _write(record: ToolInvocation) -> None:
    """Set the attributes and events of a call on its span."""
    if record.span is None or not record.span.span.is_recording():
        return
    span, again, record.written = record.span.span, record.written, True
    if record.change is not None and not again:
        add_event(span, semconv.SHAPE_CHANGED, record.change.attributes())
    if tool_definitions.unshown and (schema := tool_definitions.unshown.pop(record.name, None)) is not None:
        add_event(span, semconv.TOOL_SCHEMA_CHANGED, {semconv.GEN_AI_TOOL_NAME: record.name, **schema})
    if not again:
        for event, attributes, _ in record.told:
            add_event(span, event, attributes)
        if record.produced is not None and (usual := record.series.grown_from(record.produced.bytes)):
            add_event(span, semconv.RESULT_GROWN, {semconv.RESULT_USUAL_BYTES: usual})
    record.span.write(span_attributes(record), record.error_type, record.failure)


def _show_cut(record: ToolInvocation, span: Span) -> None:
    """Show a truncation between the two stages as a child span, and one that came after the span had ended."""
    if record.produced is None or record.handed is None:
        return
    later = (semconv.RESULT_HANDED_BACK_BYTES, record.handed)
    for layer, why in record.cuts:
        if layer == semconv.LAYER_FRAMEWORK or (layer == semconv.LAYER_REMEDY and record.is_read_early):
            show_cut(record.out, span, record.name, record.produced.bytes, later, layer, why)


class Unrecorded(Controlled, Dispatch):
    """A wrapped function of a tool call without a record; also the stream of one that is a generator.

    ``around`` is the running call that makes it. The policy and the limits decide about it as about any other
    call, but its value goes to the calling code, and is not a result. Where a call cannot be read, ``call`` is
    None, and a policy denies it.
    """

    is_outermost = False  # the running call has its slot
    goes_on = False  # for the signature of Visit: this is entered as often as one likes
    _outer: Unrecorded | None = None

    def __init__(self, reader: ToolReader, call: ToolCall | None, around: ToolInvocation | None) -> None:
        self.reader = reader
        self.record = self  # for the signature of a stream
        self.is_readable = call is not None
        self.call = call or ToolCall(semconv.OTHER)
        self.name = self.call.name
        self.agent = self.call.agent or (None if around is None else around.agent)
        self.around = around
        self.passed = (reader,)
        if around is not None:
            self.execution, self.run, self.state = around.execution, around.run, around.state
            self.place = around.place
            self._carry_on(unrecorded_in(around) or around)
            if self.call.mcp is not None and around.span is not None:
                put_on_any(around.span.span, execution_context.mcp_attributes(self.call.mcp))

    def _carry_on(self, outer: Dispatch) -> None:
        """Find out if this is a further function of the call that runs around it, as an MCP client in a tool is."""
        first = outer.charged_to or outer
        is_inner = isinstance(outer, Unrecorded) and outer.reader.awaits is self.reader
        is_named = self.name == first.call.name
        is_client = self.call.type == "extension" and first.call.name.endswith(self.name)
        is_same = self.reader not in first.passed and (is_named or is_client) and _contains(self.call, first)
        if is_inner or is_same:
            first.passed = (*first.passed, self.reader)
            self.charged_to = first
        self.is_asked = is_same and is_named and first.is_gated

    def __enter__(self) -> Self:
        self._outer = _innermost.get()
        _innermost.set(self)
        if self.around is None and self.execution is None:
            with errors.reported("tool_call.execution"):
                self.agent = execution_context.agent_of(self.call.agent)
                self.run = execution_context.current_run()
                self.place = execution_context.resolve(self.call.execution, None)
                self.execution = self.place if self.run is None else self.run.id
        return self

    def step(self) -> Self:
        """Return the context manager around a step of a generator."""
        return self

    @errors.guarded("tool_call.skipped")
    def tell(self, event: str, attributes: dict[str, Any], *counted: Any) -> None:
        """Show an event on the span around the call, and count it; what is not counted is of no record."""
        if not counted:
            return
        opened = None if self.around is None else self.around.span
        span = trace.get_current_span() if opened is None else opened.span
        add_event(span, event, {semconv.GEN_AI_TOOL_NAME: self.name, **attributes})
        setup.telemetry(self.agent).metrics.record(*counted)

    def returned(self, value: Any) -> ToolResult | None:
        """Read a value for the code that has called the tool; a remedy takes injected values out of it."""
        return errors.guarded("tool_call.result")(self.reader.result)(value) if self.injected else None

    def abandon(self, *_: object) -> None:
        """Do nothing: the value or the exception goes to the code that has called the tool."""

    item = abandon

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.close()
        if error is not None and self.injected:
            errors.guarded("tool_call.hide")(hide_in)(error, self.injected)

    def close(self) -> None:
        """Leave the context; safe to repeat, and without effect in another context than the call began in."""
        if _innermost.get() is self:
            _innermost.set(self._outer)


def _contains(call: ToolCall, outer: Dispatch) -> bool:
    """Return true when a call has all arguments of another call, and perhaps more, such as defaults."""
    given, wanted = _named(call.arguments), _named(outer.call.arguments)
    wanted = {name: value for name, value in wanted.items() if name not in (outer.injected or {})}
    if not wanted.keys() <= given.keys() or (given and not wanted):
        return False
    return digest_arguments({name: given[name] for name in wanted}) == digest_arguments(wanted)


def _named(arguments: object) -> dict[str, Any]:
    """Return arguments by their names; a value that is not an object gets the name of no argument."""
    if is_text(arguments):
        arguments = errors.attempt(json.loads, text(arguments) or "{}", default=arguments)
    if arguments is None:
        return {}
    return dict(fields(arguments)) if is_dict(arguments) else {"": arguments}


def enter_tool(reader: ToolReader, invocation: Invocation) -> Visit | Unrecorded | None:
    """Begin to measure a wrapped function; return None when this is not a tool call, or nothing is to be done."""
    if not switches.enabled:
        return None
    if switches.muted.get():
        _passed_over(reader)
        return None
    current = call = None
    try:
        current = _current.get()
        if current is not None and (current.finished or current.visit() is None):
            current = running()
        if current is not None and current.awaits is reader:
            return _enter_handler(current, reader, invocation)
        call = _plain_call(reader.call(invocation))
        if call is not None and current is not None and _is_inside(reader, call, current):
            return Unrecorded(reader, call, current)
        return None if call is None else _begin(reader, call)
    except errors.ours(Exception):
        errors.report_error("tool_call.enter")
    return Unrecorded(reader, call, None) if skips_calls() else None


@errors.guarded("tool_call.muted")
def _passed_over(reader: ToolReader) -> None:
    """Warn once that remedies do not act on a call in the code of a durable workflow."""
    if not reader.is_relayed and result_remedies() is not None:
        without_effect("workflows", settings.current(), adapter=reader.call.__module__)


def _begin(reader: ToolReader, call: ToolCall) -> Visit | Unrecorded | None:
    """Begin the record of a call; while instrumentation is suppressed, the controls alone act on it."""
    controlled = skips_calls()
    if _SUPPRESSING in sys.modules and is_suppressed():
        return Unrecorded(reader, call, None) if controlled else None
    if call.call_id is not None and (not call.call_id or call.call_id == call.name):  # where a provider gives none
        call = call._replace(call_id=None)
    is_fixed = reader.replace is None and (reader.awaits is None or reader.awaits.replace is None)
    if is_fixed and result_remedies() is not None:
        without_effect("results", settings.current(), adapter=reader.call.__module__)
    out = setup.resolved
    if out is None or out.labels is not None:
        out = setup.telemetry()
    run = execution_context.names(call.agent)
    out = out.by_run.get(run) or out.of(run)
    record = ToolInvocation(call, out, (reader.awaits or reader).also_timed_by, reader.awaits)
    if controlled:
        record.passed = (reader, reader.awaits)
    opens_span = record.tracing and reader.station == PRODUCED and reader.opened_by not in switches.hooked
    return Visit(record, reader, True, opens_span)


def is_suppressed() -> bool:
    """Return true when the program suppresses instrumentation."""
    return _SUPPRESSING in sys.modules and bool(context.get_value("suppress_instrumentation"))


def measures() -> bool:
    """Return true when calls and requests of this context are measured."""
    return switches.enabled and not switches.muted.get() and not is_suppressed()


def _enter_handler(current: ToolInvocation, reader: ToolReader, invocation: Invocation) -> Visit:
    """Enter the function that a running call waits for. It calls the handler."""
    current.awaits = None
    if current.raised or current.produced is not None:
        current.begin_again()
    visit = Visit(current, reader, False, reader.opened_by not in switches.hooked)
    if skips_calls():
        call = _plain_call(reader.call(invocation))
        current.tool = None if call is None else call.name
    return visit


def _is_inside(reader: ToolReader, call: ToolCall, running_call: ToolInvocation) -> bool:
    """Return true for a call that the body of a running tool makes, and that no response there has asked for."""
    around = running_call.call  # of an agent whose responses are not read, the calls have its name, or ids
    if around.is_agent or (call.call_id is None and call.agent is not None and call.agent != around.agent):
        return False
    if call.call_id is not None:
        return reader.station == PRODUCED and call.call_id in {around.call_id, around.name}
    return not open_calls.has_asked or ask_for(call, running_call.out, running_call) is None


def _plain_call(call: ToolCall | None) -> ToolCall | None:
    """Return a call with a name and ids that are text; any other name becomes ``_other``."""
    if call is None:
        return None
    name, call_id, agent, execution = call.name, call.call_id, call.agent, call.execution
    if (
        type(name) is str
        and (call_id is None or (type(call_id) is str and len(call_id) <= LONGEST_ID))
        and (agent is None or type(agent) is str)
        and (execution is None or (type(execution) is str and len(execution) <= LONGEST_ID))
        and type(call.type) is str
    ):
        return call
    return call._replace(
        name=text_or_none(name) or semconv.OTHER,
        call_id=id_or_none(call_id),
        agent=text_or_none(agent),
        execution=id_or_none(execution),
        type=text_or_none(call.type) or "function",
    )


# Context managers around the steps of a tool's generator.


def as_stream(visit: Visit) -> StreamVisit:
    """Detach a call from the context and return its stream, which is current only during its steps."""
    record = visit.record
    if visit.opens_span and record.span is None:
        open_span(record, record.within if visit.is_outermost else None, attach=False)
    visit.leave()
    return (EventVisit if visit.reader.events else StreamVisit)(visit)


class _Step:
    """A step of a generator, as a context manager.

    The record refers to it weakly: when the object is gone, after an interrupt too, no step runs.
    """

    def __init__(self, visit: StreamVisit) -> None:
        self._visit = visit

    def __enter__(self) -> None:
        self._visit.enter(weakref.ref(self))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._visit.leave(error)

    def close(self) -> None:
        """Complete an ``__exit__`` that an interrupt has ended."""
        self._visit.leave(sys.exc_info()[1])


class StreamVisit(Controlled):
    """A generator tool while it runs; `step` returns the context manager around each of its steps."""

    record: ToolInvocation

    def __init__(self, visit: Visit) -> None:
        self._ends = StreamEnds()
        self.record = visit.record
        self.reader = visit.reader
        self.is_outermost = visit.is_outermost

    def step(self) -> _Step:
        """Return the context manager around the next step."""
        return _Step(self)

    def enter(self, step: Callable[[], object]) -> None:
        """Make the record current during a step."""
        with errors.reported("tool_call.step"):
            if self.record.visit() is None:  # else this step runs inside a step of the outer function
                self.record.visit = step
            self.around = _current.get()
            _current.set(self.record)
            if self._span is not None and not self.record.finished:
                self._span.attach()

    @property
    def _span(self) -> OpenSpan | None:
        """Return the span when the steps are the handler's; a framework's work around them does not nest in it."""
        return self.record.span if self.reader.station == PRODUCED else None

    @errors.guarded("tool_call.item")
    def item(self, value: Any) -> None:
        """Add an item to the result."""
        reading = self.reader.result(value)
        if reading is not None:
            self._add(reading)

    def _add(self, reading: ToolResult) -> None:
        """Add one item to the size of the result."""
        record, value = self.record, reading.value
        item, before = size(value), record.produced or Size(0, exact=True)
        record.produced = Size(before.bytes + item.bytes, before.exact and item.exact)
        record.characters += len(value) if type(value) is str else item.bytes
        cut = find_cut(value) if issubclass(type(value), str) else None
        record.cuts = ((semconv.LAYER_TOOL, cut.reason),) if cut and cut.reason != semconv.SUSPECTED else ()
        self._ends.add(value)

    @errors.guarded("tool_call.step")
    def leave(self, error: BaseException | None) -> None:
        """Take the record out of the context; an error ends the stream."""
        # First the span, then the record: after an interrupt between the two, `running` still detects the call.
        if self._span is not None:
            self._span.leave()
        if _current.get() is self.record:
            _current.set(self.around)
        if error is not None and self.record.finished:
            if self._span is not None:
                self._span.close()
        elif error is not None:
            if not issubclass(type(error), StopIteration | StopAsyncIteration):
                self.record.raise_(error, self.reader)
            self._finish(complete=True)

    @errors.guarded("tool_call.abandon")
    def abandon(self) -> None:
        """End the stream that its consumer stopped reading; the items so far are a lower bound of the result."""
        if not self.record.finished:
            if self._span is not None:
                self._span.leave()
            self._finish(complete=False)

    def _finish(self, *, complete: bool) -> None:
        record = self.record
        known = record.produced or Size(0, exact=True)
        # Where the consumer stopped early, the size is a lower bound.
        record.produced = None if record.raised else Size(known.bytes, known.exact and complete)
        if complete and record.execution is not None:
            record.prints = self._ends.prints()
        finish(record)


class EventVisit(StreamVisit):
    """A framework's generator of events around a tool; the last event that can be read as a result is the result.

    It may be the outer function of a call, or the inner one, which leads to the handler.
    """

    _is_done = _is_read = False
    _last: ToolResult | None = None

    def _add(self, reading: ToolResult) -> None:
        """Keep an event; a later one replaces it."""
        self._last = reading

    @errors.guarded("tool_call.remedy")
    def returned(self, value: Any) -> ToolResult | None:
        """Read an event at once, for a remedy."""
        reading = self.reader.result(value)
        if reading is not None:
            self.record.read(self.reader.station, reading)
            self._is_read = True
        return reading

    def _finish(self, *, complete: bool) -> None:  # noqa: ARG002 - the result has passed, or there is none
        if self._is_done:
            return
        self._is_done = True
        if self.slot is not None:
            self.slot.release()
        record, reader = self.record, self.reader
        if self._last is not None:
            if record.produced is None or reader.station != PRODUCED:
                record.read(reader.station, self._last)
        elif self.is_outermost and not self._is_read:
            record.unasked = record.error_type is None
        self._last = None
        if reader.station == PRODUCED:
            leave_handler(record)
            if not self.is_outermost:
                record.awaits = reader
        if self.is_outermost:
            finish(record)
