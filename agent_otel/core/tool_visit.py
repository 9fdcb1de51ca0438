"""One wrapped function of a tool call while it runs."""

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

    from agent_otel.core.tool_invocation import Record
    from agent_otel.core.types import Asked, Result, ToolReader


def running() -> Record | None:
    """Return the tool call that runs here; one that an interrupt has torn out of its visit's hands does not."""
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
    """One wrapped function while it runs, as a context manager around the user's call.

    Nothing of ours is raised from it and no exception of the user's is held or replaced.
    """

    __slots__ = ("__weakref__", "_is_outermost", "_opens_span", "_reader", "_record", "_token")

    def __init__(self, record: Record, reader: ToolReader, *, is_outermost: bool, opens_span: bool) -> None:
        self._record = record
        self._reader = reader
        self._token: Token[Record | None] | None = None
        self._is_outermost = is_outermost
        self._opens_span = opens_span
        if is_outermost:
            record.visit = weakref.ref(self)

    def __enter__(self) -> Self:
        # Not before: an exception of a signal handler's, between this and the block, would leave the record current.
        try:
            if self._is_outermost:
                self._token = _current.set(self._record)
            if self._opens_span:
                self._record.open_span(self._record.within if self._is_outermost else None)
        except Exception:
            errors.report_error("tool_call.enter")
        return self

    def returned(self, value: Any) -> Result | None:
        """Read what the wrapped function returned; the reading, if there is one."""
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

    def skipped(self, asked: Asked) -> Any:
        """What goes on in place of a result because the handler is not to be asked; LEFT_ALONE when it is."""
        try:
            acting = result_remedies()
            if acting is not None:
                return acting.skipped(self._record, self._reader, asked)
        except Exception:
            errors.report_error("tool_call.limit")
        return LEFT_ALONE

    def remedied(self, value: Any, asked: Asked) -> Any:
        """Read what the wrapped function returned; what goes on instead of it, where a remedy is to act."""
        reading = self.returned(value)
        try:
            acting = result_remedies()
            if reading is not None and acting is not None:
                return acting.applied(self._record, self._reader, reading.value, value, asked)
        except Exception:
            errors.report_error("tool_call.remedy")
        return value

    async def aremedied(self, value: Any, asked: Asked) -> Any:
        """As `remedied`, without holding up the event loop."""
        reading = self.returned(value)
        try:
            acting = result_remedies()
            if reading is not None and acting is not None:
                return await acting.aapplied(self._record, self._reader, reading.value, value, asked)
        except Exception:
            errors.report_error("tool_call.remedy")
        return value

    def as_stream(self) -> StreamVisit:
        """Let go of the current context: a stream is current only during its steps."""
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
            # First the span, then the record: what is torn off between the two is still seen to be.
            if self._is_outermost:
                spans.leave(self._record.span, self._record.within, is_torn_off=error is not None)
            if token is not None:
                try:  # noqa: SIM105 - suppress() costs on every call
                    _current.reset(token)
                except ValueError:
                    pass  # the call ends in another context than it began in, which is gone or going
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
    """A wrapped function that the body of a running tool uses: no call of its own, nor does it speak for the tool."""

    __slots__ = ("_record",)

    def __init__(self, record: Record) -> None:
        self._record = record

    def __enter__(self) -> Self:
        self._record.depth += 1
        return self

    def returned(self, value: Any) -> None:
        """Nothing is read."""

    def skipped(self, asked: Asked) -> Any:  # noqa: ARG002 - as a visit's
        """Nothing is skipped: the call that this is part of has begun."""
        return LEFT_ALONE

    def remedied(self, value: Any, asked: Asked) -> Any:  # noqa: ARG002 - as a visit's
        """Nothing is replaced: the tool itself reads this."""
        return value

    async def aremedied(self, value: Any, asked: Asked) -> Any:  # noqa: ARG002 - as a visit's
        """Nothing is replaced."""
        return value

    def __exit__(self, *_: object) -> None:
        self._record.depth -= 1
