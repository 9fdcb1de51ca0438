"""LangChain's callbacks, between which another instrumentation's span of the same call is open.

The hooks make that span current, or hold it where it can be found, so that the numbers can be set on it.

The entry is in ``langchain.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core import handler as observer
from agent_otel.core import held_span
from agent_otel.core.plain import modules_of
from agent_otel.integrations.frameworks import langchain
from agent_otel.integrations.hooks import Hook

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from agent_otel.core.types import Invocation


def _ending(invocation: Invocation) -> None:
    held_span.finishing(langchain.read_result, invocation.arg(0, "output"))


def _failing(invocation: Invocation) -> None:
    held_span.failing(invocation.arg(0, "error"), langchain.run)


def _started(invocation: Invocation, value: Any, error: Any) -> None:
    observer.handler_started(_held_span(invocation.instance))


def _held_span(manager: Any) -> Span | None:
    """Return the span that a handler holds for a call; it is not current in async calls, OpenInference's never."""
    for handler in manager.handlers:
        modules = list(modules_of(handler))
        if "langfuse.langchain.CallbackHandler" in modules:
            runs = getattr(handler, "_runs", None) or getattr(handler, "runs", {})  # the latter up to 4
            return getattr(runs.get(manager.run_id), "_otel_span", None)
        if "openinference.instrumentation.langchain._tracer" in modules:
            span: Span | None = handler.get_span(manager.run_id)
            return span
    return None


started = Hook(after=_started)
ending = Hook(_ending)
failing = Hook(_failing)
