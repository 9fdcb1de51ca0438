"""The carried stage: each payload that a durable runtime carries is compared with its cap.

From the warn ratio up a payload is also analysed, in one daemon thread that uses at most a twentieth of a core; below
it, a payload costs two histograms and a look-up of its execution. The thread's mailbox has one slot and the latest
payload wins, so at most one payload waits. The span of a step whose payload is dropped ends without a breakdown. A
payload that is a live object is analysed at once in the calling thread, because its owner may change it.
"""

from __future__ import annotations

import atexit
import operator
import threading
import time
from array import array
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from opentelemetry.trace import INVALID_SPAN

from agent_otel import semconv
from agent_otel._internal import errors, fork
from agent_otel.core import execution_context
from agent_otel.core.execution_context import id_or_none, short, text_or_none
from agent_otel.core.execution_state import REUSED, Stored
from agent_otel.core.executions import executions
from agent_otel.core.payload_cap import cap_of
from agent_otel.core.payload_keys import path as shown
from agent_otel.core.tool_names import seen
from agent_otel.measure.breakdown.report import Common, breakdown_object, breakdown_text
from agent_otel.measure.breakdown.unread import Delivery, Held
from agent_otel.measure.forecast import turns_to_cap, turns_until_full
from agent_otel.measure.preview import clean
from agent_otel.telemetry import spans
from agent_otel.telemetry.setup import telemetry
from agent_otel.telemetry.spans import put_on_any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.trace import Span

    from agent_otel.core.execution_state import ExecutionState, PayloadKind, SeenCall
    from agent_otel.core.payload_cap import EffectiveCap
    from agent_otel.core.types import Payload, Step
    from agent_otel.measure.breakdown.report import Breakdown
    from agent_otel.measure.breakdown.unread import UnreadBytes
    from agent_otel.telemetry.metrics import PayloadSeries
    from agent_otel.telemetry.setup import Telemetry

#: Fewer turns to cap than this are counted, once per execution.
FEW_TURNS = 3
# A payload below these bytes and below this share of its cap is small.
_SMALL_SHARE = 0.01
_SMALL_BYTES = 16 * 1024
#: Runtimes with a store that keeps every payload of a thread.
_STORES = frozenset({"agno", "dbos", "google-adk", "langgraph", "openai-agents", "prefect"})
_GIGABYTE = 10**9
#: States before the limit of a store that are compared; each may be followed by writes of as many bytes.
_SOON = 4
#: Payloads from this size on are analysed below the warn ratio and without a cap, once each time they double.
LARGE_BYTES = 1024 * 1024
_SHARE = 0.05  # of one core
_EXIT_SECONDS = 1.0
_NEAR = 100  # a level above all doublings


class MeasuredPayload(NamedTuple):
    """A payload with its cap, its turns to cap, and whether it is large enough to be analysed."""

    carried: Payload
    cap: EffectiveCap | None
    turns_left: int | None
    notable: bool
    stored: Mapping[str, Any] = {}

    @property
    def utilization(self) -> float:
        """Return payload ÷ cap; 0 without a cap."""
        return self.carried.bytes / self.cap.bytes if self.cap else 0.0

    def attributes(self) -> dict[str, Any]:
        """Return the span attributes of the payload."""
        payload = self.carried
        found: dict[str, Any] = {semconv.PAYLOAD_BYTES: payload.bytes, semconv.PAYLOAD_DIRECTION: payload.direction}
        if self.cap is not None:
            found[semconv.PAYLOAD_CAP_BYTES] = self.cap.bytes
            found[semconv.PAYLOAD_UTILIZATION] = self.utilization
            found[semconv.PAYLOAD_CAP_SOURCE] = self.cap.source
        if self.turns_left is not None:
            found[semconv.PAYLOAD_TURNS_TO_CAP] = self.turns_left
        return {**found, **self.stored}


def named(step: Step) -> Step:
    """Return a step whose names and ids are text, a runtime that is none as ``_other``.

    Add the workflow's name where the runtime reported it for the execution but not for the step.
    """
    step = step._replace(
        runtime=text_or_none(step.runtime) or semconv.OTHER,
        activity=text_or_none(step.activity),
        workflow=text_or_none(step.workflow),
        execution=id_or_none(step.execution),
    )
    execution = executions.known(step.execution) if step.workflow is None and step.execution is not None else None
    return step if execution is None else step._replace(workflow=execution.workflow)


def placed(step: Step) -> Step:
    """Do the same as `named`, and put the step into the execution that the program names around it.

    The calls and model requests there belong to that execution.
    """
    step, identity = named(step), execution_context.explicit.get()
    return step if identity is None else step._replace(execution=identity.id)


