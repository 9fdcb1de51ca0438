"""The size of what the model would read of a call: the result, or the text that a framework made of an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_otel.core.tool_invocation import Record
    from agent_otel.measure.size import Size


def read_size(record: Record) -> Size | None:
    """Return the size; None when there is nothing to read yet."""
    return record.produced or record.failed


def correct(record: Record, size: Size) -> None:
    """Put the exact size in the place of a lower bound."""
    if record.produced is None:
        record.failed = size
    else:
        record.produced = size
