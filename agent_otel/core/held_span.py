"""Entry points for adapters that read a call while another instrumentation's span of it is open.

Such a span ends before the wrapped function returns, so that the numbers are set on it earlier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core.tool_visit import leave_handler, open_span, running, running_handler
from agent_otel.core.types import PRODUCED

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.trace import Span

    from agent_otel.core.tool_invocation import ToolInvocation
    from agent_otel.core.types import ToolReader, ToolResult


def started(held: Span) -> None:
    """Put the numbers of the running call on this span; the first span of a call has them."""
    record = running()
    if record is not None and record.span is None:
        open_span(record, held=held)


def finishing(read: Callable[[Any], ToolResult], value: Any, held: Span | None = None) -> None:
    """Record the handler's result; with ``held``, that of the call that has its numbers on this span."""
    record = _record(held)
    if record is not None and record.span is not None and record.span.foreign:
        record.read(PRODUCED, read(value))
        record.is_read_early = True
        leave_handler(record)


def failing(error: BaseException, reader: ToolReader, held: Span | None = None) -> None:
    """Record an exception of the handler; with ``held``, of the call that has its numbers on this span."""
    record = _record(held)
    if record is not None:
        record.raise_(error, reader)
        if record.span is not None and record.span.foreign:
            leave_handler(record)


def _record(held: Span | None) -> ToolInvocation | None:
    """Return the running call: the one on this span, or where that is None, the one whose own handler runs."""
    if held is None:
        return running_handler()
    record = running()
    return record if record is not None and record.span is not None and record.span.span is held else None
