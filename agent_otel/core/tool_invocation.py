"""State of a running tool call: the readings of its stages, its span and its metrics."""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from opentelemetry import trace

from agent_otel import semconv
from agent_otel._internal.failures import error_type, text_of
from agent_otel.core import execution_context, fragments, tool_names
from agent_otel.core.captured_content import capture
from agent_otel.core.execution_state import carried_attributes
from agent_otel.core.executions import executions
from agent_otel.core.result_budget import budget_of
from agent_otel.core.schema_drift import drift
from agent_otel.core.stage_comparison import compare, show
from agent_otel.core.types import PRODUCED
from agent_otel.measure.arguments_hash import arguments as digest_arguments
from agent_otel.measure.arguments_hash import arguments_bytes
from agent_otel.measure.preview import clean, ends
from agent_otel.measure.size import Size, size
from agent_otel.measure.truncation.detect import find_cut
from agent_otel.measure.truncation.paging import is_page
from agent_otel.telemetry import large_results, spans

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.trace import Span

    from agent_otel.core.result_budget import Budget
    from agent_otel.core.schema_drift import Change
    from agent_otel.core.types import LimitReached, LimitsInUse, Remedied, ToolCall, ToolReader, ToolResult
    from agent_otel.telemetry.setup import Telemetry
    from agent_otel.telemetry.spans import Exemplar

#: The tool call that runs in this context.
current: ContextVar[ToolInvocation | None] = ContextVar("agent_otel_tool_call", default=None)


