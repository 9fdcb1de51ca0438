"""A tool call while it runs: the readings of its stages, and its span attributes and metrics made of them.

`ToolInvocation` is plain data. `agent_otel.core.tool_visit` fills it on the way into and out of the wrapped functions.
Only what `start_attributes`, `span_attributes` and `record_metrics` return or record leaves the process.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import INVALID_SPAN

from agent_otel import semconv
from agent_otel._internal.failures import error_type, text_of
from agent_otel._internal.fork import recording
from agent_otel.core import execution_context, tool_names
from agent_otel.core.captured_content import capture, failure_text, hidden, hide_in, without
from agent_otel.core.execution_state import Stage, state_attributes
from agent_otel.core.executions import executions, new_call
from agent_otel.core.payload_cap import budget_of, of_process
from agent_otel.core.thread import fragments
from agent_otel.core.thread.fragments import FEWEST, LONGEST, round_counts
from agent_otel.core.thread.request_parts import outcome
from agent_otel.core.thread.threads import open_calls
from agent_otel.core.thread.tool_definitions import drift
from agent_otel.core.types import PRODUCED
from agent_otel.measure.arguments_hash import arguments as arguments_of
from agent_otel.measure.arguments_hash import arguments as digest_arguments
from agent_otel.measure.key_structure import BEGINNINGS
from agent_otel.measure.preview import clean
from agent_otel.measure.prints import prints
from agent_otel.measure.size import Size, estimated_tokens, size
from agent_otel.measure.truncation import find_cut, has_shrunk
from agent_otel.measure.truncation.paging import PAGE_ENDING, PAGE_OPENINGS, PAGE_TAIL, further
from agent_otel.telemetry import foreign_spans, metrics, spans
from agent_otel.telemetry.spans import current_span

if TYPE_CHECKING:
    from collections.abc import Collection

    from opentelemetry.trace import Span

    from agent_otel.core.execution_context import Run
    from agent_otel.core.execution_state import ExecutionState, SeenCall, Totals
    from agent_otel.core.payload_cap import Budget
    from agent_otel.core.thread.tool_definitions import Change
    from agent_otel.core.types import Denial, LimitReached, Remedied, ToolCall, ToolReader, ToolResult
    from agent_otel.measure.prints import Prints
    from agent_otel.measure.truncation import Cut
    from agent_otel.telemetry.setup import Telemetry
    from agent_otel.telemetry.sinks import Exemplar
    from agent_otel.telemetry.spans import OpenSpan

_LONGEST_ERROR = 1 << 40
#: The running tool call.
current: ContextVar[ToolInvocation | None] = ContextVar("agent_otel_tool_call", default=None)


class Dispatch:
    """A tool call that is about to be made; the policy and the limits decide about each one."""

    agent: str | None
    call: ToolCall
    args_hash: str | None = None
    #: The call that this one carries on, which the limits have charged already.
    charged_to: Dispatch | None = None
    error_type: str | None = None
    execution: str | None = None
    #: The text that the framework made of an exception, which the model reads.
    failed: Size | None = None
    #: Arguments that the dispatch policy adds to the model's; they are on no span and in no hash.
    injected: dict[str, Any] | None = None
    is_asked = False  # the policy has approved and prepared the same call further out
    is_counted = False  # by the limits; a retry is not another call
    is_gated = False  # the dispatch policy lets the call run
    is_readable = True
    name: str
    #: The readers of the wrapped functions through which the call has gone.
    passed: tuple[ToolReader | None, ...] = ()
    place: str | None = None
    run: Run | None = None
    produced: Size | None = None
    #: The place of the result in the store, for later attempts of the step.
    spot: Any = None
    #: The state of the execution; None without an execution.
    state: ExecutionState | None = None
    #: The tool that is about to run. A middleware may have replaced the tool that the model chose.
    tool: str | None = None

    def skip(self, reached: LimitReached) -> None:
        """Record that a limit of the execution skipped the handler."""
        self.error_type = semconv.LIMIT_REACHED
        skipped = {semconv.PHASE: semconv.SKIPPED, semconv.LIMIT: reached.limit}
        self.tell(semconv.TOOL_CALL_EVENT, skipped, semconv.LIMITS_HIT, 1, reached.limit)

    def deny(self, denial: Denial) -> None:
        """Record that the dispatch policy denies the call, or would deny it."""
        rule, mode, argument = denial
        if mode == semconv.ENFORCE:
            self.error_type = semconv.TOOL_DENIED
        about = {} if argument is None else {semconv.ARGUMENT: argument}
        denied = {semconv.RULE: rule, semconv.MODE: mode, **about}
        self.tell(semconv.POLICY_DENIED_EVENT, denied, semconv.POLICY_DENIED, 1, self.name, rule, mode)

    def tell(self, event: str, attributes: dict[str, Any], *counted: Any) -> None:
        """Record an event about the call, for its span, and what is counted of it."""
        raise NotImplementedError


class ToolInvocation(Dispatch):
    """A tool call while it runs; it is dropped when the call ends."""

    # Defaults are on the class: setting twenty attributes on every call would cost as much as sizing its result.
    #: Copies of the arguments and the result, where the program asks for content.
    captured: dict[str, Any] | None = None
    change: Change | None = None
    characters = 0
    #: True when limits and payloads have counted the bytes that the model gets.
    counted = False
    #: Layers and reasons of the truncations so far.
    cuts: tuple[tuple[str, str], ...] = ()
    failure: str | None = None
    finished = False
    followup: str | None = None
    follows: str | None = None  # the tool of the result that the call follows up
    handed: int | None = None
    invites: tuple[int, ...] | None = None  # of a page: hashes of the values that name the next one
    asked: SeenCall | None = None  # the call of a response that this is
    is_deferred = False  # by the framework, in the function around which the span is open
    is_read_early = False  # the result, before its function returned it, while another's span was open
    is_refused = False
    is_stored_early = False  # because the payload of the execution has few turns left
    is_sought = False  # in the texts of requests, by the passages of the result
    #: The value that `budget` returned first, None before.
    known_budget: Budget | None = None
    mark: object = None  # the last request in this context
    owed_to = 0  # a hash of the tools and the agent of the requests that must have the result
    prints: Prints | None = None  # of the text that the model gets
    raised = False
    #: True for a tool that reads on in a stored result: its page is a part that the model chose.
    reads_on = False
    remedied: Remedied | None = None
    repeated: str | None = None  # by its arguments or its result
    #: The slots of the calls that the handler makes, by the queue of parallel calls.
    slots_inside: Any = None
    span: OpenSpan | None = None
    start_ns = 0
    structured: Size | None = None
    totals: Totals  # of the run, else of the state
    #: Events with their attributes, and what is counted of each.
    told: tuple[tuple[str, dict[str, Any], tuple[Any, ...]], ...] = ()
    #: Number of the model request that led to the call, 0 where that is not available; and of the last one inside it.
    turn = 0
    turn_inside = 0
    #: True when the framework has not called the handler, for example because it waits for an approval.
    unasked = False
    visit: Any = staticmethod(lambda: None)  # by a weak reference
    #: True when the span has the attributes of the result.
    written = False

    def __init__(
        self, call: ToolCall, out: Telemetry, also_timed_by: tuple[str, ...], awaits: ToolReader | None = None
    ) -> None:
        name, arguments, execution, asked = call.name, call.arguments, call.execution, None
        if open_calls.has_asked and not call.is_quoted and (asked := ask_for(call, out)) is not None:
            self.asked = asked
            call = call._replace(call_id=call.call_id or asked.id, agent=call.agent or asked.agent)
            out = out.of(execution_context.names(call.agent, own=asked.run))
        self.call, self.out, self.awaits = call, out, awaits
        series = out.metrics.tools.get(name)
        if series is None:  # not seen before, not clean or over the limit
            name = clean(name)
            tool_names.keep(tool_names.seen, name)
            series = out.metrics.tool(name, also_timed_by)
        if call.name not in tool_names.called:
            tool_names.keep(tool_names.called, call.name)
        self.agent, self.name, self.series = call.agent, name, series
        self.within = within = current_span()
        self.loop = execution_context.loop.get()
        self.tracing = within is not None
        #: The key of the state that the call continues, and the outermost run, which has separate totals and limits.
        self.place = place = execution_context.resolve(
            execution,
            None if within is INVALID_SPAN else within,
            None,
            None if asked is None else lambda: asked.place,
        )
        run = execution_context.current_run()
        if run is not None and execution_context.outermost.get() is None and run.key != place:
            run = None  # a framework's call beside the loop
        if run is None and asked is not None and asked.run is not None and asked.run.key == place:
            run = asked.run
        self.run = run
        self.execution = place if run is None else run.id
        if within is not None or self.execution is not None:
            self._begin(arguments)
        else:
            self.args_bytes = arguments_of(arguments).bytes
        if within is not None:
            self.start_ns = time.time_ns()
        self.started = time.perf_counter()

    def _begin(self, arguments: object) -> None:
        """Hash and measure the arguments before the tool can change them, and record the call in its execution."""
        self.args_hash, self.args_bytes = digest_arguments(arguments, self.out.args_key)
        if self.place is not None:
            run_totals = None if self.run is None else self.run.totals
            self.state, is_repeated = executions.began(
                self.place, self.name, self.args_hash, self.call.call_id, run_totals, self.asked
            )
            self.state.out, self.totals = self.out, run_totals or self.state
            self.repeated = semconv.ARGUMENTS if is_repeated else None
            around, asked = current.get(), self.asked
            if asked is not None:
                self.turn, self.mark, self.owed_to = asked.turn, asked.mark, asked.owed_to
            else:
                self.turn = self.state.turn if around is None else around.turn_inside
                if around is None and not self.state.is_forced:
                    self.mark, self.owed_to = fragments.last_request.get(), self.state.owner
            self.is_sought = bool(self.owed_to) or self.call.call_id is None
            if self.state.followed:
                known = fragments.follow_up(self.state, self.name, arguments, repeated=is_repeated)
                self.followup, self.follows = known
        if self.out.captures:
            self.captured = capture(None, semconv.TOOL_ARGUMENTS, arguments, self.out.settings, self.name)

    def tell(self, event: str, attributes: dict[str, Any], *counted: Any) -> None:
        """Record an event about the call; the same one again is none."""
        if (event, attributes, counted) not in self.told:
            self.told = (*self.told, (event, attributes, counted))

    def begin_again(self) -> None:
        """Discard the readings of an earlier attempt, because the framework calls the handler again.

        Those on a span that another instrumentation had open for it go, too. Some have a span for each attempt, others
        one for the call.
        """
        opened = self.span
        if opened is not None and opened.foreign and self.written:
            if not opened.span.is_recording():
                self.span, self.written = None, False
            elif self.error_type is not None:
                foreign_spans.take_back_error(opened.span, self.error_type)
        if self.raised or self.produced is not None:
            self.raised = False
            self.error_type = self.failure = self.produced = self.structured = self.failed = None
            self.remedied = self.handed = self.invites = None
            self.counted = self.is_refused = self.is_read_early = False
            self.cuts = ()

    def read(self, station: str, result: ToolResult) -> None:
        """Record the result that a wrapped function returned at one stage."""
        if result.error_type is not None and self.error_type is None:
            self.error_type = execution_context.text_or_none(result.error_type) or semconv.OTHER
        self.is_refused = self.is_refused or result.is_refused
        if station != PRODUCED:
            self._read_handed_back(result)
        elif result.raised or self.raised:
            self.raised = True
            self.failed = size(result.value)
            self.handed = self.failed.bytes
        else:
            self._read_produced(result)

    def _read_produced(self, result: ToolResult) -> None:
        value, structured, error_type = result.value, result.structured, result.error_type
        text = value if type(value) is str else None
        self.produced = size(value)
        result_bytes, _ = self.produced
        self.characters = result_bytes if text is None else len(text)
        if text is not None and self.is_sought:
            self.prints = prints(text)
        self.structured = None if structured is None else size(structured)
        if self.out.captures:
            self.captured = capture(self.captured, semconv.TOOL_RESULT, value, self.out.settings, self.name)
            if self.injected:
                self.captured = hidden(self.captured, self.injected)
        if self.reads_on:  # a page is a part that the model chose
            return
        if (value is not None if text is None else text[:1] in BEGINNINGS) or structured is not None:
            self.change = None if error_type else drift.note(self.name, value, structured)
        left = 0
        may_be_page = text is None or text.startswith(PAGE_OPENINGS) or PAGE_ENDING in text[-PAGE_TAIL:]
        if may_be_page and (self.execution is not None or self.call.call_id is not None):
            left = further(value, self.call.arguments)
            self.invites = fragments.cursors_of(value) if left else None
        cut = find_cut(value, result_bytes)
        self.cuts = ((semconv.LAYER_TOOL, cut.reason),) if cut else ()
        may_be_full = cut is None and (text is None or (FEWEST < self.characters <= LONGEST and "\n" in text))
        if may_be_full and round_counts.note(self.name, value, self.call.arguments, left, self.args_hash):
            self.cuts = ((semconv.LAYER_TOOL, semconv.SUSPECTED),)
        if self.state is not None and self.repeated is None:
            found = outcome(value, self.produced, self.call.arguments)
            self.repeated = self.totals.again(self.name, found, self.turn)

    def _read_handed_back(self, result: ToolResult) -> None:
        handed = size(result.value)
        self.handed = handed.bytes
        if self.produced is None:
            # The handler never ran (a middleware answered) or it raised: no other stage has a reading.
            if not (self.raised or result.raised or self.error_type):
                self._read_produced(result)
            elif self.remedied is None:
                self.failed = handed
            return
        if self.prints is None and type(result.value) is str and self.is_sought:
            self.prints = prints(result.value)
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
        if self.prints is not None:
            self.prints = prints(found.replacement.text)

    def raise_(self, error: BaseException, reader: ToolReader) -> None:
        """Record that the handler raised; an exception that is the framework's control flow sets no error type."""
        self.raised = True
        if self.injected:
            hide_in(error, self.injected)
        if reader.is_control_flow is not None and reader.is_control_flow(error):
            return
        self.is_refused |= reader.is_refusal is not None and reader.is_refusal(error)
        own = error if reader.cause is None else reader.cause(error)
        if self.error_type is None:
            self.error_type = error_type(own)
            self.failure = failure_text(own, self.out.settings, self.name) if self.out.captures else None
            self.failure = self.failure and without(self.failure, self.injected or {})
        if None not in (self.failed, self.handed):  # read when the exception was raised, before a remedy
            return
        text = None if reader.failure_text is None else reader.failure_text(error)
        if text is not None:
            self.failed = size(text)
            self.handed = self.failed.bytes
        elif self.failed is None and issubclass(type(error), Exception):  # the framework may make a text of it
            own_text = text_of(own, _LONGEST_ERROR)
            self.failed, self.prints = size(own_text), prints(own_text)

    def budget(self) -> Budget:
        """Return the budget of the result, as it was before the result itself took of it."""
        if self.known_budget is None:
            call, state = self.call, self.state
            if (
                of_process.chosen is self.out.settings
                and not call.offloads_above
                and call.host is None
                and (state is None or (state.carries is None and not state.context_bytes))
                and execution_context.runtime.get() is None
            ):  # not a separate layer
                self.known_budget = of_process.budget
            else:
                self.known_budget = budget_of(state, self.out.settings, call)
        return self.known_budget


