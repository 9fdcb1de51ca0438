"""The fifth station: each payload that a durable runtime carries, held against its cap.

A step's two payloads share one span, which shows the one nearer to its cap. From the warn ratio up a payload is looked
into as well (``analysis``); below, it costs two histograms and a look into the ledger.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from opentelemetry import trace

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel.core import execution_context, payload_analysis
from agent_otel.core.executions import ledger
from agent_otel.core.names import plain_step
from agent_otel.core.payload_cap import cap_for
from agent_otel.core.payload_keys import shown
from agent_otel.measure.forecast import turns_to_cap
from agent_otel.measure.preview import clean
from agent_otel.telemetry import spans
from agent_otel.telemetry.setup import telemetry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextvars import Token
    from types import TracebackType

    from opentelemetry.trace import Span
    from typing_extensions import Self

    from agent_otel.core.execution_state import Execution
    from agent_otel.core.payload_cap import Held
    from agent_otel.core.types import Carried, Outcome, Step, StepReader
    from agent_otel.measure.breakdown.report import Breakdown
    from agent_otel.telemetry.payload_metrics import PayloadSeries
    from agent_otel.telemetry.setup import Telemetry

#: Fewer turns left than this are told.
FEW_TURNS = 3
# Below these bytes, and below this share of its cap, a payload is small.
_SMALL_SHARE = 0.01
_SMALL_BYTES = 16 * 1024

_ACTIVITY = {direction: f"activity_{direction}" for direction in (semconv.INPUT, semconv.OUTPUT)}
_WORKFLOW = {direction: f"workflow_{direction}" for direction in (semconv.INPUT, semconv.OUTPUT)}


class Weighed(NamedTuple):
    """A payload held against its cap, and what is left to do with it."""

    carried: Carried
    cap: Held | None
    turns_left: int | None
    notable: bool

    @property
    def utilization(self) -> float:
        """Share of the cap; without a cap, 0."""
        return self.carried.bytes / self.cap.bytes if self.cap else 0.0

    @property
    def is_to_be_read(self) -> bool:
        """Whether it is worth a look, and there is something to look at that nobody has."""
        carried = self.carried
        return self.notable and not carried.again and (carried.data is not None or carried.value is not None)

    def attributes(self) -> dict[str, Any]:
        """What the span says of the payload."""
        found: dict[str, Any] = {
            semconv.PAYLOAD_BYTES: self.carried.bytes,
            semconv.PAYLOAD_DIRECTION: self.carried.direction,
        }
        if self.cap is not None:
            found[semconv.PAYLOAD_CAP_BYTES] = self.cap.bytes
            found[semconv.PAYLOAD_UTILIZATION] = self.utilization
            found[semconv.PAYLOAD_CAP_SOURCE] = self.cap.source
        if self.turns_left is not None:
            found[semconv.PAYLOAD_TURNS_TO_CAP] = self.turns_left
        return found


class StepVisit:
    """One wrapped function that runs a step, as a context manager around the user's call."""

    __slots__ = (
        *("__weakref__", "_call", "_carrier", "_out", "_reader", "_started_ns", "_token"),
        *("outcome", "refused", "span", "step", "weighed"),
    )

    def __init__(self, reader: StepReader, step: Step, call: tuple[Any, tuple[Any, ...], Mapping[str, Any]]) -> None:
        self._reader = reader
        self._call = call
        self._out = telemetry()
        self._started_ns = time.time_ns()
        self._carrier = execution_context.Carrier(step.execution, self)
        self._token: Token[execution_context.Carrier | None] | None = None
        self.step = step
        self.span: spans.OpenSpan | None = None
        self.outcome: Outcome | None = None
        self.refused = False
        self.weighed: Weighed | None = None

    def __enter__(self) -> Self:
        try:
            self._token = execution_context.runtime.set(self._carrier)
            if not self._reader.opened_by_handler:
                self.open_span()
            carried = self._reader.carried(*self._call)
            if carried is not None:
                self.take(weigh(self._out, self.step, carried))
        except Exception:
            errors.report_error("step.enter")
        return self

    def open_span(self) -> None:
        """Open the span, or find the runtime's own, and make it current."""
        out = self._out
        if self.span is None and out.tracer is not None and out.is_tracing():
            attributes = step_attributes(self.step)
            mode, name = out.settings.spans, self.step.activity or ""
            current = trace.get_current_span()
            self.span = spans.open_step_span(out.tracer, mode, name, attributes, self._started_ns, current)
        if self.span is not None:
            if self.span.foreign and self.weighed is not None:  # it may have ended when the output is known
                self.span.write(self.weighed.attributes(), None, None)
            if self._carrier.let_go is None:
                self._carrier.let_go = functools.partial(self.span.let_go, trace.get_current_span())
            self.span.attach()

    def take(self, weighed: Weighed) -> None:
        """Keep the payload that is nearer to its cap."""
        if self.weighed is None or _rank(weighed) >= _rank(self.weighed):
            self.weighed = weighed

    def returned(self, value: Any) -> None:
        """Read what came out of the step."""
        try:
            self.outcome = self._reader.outcome(*self._call, value)
        except Exception:
            errors.report_error("step.outcome")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.leave()
            if error is not None and self.outcome is None and self._reader.failed is not None:
                self.outcome = self._reader.failed(error)
            error_type = type(error).__qualname__ if error is not None else None
            outcome = self.outcome
            if outcome is not None:
                error_type = outcome.error_type or error_type
                if outcome.carried is not None:
                    self.take(weigh(self._out, self.step, outcome.carried))
                if outcome.refused is not None:
                    self.refused = True
                    reject(self._out, self.step, outcome.refused_direction)
            finish(self._out, self.step, self.span, self.weighed, error_type, refused=self.refused)
        except Exception:
            errors.report_error("step.finish")

    def leave(self) -> None:
        """The step's own code has ended; what came out of it may be read later, and in another context."""
        if self.span is not None:
            self.span.detach()
        token, self._token = self._token, None
        if token is not None:
            try:  # noqa: SIM105 - suppress() costs on every call
                execution_context.runtime.reset(token)
            except ValueError:
                pass  # the step ends in another context than it began in, which is gone or going
        self._carrier.is_over = True


