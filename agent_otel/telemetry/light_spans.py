"""Light spans: spans of the OpenTelemetry SDK that hold nothing but their ids until something else is read from them.

Half of what a tool call costs is the SDK's own span: its sampler reads the current span three times, its processors are
called when a span starts although they do nothing then, and containers for attributes, events and links are made that
most spans leave empty. A light span draws its ids as the SDK does, keeps its attributes in a dictionary, and becomes
the exported span when it ends. Reading or calling anything else of it makes it a full span of the SDK first, by the
SDK's own constructor, so that the tool's code, other instrumentations and samplers of logs find what they always find.

The first span of each tracer is a full one. A tracer makes light spans only if a light span that is filled has the
same fields as this first one, and if its sampler records every span for the reason that `LightTracer` checks.
"""

from __future__ import annotations

import functools
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.trace import INVALID_SPAN, SpanContext, SpanKind, TraceFlags

from agent_otel.telemetry.recording import recording

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.trace import Span

SDK: Final = "opentelemetry.sdk.trace"
#: Types of values that a span may take without the SDK's validation.
PLAIN: Final = frozenset({str, int, float, bool})
_RANDOM: Final = int(getattr(TraceFlags, "RANDOM_TRACE_ID", 0))
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_SAMPLED_AND_RANDOM: Final = TraceFlags(TraceFlags.SAMPLED | _RANDOM)
_NO_METRICS: Final = frozenset({"NoneType", "NoOpTracerMetrics"})


class Light:
    """The fields and methods of a light span; `_light_class` adds them to the SDK's ``Span``."""

    _tracer: Any
    _name: str
    _context: SpanContext
    _parent: SpanContext | None
    _start_time: int
    _light: dict[str, Any]
    _ends_as: dict[str, Any]
    _end_time: int | None

    def __getattr__(self, name: str) -> Any:
        """Fill the span before a field is read that a light one does not have."""
        fields = self.__dict__
        if name[:1] == "_" and name[:2] != "__" and "_tracer" in fields:
            with recording.held:
                if "_light" in fields:
                    fill(self)
            if name in fields:
                return fields[name]
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(message)

    def put(self, attributes: Mapping[str, Any]) -> bool:
        """Set attributes of plain types; return false where the SDK has to set them."""
        with recording.held:
            light = self.__dict__.get("_light")
            if light is None or self._end_time is not None:
                return False
            most = self._tracer._span_limits.max_span_attributes  # noqa: SLF001 - a field of the SDK since 1.10
            if (most is not None and len(light) + len(attributes) > most) or (
                not PLAIN.issuperset(map(type, attributes.values()))
            ):
                return False
            light.update(attributes)
        return True

    def end(self, end_time: int | None = None) -> None:
        """End the span and hand it to the processors."""
        with recording.held:
            light = None if self._end_time is not None else self.__dict__.get("_light")
            if light is not None:
                self._end_time = time.time_ns() if end_time is None else end_time
        if light is None:  # a full span, or one that has ended, about which the SDK warns
            super().end(end_time)  # type: ignore[misc]
        else:
            ended: Any = object.__new__(sys.modules[SDK].ReadableSpan)
            ended.__dict__ = {
                **self._ends_as,
                "_name": self._name,
                "_context": self._context,
                "_parent": self._parent,
                "_start_time": self._start_time,
                "_end_time": self._end_time,
                "_attributes": light,
            }
            self._tracer.span_processor.on_end(ended)


def _ended(tracer: Any) -> dict[str, Any]:
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


@functools.lru_cache(maxsize=1)
def _light_class(base: type) -> type:
    """Return the class of light spans, under the SDK's name, which some programs print."""
    return type("_Span", (Light, base), {"__module__": __name__})


