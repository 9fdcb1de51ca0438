"""Spans of tool calls: our own, or another instrumentation's span that is open for the same call.

Half of a tool call's cost is the SDK's own span: its sampler reads the current span three times, its processors are
called when a span starts although they do nothing then, each attribute is validated, and containers are made that most
spans leave empty. Ours is a light span: it draws its ids as the SDK does, keeps its attributes in a dictionary, and
becomes the exported span when it ends. Reading or calling anything else of it makes it a full span of the SDK first, by
the SDK's own constructor, so that the tool's code, other instrumentations and samplers of logs find a full span.
A tracer makes light spans only if a light span that is filled has the same fields as the tracer's first span,
which is a full one, and if its sampler records every span for a reason that `_records` knows. This is decided once for
each tracer and its processors.
"""
# ruff: noqa: SLF001 - the SDK's spans have no public names for their fields

from __future__ import annotations

import functools
import sys
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from opentelemetry import context, trace
from opentelemetry.attributes import BoundedAttributes
from opentelemetry.context.context import Context
from opentelemetry.trace import INVALID_SPAN, SpanContext, SpanKind, StatusCode, TraceFlags

from agent_otel import semconv
from agent_otel._internal.errors import ours
from agent_otel._internal.fork import recording
from agent_otel.measure.preview import LONGEST_NAME, clean
from agent_otel.telemetry import foreign_spans
from agent_otel.telemetry.sinks import SPAN_KEY, Exemplar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opentelemetry.trace import Link, Span, Tracer

SDK: Final = "opentelemetry.sdk.trace"
#: Types of values that a span may take without the SDK's validation.
PLAIN: Final = frozenset({str, int, float, bool})
#: Classes that a tracer without metrics has in their place.
_NO_METRICS: Final = frozenset({"NoneType", "NoOpTracerMetrics"})
#: Processors that do nothing when a span starts.
_PROCESSORS: Final = frozenset({"BatchSpanProcessor", "SimpleSpanProcessor"})
DESCRIPTION_CHARACTERS = 8 * 1024
_CANCELLED: Final = frozenset({"Cancelled", "CancelledError"})  # of asyncio, concurrent.futures, anyio and trio
_RANDOM: Final = int(getattr(TraceFlags, "RANDOM_TRACE_ID", 0))
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_SAMPLED_AND_RANDOM: Final = TraceFlags(TraceFlags.SAMPLED | _RANDOM)


def current_span() -> Span | None:
    """Return the current span, recording or not; None until a TracerProvider is set, which may be late."""
    # The public getter of the provider reads the environment on every call while none is set.
    if getattr(trace, "_TRACER_PROVIDER", trace) is None:
        return None
    found = context.get_current().get(SPAN_KEY)
    return found if found is not None and isinstance(found, trace.Span) else INVALID_SPAN


class Light:
    """The fields and methods of a light span; `_light_class` adds them to the SDK's ``Span``."""

    _light: dict[str, Any]
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
            most = self._tracer._span_limits.max_span_attributes
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
        self._ends_as = ended(tracer)
        self._most = tracer._span_limits.max_span_attributes

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
        if self._ends_as["_resource"] is not tracer.resource:  # the SDK gives a forked child a new one
            self._ends_as = ended(tracer)
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
        """Return the flags of a recorded span, None below a parent that is not sampled; only roots have new ids."""
        if parent is None:
            return self._of_root
        inherited = parent.trace_flags
        if not inherited & TraceFlags.SAMPLED:
            return None
        return _SAMPLED_AND_RANDOM if self._has_random and inherited & _RANDOM else _SAMPLED


def ended(tracer: Any) -> dict[str, Any]:
    """Return the fields of the span that the processors and the exporters get, by the constructor of the SDK."""
    span: Any = sys.modules[SDK].ReadableSpan(
        name="",
        resource=tracer.resource,
        kind=SpanKind.INTERNAL,
        instrumentation_info=tracer.instrumentation_info,
        instrumentation_scope=tracer._instrumentation_scope,
    )
    fields: dict[str, Any] = span.__dict__
    return fields