def _running() -> StepVisit | None:
    """Return the visit of the step that runs here."""
    carrier = execution_context.running_step()
    visit = carrier.visit() if carrier is not None else None
    return visit if isinstance(visit, StepVisit) else None


def current_step() -> Step | None:
    """The step that runs here."""
    visit = _running()
    return visit.step if visit is not None else None


def step_started() -> None:
    """The runtime is about to run the step's own code, and whoever opens a span around it has done so."""
    visit = _running()
    if visit is not None:
        visit.open_span()


def payload(step: Step, carried: Carried, started_ns: int | None = None, refused: str | None = None) -> None:
    """Take a payload that no wrapped step function surrounds; ``started_ns`` is when its step began, if it was one."""
    out = telemetry()
    weighed = weigh(out, step, carried)
    if refused is not None:
        reject(out, step, carried.direction, carried.kind)
    visit = _running()
    if visit is not None and visit.step.execution == step.execution and visit.step.activity == step.activity:
        visit.take(weighed)
        visit.refused = visit.refused or refused is not None
        return
    if started_ns is None and refused is None and not weighed.notable:
        return
    if not out.is_tracing() or out.tracer is None:
        finish(out, step, None, weighed, None, refused=refused is not None)
        return
    span = None
    # Some runtimes retry what they have refused a dozen times a second.
    if started_ns is not None or ((weighed.notable or refused is not None) and not carried.again):
        name = step.activity or step.workflow or ""
        span = spans.open_payload_span(out.tracer, name, step_attributes(step), started_ns)
    finish(out, step, span, weighed, None, refused=refused is not None)


