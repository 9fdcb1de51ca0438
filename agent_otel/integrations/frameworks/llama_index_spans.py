"""LlamaIndex beside OpenInference, whose span of a tool is open while the tool runs, and gets the numbers.

The hooks hold that span for the call, and read the result before it ends. The entry is in ``llama_index.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core import held_span
from agent_otel.core.plain import is_named
from agent_otel.integrations.frameworks import llama_index
from agent_otel.integrations.hooks import Hook

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from agent_otel.core.types import Invocation


def _is_of_a_tool(invocation: Invocation) -> bool:
    return is_named(invocation.arg(2, "instance"), "BaseTool")


def _open_span(invocation: Invocation) -> Span | None:
    """Return the open span of a tool, None for what is none."""
    if not _is_of_a_tool(invocation):
        return None
    return getattr(invocation.instance.open_spans.get(invocation.arg(0, "id_")), "_otel_span", None)


def _started(invocation: Invocation, value: Any, _: Any) -> None:
    span = getattr(value, "_otel_span", None)
    if span is not None and _is_of_a_tool(invocation):
        held_span.started(span)


def _ending(invocation: Invocation) -> None:
    span = _open_span(invocation)
    if span is not None:
        held_span.finishing(llama_index.produced, invocation.arg(3, "result"), span)


def _failing(invocation: Invocation) -> None:
    span = _open_span(invocation)
    if span is not None:
        held_span.failing(invocation.arg(3, "err"), llama_index.inner, span)


started = Hook(after=_started)
ending = Hook(_ending)
failing = Hook(_failing)