def ask_for(call: ToolCall, out: Telemetry, around: ToolInvocation | None = None) -> SeenCall | None:
    """Return the call of a response that a tool call is; with ``around``, without taking it."""
    digest = "" if call.call_id in open_calls.by else digest_arguments(call.arguments, out.args_key).digest
    run, outer = execution_context.outermost.get() or execution_context.loop.get(), around or current.get()
    outer = None if outer is None or outer.finished else outer
    return open_calls.claim(call.call_id, call.name, digest, run, outer, takes=around is None)


def start_attributes(call: ToolInvocation) -> dict[str, Any]:
    """Return the span attributes that are known before the handler runs."""
    asked = call.call
    attributes: dict[str, Any] = {
        semconv.OPERATION_NAME: semconv.EXECUTE_TOOL,
        semconv.GEN_AI_TOOL_NAME: call.name,
        semconv.TOOL_NAME: call.name,
        semconv.TOOL_TYPE: asked.type,
        semconv.ARGS_HASH: call.args_hash,
        semconv.ARGS_BYTES: call.args_bytes,
        **call.out.label_attributes,
    }
    if asked.call_id:
        attributes[semconv.TOOL_CALL_ID] = asked.call_id
    if call.followup is not None:
        attributes[semconv.TOOL_FOLLOWUP] = call.followup
    if asked.agent and asked.agent != call.out.agent:
        attributes[semconv.SUB_AGENT] = clean(asked.agent)
    execution_context.describe(attributes, call.name, asked.execution, call.turn, asked.mcp, call.run)
    if call.state is not None and (call.state.carries or call.state.context):
        attributes.update(state_attributes(call.state))
    return attributes


