"""The entry point of automatic summarising, before a model request is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel._internal import errors
from agent_otel.core import remedy_hooks, switches
from agent_otel.core.tool_visit import is_suppressed

if TYPE_CHECKING:
    from agent_otel.core.remedy_hooks import SummaryVisit
    from agent_otel.core.types import Invocation, ModelReader


def is_on() -> bool:
    """Return true when long requests are summarised."""
    return remedy_hooks.summaries() is not None


@errors.guarded("model_request.summarize")
def begin(reader: ModelReader, invocation: Invocation) -> SummaryVisit | None:
    """Put an earlier summary into a request; return the visit that makes a new one, or None where none is needed."""
    if not switches.enabled or switches.muted.get():
        return None
    acting = remedy_hooks.summaries()
    return None if acting is None or is_suppressed() else acting.begin(reader, invocation)