def refused(step: Step, direction: str) -> None:
    """The runtime refused a payload whose size is known already, or not at all."""
    reject(telemetry(), step, direction)


def named(step: Step) -> Step:
    """Add the workflow's name, where the runtime told it with the execution but not with the step."""
    step = plain_step(step)
    if step.workflow is None and step.execution is not None:
        execution = ledger.known(step.execution)
        if execution is not None:
            return step._replace(workflow=execution.workflow)
    return step


def weigh(out: Telemetry, step: Step, carried: Carried) -> Weighed:
    """Hold a payload against its cap, count it, and see what it says of the turns to come."""
    direction = carried.direction
    cap = cap_of(step, direction)
    cap_bytes = cap.bytes if cap else None
    series = out.payloads.series(step.runtime, step.workflow, step.activity, direction)
    if not carried.again:
        series.payload(carried.bytes, cap_bytes, out.settings.payload_near_ratio, _exemplar(out))
    utilization = carried.bytes / cap_bytes if cap_bytes else 0.0
    turns_left: int | None = None
    if step.execution is not None:
        kind = kind_of(step, direction, carried.kind)
        small = carried.bytes < _SMALL_BYTES and utilization < _SMALL_SHARE
        if not (small and (carried.again or ledger.small(step.execution, kind, carried.bytes))):
            turns_left = _remember(step.execution, kind, carried, cap_bytes, series)
    readable = carried.data is not None or carried.value is not None
    notable = utilization >= out.settings.payload_warn_ratio or (readable and payload_analysis.is_large(carried.bytes))
    return Weighed(carried, cap, turns_left, notable)


def _remember(
    execution_id: str, kind: str, carried: Carried, cap_bytes: int | None, series: PayloadSeries
) -> int | None:
    """Enter the payload in the ledger; return how many turns it has left, as far as that can be forecast."""
    execution, track = ledger.carried(execution_id, kind, carried.bytes, again=carried.again)
    sizes = track.sizes.copy()
    turns_left = turns_to_cap(sizes, cap_bytes) if cap_bytes is not None else None
    if turns_left is not None and turns_left < FEW_TURNS and ledger.is_first(execution):
        series.few_turns.record(1)
    track.utilization = utilization = carried.bytes / cap_bytes if cap_bytes else 0.0
    tracks = execution.tracks or {}
    if len(tracks) == 1 or all(utilization >= other.utilization for other in tracks.values()):
        execution.carries = (carried.bytes, cap_bytes, turns_left)
        if carried.direction != semconv.OUTPUT:  # an output has the results of its own step, not of those beside it
            execution.handed_bytes = 0
        if not carried.again and len(sizes) > 1 and sizes[-1] >= sizes[-2]:
            series.growth.record(sizes[-1] - sizes[-2])
    return turns_left


def reject(out: Telemetry, step: Step, direction: str, kind: str = "") -> None:
    """Count a refusal; the same again is a retry that cannot succeed."""
    series = out.payloads.series(step.runtime, step.workflow, step.activity, direction)
    series.rejected.record(1)
    if step.execution is not None and ledger.refused(step.execution, kind_of(step, direction, kind)) > 1:
        series.stuck.record(1)