def span_attributes(call: ToolInvocation) -> dict[str, Any]:  # noqa: C901 - all of a call's attributes
    """Return the span attributes of the result: its sizes, its budget, and the layer and reason of the last cut."""
    attributes: dict[str, Any] = {}
    if call.produced is None:
        if call.raised and call.failed is not None:
            attributes[semconv.FAILURE_BYTES] = call.failed.bytes
    else:
        attributes[semconv.RESULT_BYTES] = call.produced.bytes
        attributes[semconv.RESULT_ESTIMATED_TOKENS] = estimated_tokens(call.characters)
        # A size that equals a limit of the table is only suspected to be truncated.
        established = bool(call.cuts) and any(reason != semconv.SUSPECTED for _, reason in call.cuts)
        attributes[semconv.RESULT_TRUNCATED] = established
        if not call.produced.exact:
            attributes[semconv.RESULT_ESTIMATED] = True
    if call.repeated and call.state is not None:
        attributes.update(call.totals.loop_attributes(call.name, call.repeated))
    # Also of a call without a result: remedies act on the text of a failure, too.
    attributes[semconv.RESULT_BUDGET_BYTES], attributes[semconv.RESULT_BUDGET_LAYER] = call.budget()
    if call.structured is not None:
        attributes[semconv.RESULT_STRUCTURED_BYTES] = call.structured.bytes
    if call.handed is not None and (call.produced is None or call.handed != call.produced.bytes):
        attributes[semconv.RESULT_HANDED_BACK_BYTES] = call.handed
    if call.remedied is not None and call.remedied.ref is not None:
        attributes[semconv.RESULT_REF] = call.remedied.ref
        if call.is_stored_early:
            attributes[semconv.RESULT_STORED_EARLY] = True
    if call.cuts:
        attributes |= fragments.cut_attributes(call.cuts)
    if call.captured is not None:
        attributes.update(call.captured)
    return attributes