def telemetry_of(step: Step) -> Telemetry:
    """Return the telemetry of a step's run: of this context, else of the last call or step of its execution."""
    state = executions.known(step.execution) if step.execution is not None else None
    agent = None if state is None or state.out is None else state.out.agent
    return telemetry(agent, step.workflow)


def weigh(out: Telemetry, step: Step, carried: Payload, *, refused: bool = False) -> MeasuredPayload:
    """Compare a payload with its cap, record its metrics, and forecast its turns to cap; no store has a refused one."""
    direction, size_bytes, again, execution = carried.direction, carried.bytes, carried.again, step.execution
    cap = cap_of(step, direction)
    cap_bytes = cap.bytes if cap else None
    series = out.metrics.payload(step.runtime, step.activity, direction)
    if not again:
        span = spans.current_span()
        exemplar = None if span is None or span is INVALID_SPAN else spans.exemplar_of(span)
        series.payload(size_bytes, cap_bytes, out.settings.payload_near_ratio, exemplar)
    utilization = size_bytes / cap_bytes if cap_bytes else 0.0
    turns_left: int | None = None
    if execution is not None:
        run = execution_context.outermost.get()
        if run is not None and run.conversation == execution:
            run.totals.payload_bytes = max(run.totals.payload_bytes, size_bytes)
        kind = kind_of(step, direction, carried.kind)
        small = size_bytes < _SMALL_BYTES and utilization < _SMALL_SHARE
        if not (carried.is_appended or (small and (again or executions.small(execution, kind, size_bytes)))):
            turns_left = _remember(execution, kind, carried, cap_bytes, series)
    is_large = size_bytes >= LARGE_BYTES and (carried.data is not None or carried.value is not None)
    notable = is_large or utilization >= out.settings.payload_warn_ratio
    is_stored = execution is not None and step.runtime in _STORES and not (again or refused)
    return MeasuredPayload(carried, cap, turns_left, notable, _store(out, step, carried) if is_stored else {})


def _store(out: Telemetry, step: Step, carried: Payload) -> dict[str, Any]:
    """Count a payload that the thread's store keeps; return span attributes of the bytes written.

    A history that is read is not written again. Its growth is that of the thread.
    """
    execution = executions.touched(step.execution or "")
    stored = execution.stored = execution.stored or Stored()
    size_bytes, limit_bytes, before = carried.bytes, out.settings.store_warn_bytes, stored.written
    is_whole, more = carried.direction == semconv.STATE and not carried.is_appended, 0
    if carried.direction == semconv.HISTORY:
        stored.growth, stored.last = size_bytes - (stored.last or size_bytes), size_bytes
    else:
        new, more = stored.add(size_bytes, is_whole=is_whole)
        out.metrics.record(semconv.STORE_WRITTEN, size_bytes, step.runtime)
        out.metrics.record(semconv.STORE_NEW, new, step.runtime)
        if is_whole and before <= limit_bytes:
            _compare(stored, carried.value, limit_bytes)
    times = stored.written / max(1, stored.new)
    found: dict[str, Any] = {semconv.STORE_BYTES: stored.written, semconv.STORE_AMPLIFICATION: round(times, 2)}
    growth = size_bytes if more else stored.growth
    turns = turns_until_full(_GIGABYTE - stored.written, growth, max(0, more)) if growth > 0 else None
    if turns is not None:
        found[semconv.STORE_TURNS] = turns
    if before <= limit_bytes < stored.written:
        (path, equal_bytes), stored.texts = stored.equal, ()
        ahead = "" if turns is None else f", and has 1 GB after {turns + 1:,} more {'states' if more else 'runs'}"
        if path:
            found.update({semconv.STORE_EQUAL_PATH: path, semconv.STORE_EQUAL_BYTES: equal_bytes})
            ahead += f"; the last state has {equal_bytes:,} bytes of {path} from the state before it"
        out.metrics.record(semconv.STORES_LARGE, 1, step.runtime)
        errors.warn_once(
            f"store {step.runtime} {step.workflow}",
            f"A thread of {clean(step.workflow or step.runtime)} has written {stored.written:,} bytes into its store, "
            f"{times:,.1f} times its new bytes{ahead}: {clean(step.execution or '')}. Further ones are only counted.",
        )
    return found


def _compare(stored: Stored, state: Any, limit_bytes: int) -> None:
    """Find the largest path of a state that the state before had, too, if the thread will soon pass the limit."""
    if stored.written + _SOON * stored.last > limit_bytes:
        common = Common(frozenset(stored.texts))
        breakdown_object(state, lambda _: None, common=common)
        sizes = common.sizes(shown)
        stored.texts, stored.equal = array("q", common.texts), next(iter(sizes.items()), ("", 0))