def fill(span: Any) -> None:
    """Make a light span a full one, by the constructor of the SDK; the caller holds the ``recording`` lock."""
    tracer, own = span._tracer, span.__dict__
    base = sys.modules[SDK].Span
    full = object.__new__(base)
    base.__init__(
        full,
        name=span._name,
        context=span._context,
        parent=span._parent,
        sampler=tracer.sampler,
        resource=tracer.resource,
        span_processor=tracer.span_processor,
        kind=SpanKind.INTERNAL,
        instrumentation_info=tracer.instrumentation_info,
        limits=tracer._span_limits,
        instrumentation_scope=tracer._instrumentation_scope,
    )
    attributes = full._attributes
    attributes._dict.update(span._light)
    attributes._immutable = span._end_time is not None
    full._start_time, full._end_time = span._start_time, span._end_time
    own.update(full.__dict__)
    own.pop("_light", None)
    own.pop("_ends_as", None)


def light_tracer(tracer: Any, first: Any) -> LightTracer | None:
    """Return a maker of light spans like ``first``, the first span of a tracer; None where they would differ."""
    try:
        sdk = sys.modules[SDK]
        is_own = (
            type(tracer) is sdk.Tracer
            and issubclass(type(first), sdk.Span)
            and tracer._span_limits.max_span_attribute_length is None
            and type(getattr(tracer, "_tracer_metrics", None)).__name__ in _NO_METRICS
        )
        every_root = _records(tracer.sampler) if is_own else None
        if every_root is None:
            return None
        made, spot, parent = LightTracer(tracer, every_root=every_root), first.get_span_context(), first.parent
        light = made.made(first.name, spot, parent, first.start_time, {})
        with recording.held:
            fill(light)
        is_filled = vars(light).keys() - {"_tracer"} == vars(first).keys()
        is_alike = is_filled and ended(tracer).keys() == vars(first._readable_span()).keys()
        return made if is_alike and made.flags(parent) == spot.trace_flags else None
    except ours(Exception):  # an SDK with other names of fields
        return None


def _records(sampler: Any) -> bool | None:
    """Return true where every span is recorded, false where spans of a sampled parent are, None where it may change."""
    name = type(sampler).__name__
    if type(sampler).__module__ != f"{SDK}.sampling":
        return None
    if name == "StaticSampler":
        decision = sampler._decision
        return True if decision.is_sampled() and decision.is_recording() else None
    if name.startswith("ParentBased"):
        inner = vars(sampler)
        if _records(inner["_local_parent_sampled"]) and _records(inner["_remote_parent_sampled"]):
            return _records(inner["_root"]) is True
    return None


def is_idle(processor: Any) -> bool:
    """Return true for a processor of the SDK that does nothing when a span starts."""
    kind, starts = type(processor), getattr(processor, "on_start", None)
    is_own = kind.__module__ == getattr(starts, "__module__", None) == f"{SDK}.export"  # and replaced by no program
    return is_own and kind.__name__ in _PROCESSORS


class _Way(NamedTuple):
    """The way to start the spans of a tracer with these processors."""

    tracer: Any = None
    processors: object = None
    #: The maker of its light spans; None before its first span, and where it makes none.
    light: LightTracer | None = None
    is_tried: bool = True


class _Last:
    """The way of the tracer that was used last, which is the only one in most programs."""

    way = _Way()


def start_span(tracer: Any, title: str, attributes: dict[str, Any], start_ns: int | None, within: Span) -> Span:
    """Start a span below the span ``within``; the attributes are the span's from here on."""
    if type(tracer) is trace.ProxyTracer:  # of a program that sets its provider late
        tracer = getattr(tracer, "_real_tracer", None) or tracer
    way = _Last.way
    if tracer is not way.tracer or way.processors is not tracer.span_processor._span_processors:
        way = _way_of(tracer)
    if way.light is not None and (light := way.light.start(title, attributes, start_ns, within)) is not None:
        return light  # type: ignore[no-any-return]
    current = context.get_current()
    if current.get(SPAN_KEY, INVALID_SPAN) is not within:  # in the run of a hand-written loop
        current = trace.set_span_in_context(within)
    span: Span = tracer.start_span(title, current, SpanKind.INTERNAL, attributes, (), start_ns)
    if not way.is_tried and span.is_recording():
        _Last.way = way._replace(light=light_tracer(tracer, span), is_tried=True)
    return span