def record_metrics(  # noqa: C901, PLR0912 - all of a call's metrics, on every call
    call: ToolInvocation, seconds: float, exemplar: Exemplar | None
) -> None:
    """Record a call that has ended, after ``seconds``, on the metrics of its tool."""
    series, produced, layer, is_large, read_bytes = call.series, call.produced, None, False, 0
    read, record = produced or call.failed, call.out.metrics.record
    if read is not None:
        read_bytes, _ = read
    if produced is not None or call.handed is not None:  # a model reads it
        is_large = read_bytes > series.large_bytes
        limit_bytes, limiting = call.known_budget or call.budget()
        layer = limiting if (call.remedied.bytes if call.remedied else read_bytes) > limit_bytes else None
    duration = series.duration if call.error_type is None else series.failed_duration(call.error_type)
    with recording.held:
        if duration is not None:
            duration.add(seconds, exemplar)
        series.args_size.add(call.args_bytes, exemplar)
        if produced is not None:
            series.size.add(read_bytes, exemplar)
            if read_bytes > series.bound or call.started > series.until:
                series.noticed(read_bytes, call.started)
        if layer is not None:
            series.over_budget[layer].add(1, exemplar)
        if is_large:
            series.large.add(1, exemplar)
    if call.raised and produced is None and read is not None and call.name not in semconv.OWN_TOOLS:
        record(semconv.RESULT_SIZE, read_bytes, call.name, call.error_type, exemplar=exemplar)
    if is_large and not call.reads_on and call.out.settings.log_large_results and metrics.is_record_due(series.tool):
        metrics.log_large_result(series.tool, read_bytes, call.budget(), call.args_hash, exemplar)
    if call.remedied is not None and read is not None:
        call.out.metrics.remedied(call.name, call.remedied.reason, read_bytes - call.remedied.bytes)
    for layer, reason in call.cuts:
        call.out.metrics.truncations(call.name, layer, reason).record(1, exemplar)
    for *_, counted in call.told:
        if counted:
            record(*counted)
    if call.repeated == semconv.ARGUMENTS:
        series.repeats.record(1, exemplar)
    elif call.repeated:
        record(semconv.TOOL_REPEATS, 1, call.name, call.repeated, exemplar=exemplar)
    if call.followup is not None:
        record(semconv.TOOL_FOLLOWUPS, 1, call.follows or call.name, call.followup)
    if call.is_refused:
        series.invalid_arguments.record(1, exemplar)
    if call.change is not None:
        series.shape_changes.record(1, exemplar)


