"""Size of the text that the model reads of a call: the result, or the framework's text about an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_otel.core.tool_invocation import Record
    from agent_otel.measure.size import Size


def read_size(record: Record) -> Size | None:
    """Return the size; None when the call has produced nothing yet."""
    return record.produced or record.failed


def correct(record: Record, size: Size) -> None:
    """Replace a lower bound by the exact size."""
    if record.produced is None:
        record.failed = size
    else:
        record.produced = size
