"""Further attempts of a tool's handler, which a framework makes within one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel.telemetry import foreign_spans

if TYPE_CHECKING:
    from agent_otel.core.tool_invocation import ToolInvocation


def begin_again(record: ToolInvocation) -> None:
    """Discard the readings of an earlier attempt, also those on the span that another instrumentation had open for it.

    Some have a span for each attempt, others one for the call.
    """
    opened = record.span
    if opened is not None and opened.foreign and record.written:
        if not opened.span.is_recording():
            record.span, record.written = None, False
        elif record.error_type is not None:
            foreign_spans.take_back_error(opened.span, record.error_type)
    record.forget_attempt()