def keep(call: ToolInvocation) -> None:
    """Keep the sizes, prints and span context of a result. The model boundary recognises the result by them."""
    call_id, seen, digest = call.call.call_id, call.asked, call.args_hash or ""
    span = None if call.span is None else call.span.span.get_span_context()
    if call.produced is None:
        if seen is None and call.state is not None:
            if call_id is None:
                executions.without_result(call.state, call.name, digest)
            else:
                seen = call.state.call_ids.get(call_id)
        if seen is not None:
            seen.stage = Stage.FAILED
            if call.raised and call.failed is not None:
                seen.failed = call.failed.bytes if call.handed is None else call.handed
                seen.prints = call.prints if call.handed is None else None
                seen.span = span
        return
    if call.state is None:
        seen = new_call(call.name, id=call_id, produced=call.produced.bytes, digest=digest)
        open_calls.add(seen)
    else:
        totals, goes_on = None if call.run is None else call.run.totals, not call.counted
        seen = executions.produced(
            call.state, call.name, call.produced.bytes, call_id, totals, call=seen, goes_on=goes_on
        )
        if seen is None:  # the execution is forgotten
            return
    seen.handed = -1 if call.handed is None else call.handed
    seen.prints, seen.mark, seen.digest, seen.follows = call.prints, call.mark, digest, call.follows
    seen.owed_to = 0 if call.prints is None else call.owed_to
    seen.span = seen.span if span is None else span
    is_page = call.invites is not None
    cuts = ((semconv.LAYER_TOOL, semconv.PAGE), *call.cuts) if is_page else call.cuts
    reason = fragments.note(seen, cuts, call.produced.bytes, call.handed, call.remedied) if cuts else None
    if reason is not None and seen.fragment is not None and seen.fragment.is_open:
        call.out.metrics.record(semconv.ANSWERS_INCOMPLETE, 0, call.name, reason)
    if call.state is not None and (is_page or reason is not None):
        fragments.invite(call.state, call.name, call.call.arguments, call.invites, seen.fragment)


