"""The parts of the SDK's spans, samplers and processors on which light spans depend, and the checks of these.

A light span (`agent_otel.telemetry.spans`) becomes a full one by `fill`, with the SDK's own constructor. A tracer makes
light spans only if a light span that is filled has the same fields as the tracer's first span, and if its sampler
records every span for a reason that `_records` knows. This is decided once for each tracer and its processors.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

from agent_otel.telemetry.sinks.base import recording

SDK: Final = "opentelemetry.sdk.trace"
#: Types of values that a span may take without the SDK's validation.
PLAIN: Final = frozenset({str, int, float, bool})
#: Classes that a tracer without metrics of its own has in their place.
_NO_METRICS: Final = frozenset({"NoneType", "NoOpTracerMetrics"})
#: Samplers that decide without attributes, and processors that do nothing when a span starts.
_SAMPLERS: Final = frozenset({"StaticSampler", "TraceIdRatioBased"})
_BY_PARENT: Final = "ParentBased"
_PROCESSORS: Final = frozenset({"BatchSpanProcessor", "SimpleSpanProcessor"})


def ended(tracer: Any) -> dict[str, Any]:
    """Return the fields of the span that the processors and the exporters get, by the constructor of the SDK."""
    span: Any = sys.modules[SDK].ReadableSpan(
        name="",
        resource=tracer.resource,
        kind=SpanKind.INTERNAL,
        instrumentation_info=tracer.instrumentation_info,
        instrumentation_scope=tracer._instrumentation_scope,  # noqa: SLF001
    )
    fields: dict[str, Any] = span.__dict__
    return fields


def fill(span: Any) -> None:
    """Make a light span a full one, by the constructor of the SDK; the caller holds the ``recording`` lock."""
    tracer, own = span._tracer, span.__dict__  # noqa: SLF001
    base = sys.modules[SDK].Span
    full = object.__new__(base)
    base.__init__(
        full,
        name=span._name,  # noqa: SLF001
        context=span._context,  # noqa: SLF001
        parent=span._parent,  # noqa: SLF001
        sampler=tracer.sampler,
        resource=tracer.resource,
        span_processor=tracer.span_processor,
        kind=SpanKind.INTERNAL,
        instrumentation_info=tracer.instrumentation_info,
        limits=tracer._span_limits,  # noqa: SLF001
        instrumentation_scope=tracer._instrumentation_scope,  # noqa: SLF001
    )
    attributes = full._attributes
    attributes._dict.update(span._light)  # noqa: SLF001
    attributes._immutable = span._end_time is not None  # noqa: SLF001
    full._start_time, full._end_time = span._start_time, span._end_time  # noqa: SLF001
    own.update(full.__dict__)
    own.pop("_light", None)
    own.pop("_ends_as", None)


def drop(opened: Any) -> None:
    """End an open span of this package, if there is one, as a span that was not sampled: no exporter gets it.

    A processor may keep each span from its start to its end. A span of another tracer than the SDK's is left open.
    """
    sdk = sys.modules.get(SDK)
    if opened is None or opened.foreign or sdk is None or not issubclass(type(opened.span), sdk.Span):
        return
    spot = opened.span.get_span_context()
    flags = TraceFlags(spot.trace_flags & ~TraceFlags.SAMPLED)
    opened.span._context = SpanContext(spot.trace_id, spot.span_id, spot.is_remote, flags, spot.trace_state)  # noqa: SLF001
    opened.end()


def is_alike(light: Any, tracer: Any, first: Any) -> bool:
    """Return true when a light span like ``first``, once it is filled, has the fields of it, also when it has ended."""
    with recording.held:
        fill(light)
    exported = vars(first._readable_span()).keys()  # noqa: SLF001
    is_filled = vars(light).keys() - {"_tracer"} == vars(first).keys()
    return bool(is_filled and ended(tracer).keys() == exported)


def records_all(tracer: Any, first: Any) -> bool | None:
    """Return true where every span of a tracer is recorded, false where those of a sampled parent are.

    None where that may change, or where the tracer does more with a span than the SDK's own.
    """
    sdk = sys.modules[SDK]
    is_own = (
        type(tracer) is sdk.Tracer
        and issubclass(type(first), sdk.Span)
        and tracer._span_limits.max_span_attribute_length is None  # noqa: SLF001
        and type(getattr(tracer, "_tracer_metrics", None)).__name__ in _NO_METRICS
    )
    return _records(tracer.sampler) if is_own else None


def _records(sampler: Any) -> bool | None:
    """Return true for a sampler that records all spans, false for one that records those of a sampled parent.

    None for another one.
    """
    name = type(sampler).__name__
    if type(sampler).__module__ != f"{SDK}.sampling":
        return None
    if name == "StaticSampler":
        decision = sampler._decision  # noqa: SLF001
        return True if decision.is_sampled() and decision.is_recording() else None
    if name.startswith("ParentBased"):
        inner = vars(sampler)
        if _records(inner["_local_parent_sampled"]) and _records(inner["_remote_parent_sampled"]):
            return _records(inner["_root"]) is True
    return None


def is_blind(sampler: Any) -> bool:
    """Return true for a sampler of the SDK that decides by the trace alone."""
    kind = type(sampler)
    if kind.__module__ != f"{SDK}.sampling":
        return False
    names = {base.__name__ for base in kind.__mro__}
    if _BY_PARENT in names:
        return all(is_blind(inner) for inner in vars(sampler).values())
    return not _SAMPLERS.isdisjoint(names)


def is_idle(processor: Any) -> bool:
    """Return true for a processor of the SDK that does nothing when a span starts."""
    kind, starts = type(processor), getattr(processor, "on_start", None)
    is_own = kind.__module__ == getattr(starts, "__module__", None) == f"{SDK}.export"  # and replaced by no program
    return is_own and kind.__name__ in _PROCESSORS