def _way_of(tracer: Any) -> _Way:
    """Return the way of a tracer; a processor that may read a span that starts gets a full one."""
    if type(tracer).__module__ != SDK:
        return _Way()
    processors = tracer.span_processor._span_processors
    _Last.way = _Way(tracer, processors, is_tried=not all(map(is_idle, processors)))
    return _Last.way


def put(span: Span, attributes: Mapping[str, Any]) -> None:
    """Set attributes on an open span: of the SDK's own without its validation, which plain values need not."""
    if isinstance(span, Light) and span.put(attributes):
        return
    kept = getattr(span, "_attributes", None) if type(span).__module__ == SDK else None
    if (
        type(kept) is BoundedAttributes
        and span.is_recording()
        and kept.max_value_len is None
        and (kept.maxlen is None or len(kept) + len(attributes) <= kept.maxlen)
        and PLAIN.issuperset(map(type, attributes.values()))
    ):
        with kept._lock:
            kept._dict.update(attributes)
    elif attributes:
        span.set_attributes(attributes)


def put_on_any(span: Span, attributes: Mapping[str, Any]) -> None:
    """Set attributes on a recording span that another instrumentation may have opened; a full span gets none."""
    put(span, attributes if isinstance(span, Light) else foreign_spans.fitting(span, attributes))


class OpenSpan:
    """An open span; ``foreign`` is true when another instrumentation opened it and will end it."""

    __slots__ = ("_before", "foreign", "span")

    def __init__(self, span: Span, *, foreign: bool) -> None:
        self.span = span
        self.foreign = foreign
        #: The context around ``attach``; None while the span is not attached. No token: an interrupt could come between
        #: the change of the context and the return of its token.
        self._before: Context | None = None

    def attach(self) -> None:
        """Make the span current, so that spans of the tool's own code nest under it."""
        if self.foreign and trace.get_current_span() is self.span:
            return
        if self._before is None and (isinstance(self.span, Light) or self.span.get_span_context().is_valid):
            self._before = before = context.get_current()
            context.attach(Context({**before, SPAN_KEY: self.span}))

    def detach(self) -> None:
        """Undo ``attach``; the caller is in its context."""
        if self._before is not None:
            context.attach(self._before)
            self._before = None

    def leave(self) -> None:
        """Undo ``attach`` where the span is current; safe to repeat.

        A framework may run the handler in another context than the function around it. That context has ended.
        """
        if self._before is not None and context.get_current().get(SPAN_KEY) is self.span:
            self.detach()

    def close(self) -> None:
        """Finish the work that an interrupt has left out: leave the context, and end the span."""
        self.leave()
        if self.span.is_recording():
            self.end()

    def write(self, attributes: Mapping[str, Any], error_type: str | None, description: str | None) -> None:
        """Set attributes and, on failure, the type of the error and the status.

        ``description`` is content, None unless content capture is on. A foreign span keeps the type and the status that
        its owner sets, and gets no type for a call that was cancelled: to most owners that is not a failure.
        """
        if self.foreign:
            if error_type is not None and error_type.rpartition(".")[2] not in _CANCELLED:
                own = getattr(self.span, "attributes", None) or {}
                attributes = {**attributes, **foreign_spans.beside(own, {semconv.ERROR_TYPE: clean(error_type)})}
            put_on_any(self.span, attributes)
            return
        if error_type is not None:
            attributes = {**attributes, semconv.ERROR_TYPE: clean(error_type)}
        put(self.span, attributes)
        if error_type is not None:
            self.span.set_status(StatusCode.ERROR, clean(description, DESCRIPTION_CHARACTERS) if description else None)

    def end(self, at_ns: int | None = None) -> None:
        """End the span, unless it is foreign; ``at_ns`` is in epoch nanoseconds, by default now."""
        # A cancelled handler may still run in another context; the span can be detached only there.
        self.leave()
        if not self.foreign:
            self.span.end(at_ns)


def exemplar_of(span: Span) -> Exemplar | None:
    """Return the exemplar of a span, None when the span is not sampled."""
    if isinstance(span, Light):  # always sampled
        return Exemplar(span._context)
    spot = span.get_span_context()
    return Exemplar(spot) if spot.trace_flags & 1 and span.is_recording() else None


