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
_UNCONFIGURED_SECONDS: Final = 1.0

_log = logging.getLogger("agent_otel")
#: Time of the next record of each tool, in the seconds of the monotonic clock; tools are label values, so few.
_next: dict[str, float] = {}


def is_due(tool: str) -> bool:
    """Return False within the hour after a record of this tool."""
    return time.monotonic() >= _next.get(tool, 0.0)


@errors.guarded("large_result")
def log(
    tool: str, result_bytes: int, budget: tuple[int, str], args_hash: str | None, exemplar: Exemplar | None
) -> None:
    """Log a large result that is due.

    The record has the span's attributes as fields, for structured logging, and the same as ``key=value`` in its text.
    A program that has not configured `logging` gets none: Python would write it to the standard error of a command. It
    is looked up again a second later.
    """
    is_configured = _log.hasHandlers()
    _next[tool] = time.monotonic() + (_SECONDS if is_configured else _UNCONFIGURED_SECONDS)
    if not is_configured:
        return
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
