"""Context managers around the steps of a tool's generator."""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel.core import tool_visit
from agent_otel.core.tool_invocation import current
from agent_otel.core.tool_visit import Controlled
from agent_otel.core.types import PRODUCED
from agent_otel.measure.prints import StreamEnds
from agent_otel.measure.size import Size, size
from agent_otel.measure.truncation.detect import find_cut

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from agent_otel.core.tool_invocation import ToolInvocation
    from agent_otel.core.tool_visit import Visit
    from agent_otel.core.types import ToolResult
    from agent_otel.telemetry.spans import OpenSpan


def as_stream(visit: Visit) -> StreamVisit:
    """Detach a call from the context and return its stream, which is current only during its steps."""
    record = visit.record
    if visit.opens_span and record.span is None:
        tool_visit.open_span(record, record.within if visit.is_outermost else None, attach=False)
    visit.leave()
    return (EventVisit if visit.reader.events else StreamVisit)(visit)


class _Step:
    """A step of a generator, as a context manager.

    The record refers to it weakly: when the object is gone, after an interrupt too, no step runs.
    """

    __slots__ = ("__weakref__", "_visit")

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

    __slots__ = ("_ends",)
    record: ToolInvocation

    def __init__(self, visit: Visit) -> None:
        self._ends = StreamEnds()
        self.record = visit.record
        self.reader = visit.reader
        self.is_outermost = visit.is_outermost
        self.slot = self.around = None

    def step(self) -> _Step:
        """Return the context manager around the next step."""
        return _Step(self)

    def enter(self, step: Callable[[], object]) -> None:
        """Make the record current during a step."""
        with errors.reported("tool_call.step"):
            if self.record.visit() is None:  # else this step runs inside a step of the outer function
                self.record.visit = step
            self.around = current.get()
            current.set(self.record)
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
        if current.get() is self.record:
            current.set(self.around)
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
        tool_visit.finish(record)


class EventVisit(StreamVisit):
    """A framework's generator of events around a tool; the last event that can be read as a result is the result.

    It may be the outer function of a call, or the inner one, which leads to the handler.
    """

    __slots__ = ("_is_done", "_is_read", "_last")

    def __init__(self, visit: Visit) -> None:
        super().__init__(visit)
        self._is_done = self._is_read = False
        self._last: ToolResult | None = None

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
            tool_visit.leave_handler(record)
            if not self.is_outermost:
                record.awaits = reader
        if self.is_outermost:
            tool_visit.finish(record)
