"""The doors through which adapters report: one tool call, read at one or two stations.

A framework's outer function (what it hands back) and its inner one (what the handler produced) share one record.
The outermost opens and finishes it; the span opens at the last moment before the handler, because only then is it
known whether another instrumentation has opened one.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any

from opentelemetry import context

from agent_otel import _shield, catalogue, identity
from agent_otel.emit.telemetry import report_integration, telemetry
from agent_otel.measure.size import size
from agent_otel.reading import PRODUCED
from agent_otel.record import Record, ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from typing_extensions import Self

    from agent_otel.reading import Call, Part, Result, ToolReader

__all__ = [
    "Inside",
    "StreamVisit",
    "Visit",
    "enter_stream",
    "enter_tool",
    "finish_execution",
    "handler_failing",
    "handler_finishing",
    "handler_raised",
    "handler_returned",
    "handler_started",
    "model_request",
    "report_integration",
]

#: Off after uninstrumenting, for wrappers that other instrumentations have wrapped and that cannot be taken out.
enabled = True
#: Integrations whose hooks open the span instead of the functions they belong to.
hooked: set[str | None] = set()
_current: ContextVar[Record | None] = ContextVar("agent_otel_tool_call", default=None)


class Visit:
    """One wrapped function while it runs, as a context manager around the user's call.

    Nothing of ours is raised from it and no exception of the user's is held or replaced.
    """

    __slots__ = ("_reader", "_record", "_token")

    def __init__(self, record: Record, reader: ToolReader, token: Token[Record | None] | None) -> None:
        self._record = record
        self._reader = reader
        self._token = token

    def __enter__(self) -> Self:
        return self

    def returned(self, value: Any) -> None:
        """Read what the wrapped function returned."""
        try:
            record, reader = self._record, self._reader
            if record.produced is None or reader.station != PRODUCED:
                reading = reader.result(value)
                if reading is not None:
                    record.read(reader.station, reading)
                elif self._token is not None:
                    record.unasked = True
        except Exception:
            _shield.failed("tool_call.result")

    def as_stream(self) -> StreamVisit:
        """Let go of the current context: a stream is current only during its steps."""
        if self._token is not None:
            _current.reset(self._token)
        if self._record.span is not None:
            self._record.span.detach()
        return StreamVisit(self._record, self._reader)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            token = self._token
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
                if token is None:
                    self._record.awaits = self._reader
            if token is not None:
                self._record.finish()
        except Exception:
            _shield.failed("tool_call.finish")


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

    def __exit__(self, *_: object) -> None:
        self._record.depth -= 1


class StreamVisit:
    """A generator tool while it runs: a context manager around each step of it."""

    __slots__ = ("_reader", "_record", "_token")

    def __init__(self, record: Record, reader: ToolReader) -> None:
        self._record = record
        self._reader = reader
        self._token: Token[Record | None] | None = None

    def __enter__(self) -> Self:
        try:
            self._token = _current.set(self._record)
            if self._record.span is not None and not self._record.finished:
                self._record.span.attach()
        except Exception:
            _shield.failed("tool_call.step")
        return self

    def item(self, value: Any) -> None:
        """Add an item that passes."""
        try:
            reading = self._reader.result(value)
            if reading is not None:
                self._record.add(reading)
        except Exception:
            _shield.failed("tool_call.item")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._token is not None:
                _current.reset(self._token)
            if self._record.span is not None:
                self._record.span.detach()
            if error is not None and not self._record.finished:
                if not isinstance(error, StopIteration | StopAsyncIteration):
                    self._record.raise_(error, self._reader)
                self._record.finish_stream(complete=True)
        except Exception:
            _shield.failed("tool_call.step")

    def abandon(self) -> None:
        """Nobody wants more items; what has passed is a lower bound of the result."""
        try:
            if not self._record.finished:
                self._record.finish_stream(complete=False)
        except Exception:
            _shield.failed("tool_call.abandon")


@_shield.shielded("tool_call.enter")
def enter_stream(
    reader: ToolReader, instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> StreamVisit | None:
    """Begin to watch a generator tool at its first step."""
    visit = enter_tool(reader, instance, args, kwargs)
    return visit.as_stream() if isinstance(visit, Visit) else None


@_shield.shielded("execution.finish")
def finish_execution(named: identity.Identity) -> None:
    """Record the totals of an execution that has ended; one without tool calls leaves no trace."""
    finished = ledger.finish(named.id)
    if finished is not None:
        telemetry().metrics.execution(named.workflow, named.agent, finished.tool_calls, finished.result_bytes)


def enter_tool(
    reader: ToolReader, instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Visit | Inside | None:
    """Begin to watch a wrapped function; None when this is not a tool call of its own."""
    if not enabled:
        return None
    try:
        current = _current.get()
        if current is not None and not current.finished:
            return _enter_within(current, reader, instance, args, kwargs)
        return _begin(reader, reader.call(instance, args, kwargs))
    except Exception:
        _shield.failed("tool_call.enter")
        return None


def _begin(reader: ToolReader, call: Call | None) -> Visit | None:
    """Begin the record of a call."""
    if call is None or _is_suppressed():
        return None
    record = Record(call, telemetry(), reader.also_timed_by, reader.awaits)
    if record.tracing and reader.station == PRODUCED and reader.opened_by not in hooked:
        record.open_span(record.within)
    return Visit(record, reader, _current.set(record))


def _is_suppressed() -> bool:
    """Whether the program has suppressed instrumentation here; only that module of OpenTelemetry's does it."""
    return "opentelemetry.instrumentation.utils" in sys.modules and bool(context.get_value("suppress_instrumentation"))