def compare(before_bytes: int, after: Size, value: object, known: Collection[str] = ()) -> str | None:
    """Return why a result has fewer bytes at the later stage, None when it arrived whole.

    ``value`` is the result at the later stage and ``after`` its size. ``known`` are the reasons of truncations that the
    earlier stage had already. An estimated size proves nothing.
    """
    if not after.exact or not has_shrunk(before_bytes, after.bytes, value):
        return None
    return reason(find_cut(value, after.bytes), known)


def reason(cut: Cut | None, known: Collection[str] = ()) -> str:
    """Return the reason that a truncated text itself gives, or that it has shrunk."""
    gives_one = cut is not None and cut.reason != semconv.SUSPECTED and cut.reason not in known
    return cut.reason if cut is not None and gives_one else semconv.SHRUNK


def show_cut(  # noqa: PLR0913, PLR0917 - the fields of a span
    out: Telemetry,
    parent: Span,
    tool: str,
    produced_bytes: int,
    later: tuple[str, int],
    layer: str,
    why: str,
    whole: str = semconv.RESULT_BYTES,
) -> None:
    """Add a child span to the tool's span, so that one query finds the truncations of all layers.

    ``later`` is the attribute of the later stage's size, and that size; ``whole`` is the attribute of the first one's.
    """
    if out.tracer is None:
        return
    attribute, later_bytes = later
    attributes: dict[str, Any] = {
        semconv.TOOL_NAME: tool,
        whole: produced_bytes,
        attribute: later_bytes,
        semconv.RESULT_TRUNCATED: True,
        semconv.TRUNCATION_LAYER: layer,
        semconv.TRUNCATION_REASON: why,
        **out.label_attributes,
    }
    at = time.time_ns()  # the tool's own span may have ended
    spans.started(out.tracer, semconv.CUT_CHILD, tool, attributes, at, parent).end(at)
