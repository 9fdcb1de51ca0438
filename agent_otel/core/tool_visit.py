"""Context managers around the wrapped functions of a tool call."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from agent_otel._internal import errors
from agent_otel.core.remedy_hooks import result_remedies
from agent_otel.core.tool_invocation import current as _current
from agent_otel.core.tool_stream import EventVisit, StreamVisit
from agent_otel.core.types import LEFT_ALONE, PRODUCED
from agent_otel.telemetry import spans

if TYPE_CHECKING:
    from contextvars import Token
    from types import TracebackType

    from typing_extensions import Self

    from agent_otel.core.tool_invocation import ToolInvocation
    from agent_otel.core.types import ToolReader, ToolResult, WrappedCall


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
        record.span.let_go(record.within)
    return None


class Visit:
    """A wrapped function while it runs, as a context manager around the user's call.

    It raises nothing of its own, and neither suppresses nor replaces an exception of the user's call.
    """

    __slots__ = ("__weakref__", "_is_outermost", "_opens_span", "_reader", "_record", "_token")

    def __init__(self, record: ToolInvocation, reader: ToolReader, *, is_outermost: bool, opens_span: bool) -> None:
        self._record = record
        self._reader = reader
        self._token: Token[ToolInvocation | None] | None = None
        self._is_outermost = is_outermost
        self._opens_span = opens_span
        if is_outermost:
            record.visit = weakref.ref(self)

    def __enter__(self) -> Self:
        # Not in __init__: a signal handler that raises between __init__ and the block would leave the record current.
        try:
            if self._is_outermost:
                self._token = _current.set(self._record)
            if self._opens_span:
                self._record.open_span(self._record.within if self._is_outermost else None)
        except Exception:
            errors.report_error("tool_call.enter")
        return self

    def returned(self, value: Any) -> ToolResult | None:
        """Read the value that the wrapped function returned; return the reading, or None."""
        try:
            record, reader = self._record, self._reader
            if record.produced is None or reader.station != PRODUCED:
                reading = reader.result(value)
                if reading is not None:
                    record.read(reader.station, reading)
                elif self._is_outermost:
                    record.unasked = True
                return reading
        except Exception:
            errors.report_error("tool_call.result")
        return None

    def skipped(self, asked: WrappedCall) -> Any:
        """Return the replacement result when a limit skips the handler, else LEFT_ALONE."""
        try:
            acting = result_remedies()
            if acting is not None:
                return acting.skipped(self._record, self._reader, asked)
        except Exception:
            errors.report_error("tool_call.limit")
        return LEFT_ALONE

    def remedied(self, value: Any, asked: WrappedCall) -> Any:
        """Read the value that the wrapped function returned; return it, or the replacement of a remedy."""
        reading = self.returned(value)
        try:
            acting = result_remedies()
            if reading is not None and acting is not None:
                return acting.applied(self._record, self._reader, reading.value, value, asked)
        except Exception:
            errors.report_error("tool_call.remedy")
        return value

    async def aremedied(self, value: Any, asked: WrappedCall) -> Any:
        """Do the same as `remedied` without blocking the event loop."""
        reading = self.returned(value)
        try:
            acting = result_remedies()
            if reading is not None and acting is not None:
                return await acting.aapplied(self._record, self._reader, reading.value, value, asked)
        except Exception:
            errors.report_error("tool_call.remedy")
        return value

    def as_stream(self) -> StreamVisit:
        """Detach the call from the context and return its stream, which is current only during its steps."""
        if self._token is not None:
            _current.reset(self._token)
        if self._opens_span and self._record.span is None:
            self._record.open_span(self._record.within if self._is_outermost else None, attach=False)
        if self._record.span is not None:
            self._record.span.detach()
        if self._reader.events:
            return EventVisit(self._record, self._reader, is_outermost=self._is_outermost)
        return StreamVisit(self._record, self._reader)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            token = self._token
            # First the span, then the record: after an interrupt between the two, `running` still detects the call.
            if self._is_outermost:
                spans.leave(self._record.span, self._record.within, is_torn_off=error is not None)
            if token is not None:
                try:  # noqa: SIM105 - suppress() costs on every call
                    _current.reset(token)
                except ValueError:
                    pass  # the call ends in another context than it began in; that context is no longer used
            if error is not None:
                self._record.raise_(error, self._reader)
            if self._reader.station == PRODUCED:
                if self._record.span is not None:
                    self._record.leave_handler()
                if not self._is_outermost:
                    self._record.awaits = self._reader
            if self._is_outermost:
                self._record.finish()
        except Exception:
            errors.report_error("tool_call.finish")


class Inside:
    """A wrapped function that the body of a running tool calls; it is no tool call, and its value is not the result."""

    __slots__ = ("_record",)

    def __init__(self, record: ToolInvocation) -> None:
        self._record = record

    def __enter__(self) -> Self:
        self._record.depth += 1
        return self

    def returned(self, value: Any) -> None:
        """Ignore the value: it is not the result of the running tool."""

    def skipped(self, asked: WrappedCall) -> Any:  # noqa: ARG002 - the signature of Visit
        """Return LEFT_ALONE: limits apply to the running tool call, not to a part of it."""
        return LEFT_ALONE

    def remedied(self, value: Any, asked: WrappedCall) -> Any:  # noqa: ARG002 - the signature of Visit
        """Return the value unchanged: the tool's own code reads it."""
        return value

    async def aremedied(self, value: Any, asked: WrappedCall) -> Any:  # noqa: ARG002 - the signature of Visit
        """Return the value unchanged."""
        return value

    def __exit__(self, *_: object) -> None:
        self._record.depth -= 1