def open_tool_span(  # noqa: PLR0913, PLR0917 - the fields of a span
    tracer: Tracer,
    mode: str,
    name: str,
    attributes: dict[str, Any],
    start_ns: int,
    current: Span,
    *,
    is_held: bool = False,
) -> OpenSpan | None:
    """Open the span of a tool call, or enrich ``current`` if another instrumentation opened it for this call.

    ``mode`` is the setting AGENT_OTEL_SPANS without ``off``; ``start_ns`` is the call's start in epoch nanoseconds.
    ``is_held`` is true when another instrumentation holds ``current`` for this call, whatever its attributes are.
    String attributes may contain anything. Unsafe ones are cleaned here.
    """
    for key, value in attributes.items():
        if type(value) is str and not (len(value) <= LONGEST_NAME and value.isascii()):
            attributes[key] = clean(value)
    if mode != "own" and current is not INVALID_SPAN:
        # To read the attributes of a light span fills it.
        own = None if isinstance(current, Light) else foreign_spans.free_attributes(current)
        is_call = own is not None and (is_held or foreign_spans.is_span_of(current, own, name))
        if own is not None and is_call and (mode == "enrich" or foreign_spans.has_room(current)):
            put_on_any(current, foreign_spans.beside(own, attributes))
            return OpenSpan(current, foreign=True)
    if mode == "enrich" or (foreign_spans.SHARING in sys.modules and foreign_spans.opens_none(mode, current)):
        return None
    span = start_span(tracer, f"{semconv.EXECUTE_TOOL} {name}", attributes, start_ns, current)
    return OpenSpan(span, foreign=False)


def exemplar_of_run(opened: OpenSpan | None, within: Span | None) -> Exemplar | None:
    """Return the exemplar of an execution: from its span, else from the span that it began in."""
    span = within if opened is None else opened.span
    return None if span is None else exemplar_of(span)


def drop(opened: Any) -> None:
    """End an open span of this package, if there is one, as a span that was not sampled: no exporter gets it.

    A processor may keep each span from its start to its end. A span of another tracer than the SDK's is left open.
    """
    sdk = sys.modules.get(SDK)
    if opened is None or opened.foreign or sdk is None or not issubclass(type(opened.span), sdk.Span):
        return
    spot = opened.span.get_span_context()
    flags = TraceFlags(spot.trace_flags & ~TraceFlags.SAMPLED)
    opened.span._context = SpanContext(spot.trace_id, spot.span_id, spot.is_remote, flags, spot.trace_state)
    opened.end()


# Spans of steps, runs, payloads and cuts: our own, or another instrumentation's span that is open for a step.


def started(  # noqa: PLR0913, PLR0917 - the fields of a span
    tracer: Tracer,
    operation: str,
    name: str,
    attributes: Mapping[str, Any],
    start_ns: int | None,
    parent: Span | None = None,
    links: Sequence[Link] = (),
    within: Context | None = None,
) -> OpenSpan:
    """Start a span in ``parent``, else in the context ``within``, else in the current span."""
    title = f"{operation} {clean(name)}".rstrip()
    within = within if parent is None else trace.set_span_in_context(parent)
    return OpenSpan(tracer.start_span(title, within, SpanKind.INTERNAL, attributes, links, start_ns), foreign=False)


def open_chat_span(
    tracer: Any, attributes: dict[str, Any], start_ns: int, parent: Span, error_type: str | None
) -> Span:
    """Open the span of a model request after its response has ended."""
    plain = {key: clean(value) if type(value) is str else value for key, value in attributes.items()}
    title = f"{semconv.CHAT} {plain.get(semconv.REQUEST_MODEL, '')}".rstrip()
    span: Span = tracer.start_span(title, trace.set_span_in_context(parent), SpanKind.CLIENT, plain, (), start_ns)
    if error_type is not None:
        span.set_status(StatusCode.ERROR)
    return span


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
    parent, links = (None, ()) if current.get_span_context().is_valid else around()
    return started(tracer, semconv.EXECUTE_ACTIVITY, name, attributes, start_ns, parent, links)


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
    plain = {key: clean(value) for key, value in attributes.items()}
    return started(tracer, operation, name, plain, start_ns, within=within)