def finish(  # noqa: PLR0913 - what is known of a step at its end
    out: Telemetry,
    step: Step,
    span: spans.OpenSpan | None,
    weighed: Weighed | None,
    error_type: str | None,
    *,
    refused: bool,
) -> None:
    """Write the span, look into the payload if it is due, and end the span."""
    if span is not None:
        attributes = weighed.attributes() if weighed else {}
        if refused:
            attributes[semconv.PAYLOAD_REJECTED] = True
        if span.foreign and not span.span.is_recording():
            span = _beside(out, span.span, step, weighed, refused=refused)
        if span is not None:
            span.write(attributes, error_type, None)
    if weighed is not None and weighed.is_to_be_read:
        execution = ledger.known(step.execution) if step.execution else None
        level = payload_analysis.level(weighed.carried.bytes, weighed.cap, out.settings.payload_warn_ratio)
        if execution is None or ledger.is_first(execution, analysis=level):
            if span is not None and span.foreign:
                # It will have ended when something is found.
                span = _beside(out, span.span, step, weighed, refused=refused)
                if span is not None:
                    span.write(weighed.attributes(), None, None)
            payload_analysis.look_into(weighed.carried, _Explanation(out, step, execution, span))
            return
    if span is not None:
        span.end()


def _beside(
    out: Telemetry, parent: Span, step: Step, weighed: Weighed | None, *, refused: bool
) -> spans.OpenSpan | None:
    """The runtime's own span has ended; what is notable gets a span of its own below it."""
    if out.tracer is None or not (refused or (weighed is not None and weighed.notable)):
        return None
    return spans.open_payload_span(out.tracer, step.activity or "", step_attributes(step), None, parent)


class _Explanation:
    """Where the findings of an analysis go: the step's span, which ends with them, and the metrics."""

    def __init__(self, out: Telemetry, step: Step, execution: Execution | None, span: spans.OpenSpan | None) -> None:
        self._out = out
        self._step = step
        self._calls = dict(execution.call_ids) if execution is not None else {}
        self._span = span
        self._ended_ns = time.time_ns()

    def tool_of(self, call_id: str) -> str | None:
        """The tool that was asked by this call id, if this execution asked it."""
        known = self._calls.get(execution_context.short(call_id))
        return known.tool if known else None

    def found(self, breakdown: Breakdown | None) -> None:
        """Write what was found, if anything, and end the span at the time the step ended."""
        if breakdown is not None:
            breakdown = shown(breakdown, self._step.execution)
            self._out.payloads.analysed(
                self._step.workflow,
                breakdown.paths,
                breakdown.tools,
                breakdown.unattributed_bytes,
                breakdown.duplicate_bytes,
            )
        if self._span is not None:
            if breakdown is not None and self._span.span.is_recording():
                self._span.span.set_attributes(payload_analysis.attributes(breakdown, self._calls))
            self._span.end(self._ended_ns)


def is_over_cap(step: Step, carried: Carried) -> bool:
    """Whether a payload is larger than its cap."""
    cap = cap_of(step, carried.direction)
    return cap is not None and carried.bytes > cap.bytes


def cap_of(step: Step, direction: str) -> Held | None:
    """Return the cap on a step's payload in a direction, where it is known."""
    return cap_for(step.runtime, boundary_of(step, direction), step.version, step.variant)


def kind_of(step: Step, direction: str, more: str = "") -> str:
    """What tells an execution's payloads apart that are not turns of the same."""
    return f"{direction} {step.activity} {more}"


def boundary_of(step: Step, direction: str) -> str:
    """The boundary of ``caps.toml`` that a payload crosses."""
    return (_ACTIVITY if step.activity else _WORKFLOW).get(direction, direction)


def step_attributes(step: Step) -> dict[str, Any]:
    """What the span says of the step."""
    found: dict[str, Any] = {semconv.RUNTIME: clean(step.runtime)}
    if step.workflow:
        found[semconv.WORKFLOW_NAME] = clean(step.workflow)
    if step.activity:
        found[semconv.ACTIVITY] = clean(step.activity)
    if step.execution:
        found[semconv.EXECUTION_ID] = clean(step.execution)
    if step.attempt > 1:
        found[semconv.ACTIVITY_ATTEMPT] = step.attempt
    return found


def _rank(weighed: Weighed) -> tuple[float, int]:
    return weighed.utilization, weighed.carried.bytes


def _exemplar(out: Telemetry) -> Any:
    return spans.exemplar_of(trace.get_current_span()) if out.is_tracing() else None