def _remember(
    execution_id: str, kind: PayloadKind, carried: Payload, cap_bytes: int | None, series: PayloadSeries
) -> int | None:
    """Record the payload in the ledger; return its turns to cap, None where there is no forecast."""
    size_bytes = carried.bytes
    execution, track = executions.carried(execution_id, kind, size_bytes, again=carried.again)
    sizes = track.sizes[:]
    turns_left = turns_to_cap(sizes, cap_bytes) if cap_bytes is not None else None
    if turns_left is not None and turns_left < FEW_TURNS and executions.is_first(execution):
        series.few_turns.record(1)
    if turns_left is None and cap_bytes is not None and len(sizes) > 1 and sizes[-1] > sizes[-2]:
        series.forecast(execution_id, max(0, (cap_bytes - sizes[-1]) // (sizes[-1] - sizes[-2])))  # two turns only
    elif turns_left is not None:
        series.forecast(execution_id, turns_left)
    if not track.refused:
        series.is_stuck(execution_id, stuck=False)
    track.utilization = utilization = size_bytes / cap_bytes if cap_bytes else 0.0
    track.last = (size_bytes, cap_bytes, turns_left)
    # A list, because another thread may add a payload of another kind meanwhile.
    nearest = max(list((execution.tracks or {}).values()), key=_utilization, default=track)
    if utilization < nearest.utilization:
        execution.carries = nearest.last  # this one may have been nearer before it was compacted
    else:
        if carried.direction != semconv.OUTPUT:  # an output holds the results of its own step only
            execution.carried_on(sizes)
        execution.carries = track.last
        is_turn = not (carried.again or track.refused)  # a retry of a refused payload is none
        if is_turn and len(sizes) > 1 and sizes[-1] >= sizes[-2]:
            series.growth.record(sizes[-1] - sizes[-2])
    return turns_left


_utilization = operator.attrgetter("utilization")


def reject(out: Telemetry, step: Step, direction: str, kind: str = "") -> None:
    """Count a rejected payload; from the second in a row on it is also a stuck retry."""
    series = out.metrics.payload(step.runtime, step.activity, direction)
    series.rejected.record(1)
    if step.execution is not None and executions.refused(step.execution, kind_of(step, direction, kind)) > 1:
        series.is_stuck(step.execution)


def finish(  # noqa: PLR0913 - the state of a step at its end
    out: Telemetry,
    step: Step,
    span: spans.OpenSpan | None,
    weighed: MeasuredPayload | None,
    error_type: str | None,
    *,
    refused: bool,
) -> None:
    """Write the span, analyse the payload at its first occurrence at this level, and end the span."""
    if span is not None:
        attributes = weighed.attributes() if weighed else {}
        if refused:
            attributes[semconv.PAYLOAD_REJECTED] = True
        if span.foreign and not span.span.is_recording():
            span = _beside(out, span.span, step, weighed, refused=refused)
        if span is not None:
            span.write(attributes, error_type, None)
    analysis = None if weighed is None else _analysis_of(out, step, span, weighed, refused=refused)
    if analysis is not None and analysis.is_live:
        analysis.run()
    elif analysis is not None:
        _analyst.offer(analysis)
    elif span is not None:
        span.end()


def _analysis_of(
    out: Telemetry, step: Step, span: spans.OpenSpan | None, weighed: MeasuredPayload, *, refused: bool
) -> _Analysis | None:
    """Return the analysis of a payload at its first occurrence at this level; None for a retry or a small one."""
    carried = weighed.carried
    if not weighed.notable or carried.again or (carried.data is None and carried.value is None):
        return None
    execution = executions.known(step.execution) if step.execution else None
    level = _level(carried.bytes, weighed.cap, out.settings.payload_warn_ratio)
    is_first = execution is None or executions.is_first(execution, analysis=level)
    if not is_first and not _is_open(execution, carried.direction):
        return None
    if span is not None and span.foreign:
        # The other instrumentation's span will have ended when the analysis finishes.
        span = _beside(out, span.span, step, weighed, refused=refused)
        if span is not None:
            span.write(weighed.attributes(), None, None)
    return _Analysis(out, step, weighed, execution, span, is_first)


def _level(payload_bytes: int, cap: EffectiveCap | None, warn_ratio: float) -> int:
    """Return the level of a payload: tenths of the cap from the warn ratio up, else doublings of ``LARGE_BYTES``."""
    if cap is not None and payload_bytes >= warn_ratio * cap.bytes:
        return _NEAR + int(payload_bytes * 10 / cap.bytes)
    return (payload_bytes // LARGE_BYTES).bit_length()


def _is_open(execution: ExecutionState | None, direction: str) -> bool:
    """Return true once for a payload whose unread bytes may be known when those of the one before were not."""
    if execution is None or not execution.is_unread_open or direction == semconv.OUTPUT:
        return False
    execution.is_unread_open = False
    return True


def _beside(
    out: Telemetry, parent: Span, step: Step, weighed: MeasuredPayload | None, *, refused: bool
) -> spans.OpenSpan | None:
    """Open a child of the runtime's own span, which has ended or will; None for a payload that is not notable."""
    if out.tracer is None or not (refused or (weighed is not None and weighed.notable)):
        return None
    attributes = step_attributes(step, out)
    return spans.started(out.tracer, semconv.PAYLOAD_CHILD, step.activity or "", attributes, None, parent)


def _held(execution: ExecutionState) -> Held | None:
    """Return what the requests of an execution have held; None where none was seen, or the provider keeps messages."""
    read = execution.read
    if read is None or execution.is_continued:
        return None
    found: dict[str, Delivery] = {}
    is_pending = True  # a result behind the last delivered one may still be on its way
    for call_id, call in reversed(list(execution.call_ids.items())):
        is_pending = is_pending and call.most_delivered < 0
        if max(call.produced, call.most_delivered) >= 0 and call.fragment is not REUSED:
            found[call_id] = Delivery(max(0, call.produced), max(0, call.most_delivered), is_pending)
    return Held(read.prints, len(read.prints), read.modulus, lambda call_id: found.get(short(call_id)))


@dataclass
class _Analysis:
    """Writes the breakdown of a payload to the metrics and to the step's span, and ends that span."""

    _out: Telemetry
    _step: Step
    _weighed: MeasuredPayload
    _execution: ExecutionState | None
    _span: spans.OpenSpan | None
    _is_first: bool

    def __post_init__(self) -> None:
        self._calls = {} if self._execution is None else dict(self._execution.call_ids)
        self._held = None if self._execution is None else _held(self._execution)
        self._ended_ns = time.time_ns()

    @property
    def is_live(self) -> bool:
        """Return true for an object that its owner may change."""
        return self._weighed.carried.data is None

    def run(self) -> None:
        """Analyse the payload."""
        carried, found = self._weighed.carried, None
        with errors.reported("analysis.text"):
            if carried.data is not None:
                found = breakdown_text(carried.data, self.tool_of, seen.__contains__, self._held, shown)
            else:
                found = breakdown_object(carried.value, self.tool_of, seen.__contains__, self._held, shown)
        with errors.reported("analysis.found"):
            self.found(found)

    def tool_of(self, call_id: str) -> str | None:
        """Return the tool that this execution called under this id, else None."""
        known = self._calls.get(short(call_id))
        return known.tool if known else None

    def found(self, breakdown: Breakdown | None) -> None:
        """Record the breakdown, if there is one, and end the span with the time at which the step ended."""
        if breakdown is not None:
            unread = self._unread(breakdown)
            if unread is not breakdown.unread:
                breakdown = replace(breakdown, unread=None)
            if self._is_first:
                self._out.metrics.analysed(
                    breakdown.paths, breakdown.tools, breakdown.unattributed_bytes, breakdown.duplicate_bytes
                )
            is_open = self._execution is not None and self._execution.is_unread_open
            if unread is not None and not is_open:
                for path, path_bytes in unread.paths.items():
                    self._out.metrics.record(semconv.PAYLOAD_UNREAD, path_bytes, path)
            if self._span is not None and self._span.span.is_recording():
                put_on_any(self._span.span, _attributes(breakdown, self._calls))
                if unread is not None and unread.paths:
                    self._forecast(self._span.span, breakdown.total_bytes - unread.pending, sum(unread.paths.values()))
        if self._span is not None:
            self._span.end(self._ended_ns)

    def _unread(self, breakdown: Breakdown) -> UnreadBytes | None:
        """Return the unread bytes of a payload; None where a request may hold the whole of it yet."""
        unread, is_output = breakdown.unread, self._weighed.carried.direction == semconv.OUTPUT
        if unread is not None and is_output and not unread.has_delivered:
            unread = None
        if self._execution is not None:
            is_unknown = unread is None or unread.pending * 2 > breakdown.total_bytes
            self._execution.is_unread_open = self._is_first and breakdown.unread is not None and is_unknown
        return unread

    def _forecast(self, span: Span, known_bytes: int, unread_bytes: int) -> None:
        """Write the turns to cap of the payloads without the share that is unread in the known bytes of this one."""
        carried, cap = self._weighed.carried, self._weighed.cap
        tracks = self._execution.tracks if self._execution is not None else None
        track = (tracks or {}).get(kind_of(self._step, carried.direction, carried.kind))
        read_bytes = known_bytes - unread_bytes
        if track is None or cap is None or read_bytes <= 0:
            return
        left = turns_to_cap([size * read_bytes // known_bytes for size in track.sizes], cap.bytes)
        if left is not None:
            put_on_any(span, {semconv.PAYLOAD_TURNS_WITHOUT_UNREAD: left})


def kind_of(step: Step, direction: str, more: str = "") -> PayloadKind:
    """Return the key of a payload's series: an execution's payloads with the same key are its successive turns."""
    return direction, step.activity, more


def step_attributes(step: Step, out: Telemetry) -> dict[str, Any]:
    """Return the span attributes of the step, with the labels of its run."""
    found: dict[str, Any] = {semconv.RUNTIME: clean(step.runtime)}
    if step.activity:
        found[semconv.ACTIVITY] = clean(step.activity)
    if step.execution:
        found[semconv.EXECUTION_ID] = clean(step.execution)
    if step.attempt > 1:
        found[semconv.ACTIVITY_ATTEMPT] = step.attempt
    return found | out.label_attributes


def _attributes(found: Breakdown, calls: Mapping[str, SeenCall]) -> dict[str, Any]:
    """Return the span attributes of an analysed payload; ``calls`` are the execution's calls by id."""
    said: dict[str, Any] = {
        semconv.PAYLOAD_LARGEST_PATH: clean(found.largest_path),
        semconv.PAYLOAD_LARGEST_PATH_BYTES: found.largest_path_bytes,
        semconv.PAYLOAD_DUPLICATE_BYTES: found.duplicate_bytes,
    }
    if found.tools:
        tool, tool_bytes = max(found.tools.items(), key=lambda item: item[1])
        said[semconv.PAYLOAD_LARGEST_TOOL] = clean(tool)
        said[semconv.PAYLOAD_LARGEST_TOOL_BYTES] = tool_bytes
    if found.duplicates:
        largest = max(found.duplicates, key=lambda duplicate: duplicate.bytes)
        said[semconv.PAYLOAD_DUPLICATE_PATHS] = [clean(largest.path), clean(largest.other_path)]
    if found.unread is not None:
        unread = found.unread.paths
        said[semconv.PAYLOAD_UNREAD_BYTES] = sum(unread.values())
        if unread:
            said[semconv.PAYLOAD_UNREAD_PATH] = clean(max(unread, key=unread.__getitem__))
    inside = sum(
        calls[call].produced if call in calls and calls[call].produced > 0 else there
        for call, there in found.calls.items()
    )
    if inside:
        said[semconv.PAYLOAD_AMPLIFICATION] = round(found.total_bytes / inside, 3)
    return said


class _Analyst:
    """The thread and its mailbox."""

    def __init__(self) -> None:
        self._registered = False
        self.reset()

    def reset(self) -> None:
        """Discard the state, for a forked child, in which the thread does not run."""
        self._ready = threading.Condition()
        self._slot: _Analysis | None = None
        self._busy = False
        self._thread: threading.Thread | None = None

    def offer(self, analysis: _Analysis) -> None:
        """Put a payload into the slot; a payload that waits there is dropped."""
        with self._ready:
            dropped, self._slot = self._slot, analysis
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="agent_otel-analysis", daemon=True)
                self._thread.start()
                if not self._registered:
                    self._registered = True
                    # atexit runs this before the providers' shutdown, because they were registered earlier.
                    atexit.register(self.drain)
            self._ready.notify_all()
        if dropped is not None:
            dropped.found(None)

    def drain(self, seconds: float = _EXIT_SECONDS) -> None:
        """Wait at most ``seconds`` until no payload waits; a payload that still waits then gets no breakdown."""
        with self._ready:
            self._ready.wait_for(lambda: self._slot is None and not self._busy, seconds)
            left, self._slot = self._slot, None
        if left is not None:
            left.found(None)

    def _work(self) -> None:
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._slot is not None)
                analysis, self._slot, self._busy = self._slot, None, True
            started = time.perf_counter()
            if analysis is not None:
                analysis.run()
            took = time.perf_counter() - started
            del analysis
            with self._ready:
                self._busy = False
                self._ready.notify_all()
            time.sleep(took / _SHARE)


_analyst = _Analyst()
#: Waits at most so many seconds until no payload waits.
drain = _analyst.drain
fork.after_fork(_analyst.reset)