def _enter_within(
    current: Record, reader: ToolReader, instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Visit | Inside | None:
    """Enter a function while a call runs: that call's handler, something its body uses, or an agent's own call."""
    if current.awaits is reader:
        current.enter_handler()
        if reader.opened_by not in hooked:
            current.open_span()
        return Visit(current, reader, None)
    call = reader.call(instance, args, kwargs)
    if call is not None and (
        call.call_id is None or (reader.station == PRODUCED and call.call_id == current.call.call_id)
    ):
        # A tool's body uses another tool, or reaches its MCP server: one call, already being recorded.
        return Inside(current)
    return _begin(reader, call)


@_shield.shielded("model_request")
def model_request(parts: Iterable[Part]) -> None:
    """A request is about to leave for a model: record its size by part, every part, so that zeros show too."""
    if not enabled:
        return
    sizes = dict.fromkeys(catalogue.REQUEST_PARTS, 0)
    for part, value in parts:
        sizes[part] += size(value).bytes
    telemetry().metrics.request(sizes)


def handler_started() -> None:
    """The framework is about to run the handler, and every callback of others has opened what it opens."""
    record = _running()
    if record is not None:
        record.open_span()


def handler_returned(result: Result) -> None:
    """The handler has returned, where the function that calls it cannot be wrapped."""
    record = _running()
    if record is not None:
        record.read(PRODUCED, result)
        record.leave_handler()


def handler_finishing(read: Callable[[Any], Result], value: Any) -> None:
    """The framework is about to tell its callbacks a result: the last moment that a foreign span is open."""
    record = _running()
    if record is not None and record.span is not None and record.span.foreign:
        record.read(PRODUCED, read(value))
        record.leave_handler()


def handler_failing(error: BaseException, reader: ToolReader) -> None:
    """The framework is about to tell its callbacks that the handler raised."""
    record = _running()
    if record is not None:
        record.raise_(error, reader)
        if record.span is not None and record.span.foreign:
            record.leave_handler()


def handler_raised(error: BaseException, reader: ToolReader) -> None:
    """The handler raised and the framework is about to turn that into text."""
    record = _running()
    if record is not None:
        record.raise_(error, reader)


def _running() -> Record | None:
    """The call whose own handler runs, or is about to; None inside of what its body uses."""
    record = _current.get()
    return None if record is None or record.finished or record.depth else record