class ToolInvocation:
    """A tool call while it runs; the record is dropped when the call ends."""

    # Defaults stand on the class: setting twenty attributes on every call would cost as much as sizing its result.
    args_hash: str | None = None
    change: Change | None = None
    characters = 0
    followup: str | None = None
    invites = False
    probe: tuple[str, str] | None = None
    captured: dict[str, Any] | None = None
    _budget: Budget | None = None
    cuts: tuple[tuple[str, str], ...] = ()
    #: True when limits and payloads have counted the bytes that go on to the model.
    counted = False
    depth = 0
    error_type: str | None = None
    #: The text that the framework made of an exception, which the model reads.
    failed: Size | None = None
    failure: str | None = None
    finished = False
    handed: int | None = None
    produced: Size | None = None
    raised = False
    repeated = False
    skipped: LimitReached | None = None
    #: Limits that count this call as running; `finish` releases them.
    limits: LimitsInUse | None = None
    #: Returns the bytes above which the framework stores the result itself.
    offloads_above: Callable[[], int] | None = None
    #: True for a tool that reads on in a stored result: its page is a part that the model chose.
    reads_on = False
    remedied: Remedied | None = None
    span: spans.OpenSpan | None = None
    start_ns = 0
    structured: Size | None = None
    unasked = False
    visit: Any = staticmethod(lambda: None)  # by a weak reference
    written = False

    def __init__(
        self, call: ToolCall, out: Telemetry, also_timed_by: tuple[str, ...], awaits: ToolReader | None = None
    ) -> None:
        agent = execution_context.agent_of(call.agent)
        self.call = call
        self.out = out
        self.awaits = awaits
        self.agent = agent
        self.name = call.name
        series = out.metrics.tools.get((call.name, agent or ""))
        if series is None:  # not seen before, not clean or over the limit
            self.agent = clean(agent) if agent else None
            self.name = clean(call.name)
            tool_names.note(self.name)
            series = out.metrics.tool(self.name, self.agent, also_timed_by)
        if call.name not in tool_names.called:
            tool_names.note_call(call.name)
        self.series = series
        # The same as `spans.current_span`, without the cost of one more function for each tool call.
        self.within = None if getattr(trace, "_TRACER_PROVIDER", trace) is None else trace.get_current_span()
        self.tracing = self.within is not None
        self.execution = execution_context.resolve(call.execution, self.within)
        if self.tracing or self.execution is not None:
            self.asked(call.arguments)
        else:
            self.args_bytes = arguments_bytes(call.arguments)
        if self.tracing:
            self.start_ns = time.time_ns()
        self.started = time.perf_counter()

    def asked(self, arguments: object) -> None:
        """Hash and measure the arguments before the tool can change them."""
        self.args_hash, self.args_bytes = digest_arguments(arguments, self.out.args_key)
        if self.execution is not None:
            self.repeated = executions.asked(self.execution, self.name, self.args_hash, self.call.call_id)
            if executions.followed(self.execution, self.name):
                self.followup = fragments.outcome(arguments, repeated=self.repeated)
        if self.out.captures:
            self.captured = capture(None, semconv.TOOL_ARGUMENTS, arguments, self.out.settings.capture_bytes)

    def open_span(self, within: Span | None = None, *, attach: bool = True) -> None:
        """Open the span, or enrich ``within`` (by default the current span), and make it current."""
        if self.span is not None and attach:
            self.span.attach()
        if self.span is not None or self.out.tracer is None or not self.tracing:
            return
        call = self.call
        attributes: dict[str, Any] = {
            semconv.OPERATION_NAME: semconv.EXECUTE_TOOL,
            semconv.GEN_AI_TOOL_NAME: self.name,
            semconv.TOOL_NAME: self.name,
            semconv.TOOL_TYPE: call.type,
            semconv.ARGS_HASH: self.args_hash,
            semconv.ARGS_BYTES: self.args_bytes,
        }
        if call.call_id:
            attributes[semconv.TOOL_CALL_ID] = call.call_id
        if self.followup is not None:
            attributes[semconv.TOOL_FOLLOWUP] = self.followup
        if self.agent:
            attributes[semconv.AGENT_NAME] = self.agent
        named = execution_context.explicit.get()
        conversation = call.execution or (named.id if named else None)
        if conversation:
            attributes[semconv.CONVERSATION_ID] = conversation
        step = execution_context.running_step()
        if step is not None and step.execution:
            attributes[semconv.EXECUTION_ID] = step.execution
        execution = executions.known(self.execution) if self.execution is not None else None
        if execution is not None and execution.carries is not None:
            attributes.update(carried_attributes(*execution.carries))
        within = within or trace.get_current_span()
        mode = self.out.settings.spans
        self.span = spans.open_tool_span(self.out.tracer, mode, self.name, attributes, self.start_ns, within)
        if self.span is not None and attach:
            self.span.attach()

    def forget_attempt(self) -> None:
        """Discard the readings of an earlier attempt, because the framework calls the handler again."""
        if self.raised or self.produced is not None:
            self.raised = False
            self.error_type = self.failure = self.produced = self.structured = self.failed = None
            self.remedied = self.handed = None
            self.counted = False
            self.cuts = ()

    def read(self, station: str, result: ToolResult) -> None:
        """Record the result that a wrapped function returned at one stage."""
        if result.error_type is not None and self.error_type is None:
            self.error_type = execution_context.text_or_none(result.error_type) or semconv.OTHER
        if station != PRODUCED:
            self._read_handed_back(result)
        elif result.raised or self.raised:
            self.raised = True
            self.failed = size(result.value)
            self.handed = self.failed.bytes
        else:
            self._measure(result)

    def _measure(self, result: ToolResult) -> None:
        value = result.value
        self.produced = size(value)
        self.characters = len(value) if type(value) is str else self.produced.bytes
        if type(value) is dict or type(value) is list:
            self.change = drift.note(self.name, value)
        if self.execution is not None or self.call.call_id is not None:
            self.invites = is_page(value, self.call.arguments)
            if self.call.call_id is None:
                self.probe = ends(value, self.out.settings.probe_bytes)
        if result.structured is not None:
            self.structured = size(result.structured)
        cut = find_cut(result.value, self.produced.bytes)
        self.cuts = ((semconv.LAYER_TOOL, cut.reason),) if cut else ()
        if self.out.captures:
            self.captured = capture(self.captured, semconv.TOOL_RESULT, result.value, self.out.settings.capture_bytes)

    def budget(self) -> Budget:
        """Return the budget of the result, as it was before the result itself took of it."""
        if self._budget is None:
            self._budget = budget_of(self.execution, self.out.settings, self.offloads_above)
        return self._budget

    def add(self, result: ToolResult) -> None:
        """Add one item of a stream to the size of the result."""
        item = size(result.value)
        before = self.produced or Size(0, exact=True)
        self.produced = Size(before.bytes + item.bytes, before.exact and item.exact)
        self.characters += len(result.value) if type(result.value) is str else item.bytes
        cut = find_cut(result.value) if issubclass(type(result.value), str) else None
        self.cuts = ((semconv.LAYER_TOOL, cut.reason),) if cut and cut.reason != semconv.SUSPECTED else ()

    def finish_stream(self, *, complete: bool) -> None:
        """End a stream; when the consumer stopped early, its size is a lower bound."""
        known = self.produced or Size(0, exact=True)
        self.produced = None if self.raised else Size(known.bytes, known.exact and complete)
        self.finish()

    def _read_handed_back(self, result: ToolResult) -> None:
        handed = size(result.value)
        self.handed = handed.bytes
        if self.produced is None:
            # The handler never ran (a middleware answered) or it raised: no other stage has a reading.
            if not (self.raised or result.raised or self.error_type):
                self._measure(result)
            elif self.remedied is None:
                self.failed = handed
            return
        given = self.produced.bytes if self.remedied is None else self.remedied.bytes
        if handed.bytes < given:
            known = [why for layer, why in self.cuts if layer == semconv.LAYER_TOOL]
            why = compare(given, handed, result.value, known)
            if why is not None:
                self.cuts = (*self.cuts, (semconv.LAYER_FRAMEWORK, why))

    def replace(self, found: Remedied) -> None:
        """Record that a remedy replaced the result."""
        self.remedied = found
        self.handed = found.bytes
        self.cuts = (*self.cuts, (semconv.LAYER_REMEDY, found.reason))
        if found.error_type is not None and self.error_type is None:
            self.error_type = found.error_type
        if self.probe is not None:
            self.probe = ends(found.replacement.text, self.out.settings.probe_bytes)

    def skip(self, reached: LimitReached) -> None:
        """Record that a limit of the execution skipped the handler."""
        self.skipped = reached
        self.error_type = semconv.LIMIT_REACHED

    def raise_(self, error: BaseException, reader: ToolReader | None = None) -> None:
        """Record that the handler raised; an exception that is the framework's control flow sets no error type."""
        self.raised = True
        if reader is not None and reader.is_control_flow is not None and reader.is_control_flow(error):
            return
        if self.error_type is None:
            own = error if reader is None or reader.cause is None else reader.cause(error)
            self.error_type = error_type(own)
            self.failure = text_of(own, self.out.settings.capture_bytes) if self.out.captures else None
        if self.failed is not None:  # read when the exception was raised, before a remedy
            return
        if reader is not None and reader.failure_text is not None:
            text = reader.failure_text(error)
            if text is not None:
                self.failed = size(text)
                self.handed = self.failed.bytes

    def leave_handler(self) -> None:
        """Detach the span after the handler, and write a span of another instrumentation while it is still open."""
        if self.span is not None and self.span.detach():
            self.write()

    def write(self) -> None:
        """Set the attributes and events of the call on its span."""
        if self.span is None or not self.span.span.is_recording():
            return
        again, self.written = self.written, True
        attributes: dict[str, Any] = {}
        if self.produced is not None:
            attributes[semconv.RESULT_BYTES] = self.produced.bytes
            attributes[semconv.RESULT_ESTIMATED_TOKENS] = (self.characters + 3) // 4
            # A size that equals a limit of the table is only suspected to be truncated.
            established = bool(self.cuts) and any(reason != semconv.SUSPECTED for _, reason in self.cuts)
            attributes[semconv.RESULT_TRUNCATED] = established
            if not self.produced.exact:
                attributes[semconv.RESULT_ESTIMATED] = True
            attributes[semconv.RESULT_BUDGET_BYTES], attributes[semconv.RESULT_BUDGET_LAYER] = self.budget()
        if self.structured is not None:
            attributes[semconv.RESULT_STRUCTURED_BYTES] = self.structured.bytes
        self._tell_cut(attributes)
        if self.captured is not None:
            attributes.update(self.captured)
        if self.change is not None and not again:
            keys = {semconv.KEYS_ADDED: self.change.added, semconv.KEYS_REMOVED: self.change.removed}
            self.span.span.add_event(semconv.SHAPE_CHANGED, keys)
        if self.skipped is not None and not again:
            skipped = {semconv.PHASE: semconv.SKIPPED, semconv.LIMIT: self.skipped.limit}
            self.span.span.add_event(semconv.TOOL_CALL_EVENT, skipped)
        self.span.write(attributes, self.error_type, self.failure)

    def _tell_cut(self, attributes: dict[str, Any]) -> None:
        """Add the handed-back size, the reference, and the layer and reason of the last truncation."""
        if self.handed is not None and (self.produced is None or self.handed != self.produced.bytes):
            attributes[semconv.RESULT_HANDED_BACK_BYTES] = self.handed
        if self.remedied is not None and self.remedied.ref is not None:
            attributes[semconv.RESULT_REF] = self.remedied.ref
        if self.cuts:
            attributes[semconv.TRUNCATION_LAYER], attributes[semconv.TRUNCATION_REASON] = self.cuts[-1]

    def finish(self) -> None:
        """End the span and record the metrics."""
        seconds = time.perf_counter() - self.started
        self.finished = True
        if self.limits is not None and self.execution is not None:
            self.limits.leave(self.execution, self.visit)
        if self.unasked and self.span is None and self.produced is None:
            # The framework has deferred the call, for example for an approval; it has not run yet.
            return
        if self.tracing and self.span is None:
            self.open_span(attach=False)
        exemplar = None
        if self.span is not None:
            if not (self.span.foreign and self.written):
                self.write()
            if self.cuts:
                self._show_cut()
            exemplar = spans.exemplar_of(self.span.span)
            self.span.end()
        elif self.tracing:
            exemplar = spans.exemplar_of(trace.get_current_span())
        self._count(seconds, exemplar)

    def _show_cut(self) -> None:
        """Show a truncation between the two stages as a child span."""
        tracer = self.out.tracer
        if self.span is None or tracer is None or self.produced is None or self.handed is None:
            return
        layer, why = self.cuts[-1]
        if layer == semconv.LAYER_FRAMEWORK:
            later = (semconv.RESULT_HANDED_BACK_BYTES, self.handed)
            show(tracer, self.span.span, self.name, self.produced.bytes, later, layer, why)

    def _count(self, seconds: float, exemplar: Exemplar | None) -> None:
        series = self.series
        result_bytes = None if self.produced is None else self.produced.bytes
        series.call(seconds, self.args_bytes, result_bytes, self.error_type, exemplar)
        read = self.produced or self.failed
        if read is not None:
            self._count_bytes(read.bytes, exemplar)
        for layer, reason in self.cuts:
            series.truncated(layer, reason).record(1, exemplar)
        if self.skipped is not None:
            self.out.metrics.limit_hit(self.skipped.limit)
        if self.repeated:
            series.repeats.record(1, exemplar)
        if self.followup is not None:
            self.out.metrics.followed(self.name, self.followup)
        if self.change is not None:
            series.shape_changes.record(1, exemplar)

    def _count_bytes(self, read_bytes: int, exemplar: Exemplar | None) -> None:
        """Record the bytes of a result, or of a failure's text, that go on to the model."""
        limit_bytes, layer = self._budget or self.budget()
        if (read_bytes if self.remedied is None else self.remedied.bytes) > limit_bytes:
            self.series.over_budget(layer).record(1, exemplar)
        if read_bytes > self.out.settings.large_result_bytes and self.out.settings.log_large_results:
            large_results.log(self.series.tool, read_bytes, (limit_bytes, layer), self.args_hash, exemplar)
        if self.produced is None:
            self.series.count_large(read_bytes, exemplar)
        elif self.execution is not None or self.call.call_id is not None:
            self._note(read_bytes)
        if self.remedied is not None:
            self.out.metrics.remedied(self.name, self.remedied.reason, read_bytes - self.remedied.bytes)

    def _note(self, result_bytes: int) -> None:
        """Keep the sizes, probe and span context by which the model boundary recognises the result."""
        execution, call_id = self.execution, self.call.call_id
        noted = None
        if execution is not None:
            noted = executions.produced(execution, self.name, result_bytes, call_id, goes_on=not self.counted)
        elif call_id is not None:
            noted = executions.produced_by_nobody(self.name, result_bytes, call_id)
        if noted is None:
            return
        noted.handed = -1 if self.handed is None else self.handed
        noted.probe = self.probe
        if self.span is not None:
            noted.span = self.span.span.get_span_context()
        cuts = ((semconv.LAYER_TOOL, semconv.PAGE), *self.cuts) if self.invites and not self.reads_on else self.cuts
        reference = self.remedied and self.remedied.ref
        reason = fragments.note(noted, cuts, result_bytes, self.handed, reference) if cuts else None
        if reason is not None:
            self.out.metrics.incomplete(self.name, reason, 0)
        if execution is not None and (self.invites or reason is not None):
            executions.follow(execution, self.name)
