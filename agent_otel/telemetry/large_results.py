"""The log record ``tool.large_result``: one per tool and hour, in the words of the span, for who greps logs."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from agent_otel import semconv
from agent_otel._internal import errors

if TYPE_CHECKING:
    from agent_otel.telemetry.spans import Exemplar

_SECONDS: Final = 3600.0

_log = logging.getLogger("agent_otel")
#: Time of the next record of each tool, in the seconds of the monotonic clock; tools are label values, so few.
_next: dict[str, float] = {}


@errors.guarded("large_result")
def log(
    tool: str, result_bytes: int, budget: tuple[int, str], args_hash: str | None, exemplar: Exemplar | None
) -> None:
    """Log a large result, unless one of the same tool was logged within the hour.

    The record has the span's attributes as fields, for structured logging, and the same as ``key=value`` in its text.
    A program that has not configured `logging` gets none: Python would write it to the standard error of a command.
    """
    now = time.monotonic()
    if now < _next.get(tool, now) or not _log.hasHandlers():
        return
    _next[tool] = now + _SECONDS
    found: dict[str, str | int] = {
        semconv.TOOL_NAME: tool,
        semconv.RESULT_BYTES: result_bytes,
        semconv.RESULT_BUDGET_BYTES: budget[0],
        semconv.RESULT_BUDGET_LAYER: budget[1],
    }
    if args_hash is not None:
        found[semconv.ARGS_HASH] = args_hash
    if exemplar is not None:
        found[semconv.TRACE_ID] = f"{exemplar.spot.trace_id:032x}"
    text = " ".join(f"{key}={value}" for key, value in found.items())
    _log.warning("%s %s", semconv.LARGE_RESULT, text, extra={semconv.EVENT_NAME: semconv.LARGE_RESULT, **found})