class LightTracer:
    """Makes light spans for one tracer of the SDK, with the sampler and the id generator that it had at first."""

    __slots__ = ("_class", "_ends_as", "_every_root", "_has_random", "_ids", "_most", "_of_root", "_sampler", "_tracer")

    def __init__(self, tracer: Any, *, every_root: bool) -> None:
        self._tracer = tracer
        self._sampler = tracer.sampler
        self._every_root = every_root
        self._ids = tracer.id_generator
        is_random = getattr(self._ids, "is_trace_id_random", None) if _RANDOM else None
        self._has_random = is_random is not None
        self._of_root = _SAMPLED_AND_RANDOM if is_random is not None and is_random() else _SAMPLED
        self._class = _light_class(sys.modules[SDK].Span)
        self._ends_as = _ended(tracer)
        self._most = tracer._span_limits.max_span_attributes  # noqa: SLF001 - a field of the SDK since 1.10

    def start(self, title: str, attributes: dict[str, Any], start_ns: int | None, within: Span) -> Any:
        """Start a span in the span ``within``; return None where the SDK has to start it."""
        tracer = self._tracer
        is_enabled = getattr(tracer, "_is_enabled", None)
        if (
            tracer.sampler is not self._sampler
            or (is_enabled is not None and not is_enabled())
            or (self._most is not None and len(attributes) > self._most)
            or not PLAIN.issuperset(map(type, attributes.values()))
        ):
            return None
        parent = None
        if within is not INVALID_SPAN:
            around = within.get_span_context()
            parent = around if around.is_valid else None
        flags = self.flags(parent) if parent is not None else self._of_root if self._every_root else None
        if flags is None:
            return None
        trace_id = self._ids.generate_trace_id() if parent is None else parent.trace_id
        state = None if parent is None else parent.trace_state
        spot = SpanContext(trace_id, self._ids.generate_span_id(), False, flags, state)
        return self.made(title, spot, parent, time.time_ns() if start_ns is None else start_ns, attributes)

    def made(
        self, name: str, spot: SpanContext, parent: SpanContext | None, start_ns: int, attributes: dict[str, Any]
    ) -> Any:
        """Make a light span; the SDK's class refuses to be called by all but its tracer."""
        span: Any = object.__new__(self._class)
        span.__dict__ = {
            "_tracer": self._tracer,
            "_name": name,
            "_context": spot,
            "_parent": parent,
            "_start_time": start_ns,
            "_end_time": None,
            "_light": attributes,
            "_ends_as": self._ends_as,
        }
        return span

    def flags(self, parent: SpanContext | None) -> TraceFlags | None:
        """Return the flags of a recorded span: whether its trace id is random is known of a root, else inherited.

        None where the parent is not sampled.
        """
        if parent is None:
            return self._of_root
        inherited = parent.trace_flags
        if not inherited & TraceFlags.SAMPLED:
            return None
        return _SAMPLED_AND_RANDOM if self._has_random and inherited & _RANDOM else _SAMPLED


def light_tracer(tracer: Any, first: Any) -> LightTracer | None:
    """Return what makes light spans like ``first``, the first span of a tracer; None where they would differ."""
    try:
        sdk = sys.modules[SDK]
        every_root = _records(tracer.sampler)
        if (
            type(tracer) is not sdk.Tracer
            or not issubclass(type(first), sdk.Span)
            or every_root is None
            or tracer._span_limits.max_span_attribute_length is not None  # noqa: SLF001
            or type(getattr(tracer, "_tracer_metrics", None)).__name__ not in _NO_METRICS
        ):
            return None
        made = LightTracer(tracer, every_root=every_root)
        return made if _is_alike(made, tracer, first) else None
    except Exception:  # an SDK whose fields have other names
        return None


def _is_alike(made: LightTracer, tracer: Any, first: Any) -> bool:
    """Return true when a light span like ``first``, once it is filled, has the flags and the fields of it."""
    spot = first.get_span_context()
    light = made.made(first.name, spot, first.parent, first.start_time, {})
    with recording.held:
        fill(light)
    exported = vars(first._readable_span()).keys()  # noqa: SLF001
    is_filled = vars(light).keys() - {"_tracer"} == vars(first).keys()
    is_ended_alike = _ended(tracer).keys() == exported
    return is_filled and is_ended_alike and bool(made.flags(first.parent) == spot.trace_flags)


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
