"""Spans of steps, runs, payloads and cuts: our own, or another instrumentation's span that is open for a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.trace import INVALID_SPAN, SpanKind

from agent_otel import semconv
from agent_otel.measure.preview import clean
from agent_otel.telemetry import foreign_spans
from agent_otel.telemetry.spans import OpenSpan, exemplar_of, put_on_any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opentelemetry.context.context import Context
    from opentelemetry.trace import Link, Span, Tracer

    from agent_otel.telemetry.spans import Exemplar


def exemplar_of_run(opened: OpenSpan | None, within: Span | None) -> Exemplar | None:
    """Return the exemplar of an execution: that of its own span, else of the span that it began in."""
    span = within if opened is None else opened.span
    return None if span is None else exemplar_of(span)


def open_cut_span(  # noqa: PLR0913, PLR0917 - the fields of a span
    tracer: Tracer, parent: Span, name: str, attributes: Mapping[str, Any], at_ns: int, kind: str = semconv.CUT_CHILD
) -> None:
    """Add a zero-length child span about a truncation; the tool's own span may have ended."""
    within = trace.set_span_in_context(parent)
    span = tracer.start_span(f"{kind} {name}", within, SpanKind.INTERNAL, attributes, (), at_ns)
    span.end(at_ns)


def open_step_span(  # noqa: PLR0913, PLR0917 - the fields of a span
    tracer: Tracer,
    mode: str,
    name: str,
    attributes: dict[str, Any],
    start_ns: int,
    current: Span,
    around: Callable[[], tuple[Span | None, Sequence[Link]]],
) -> OpenSpan | None:
    """Open the span of a step, or enrich ``current`` if the runtime's own instrumentation opened it for this step.

    ``around`` returns the parent and the links of the span where none is current.
    """
    is_step = mode != "own" and current is not INVALID_SPAN and foreign_spans.is_step_span(current, name)
    if is_step and (mode == "enrich" or foreign_spans.has_room(current)):
        put_on_any(current, attributes)
        return OpenSpan(current, foreign=True)
    if foreign_spans.opens_none(mode, current):
        return None
    title = f"{semconv.EXECUTE_ACTIVITY} {clean(name)}".rstrip()
    parent, links = (None, ()) if current.get_span_context().is_valid else around()
    within = None if parent is None else trace.set_span_in_context(parent)
    return OpenSpan(tracer.start_span(title, within, SpanKind.INTERNAL, attributes, links, start_ns), foreign=False)


def open_run_span(  # noqa: PLR0913 - the fields of a span
    tracer: Tracer,
    mode: str,
    operation: str,
    name: str,
    attributes: dict[str, Any],
    *,
    start_ns: int | None = None,
    within: Context | None = None,
) -> OpenSpan | None:
    """Open the span of an outermost run, the root of a trace; None where spans of others are enriched only."""
    if foreign_spans.opens_none(mode):
        return None
    for key, value in attributes.items():
        attributes[key] = clean(value)
    title = f"{operation} {clean(name)}".rstrip()
    span = tracer.start_span(title, within, SpanKind.INTERNAL, attributes, (), start_ns)
    return OpenSpan(span, foreign=False)


def open_payload_span(  # noqa: PLR0913, PLR0917 - the fields of a span
    tracer: Tracer,
    name: str,
    attributes: dict[str, Any],
    start_ns: int | None,
    parent: Span | None = None,
    links: Sequence[Link] = (),
) -> OpenSpan:
    """Open the span of a payload that is measured after its step or belongs to no step; it does not become current."""
    title = f"{semconv.PAYLOAD_CHILD if start_ns is None else semconv.EXECUTE_ACTIVITY} {clean(name)}".rstrip()
    within = trace.set_span_in_context(parent) if parent is not None else None
    return OpenSpan(tracer.start_span(title, within, SpanKind.INTERNAL, attributes, links, start_ns), foreign=False)
