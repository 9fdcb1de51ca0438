"""Spans of tool calls and steps: our own, or another instrumentation's span that is open for the same call."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from opentelemetry import context, trace
from opentelemetry.attributes import BoundedAttributes
from opentelemetry.context.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanKind, StatusCode

from agent_otel import semconv
from agent_otel.measure.preview import LONGEST_NAME, clean
from agent_otel.telemetry import foreign_spans
from agent_otel.telemetry.light_spans import PLAIN, SDK, Light, LightTracer, light_tracer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextvars import Token

    from opentelemetry.trace import Link, Span, SpanContext, Tracer

_INVALID = trace.INVALID_SPAN
#: The key of the current span in a context.
_KEY: Final = next(iter(trace.set_span_in_context(_INVALID, Context())))
DESCRIPTION_CHARACTERS = 8 * 1024
#: Classes of asyncio, concurrent.futures, anyio and trio.
_CANCELLED: Final = frozenset({"Cancelled", "CancelledError"})

# The SDK validates each attribute at 1 µs, twelve for a tool call. Ours are texts, numbers and truth values of plain
# types, so that `put` writes them as they are. Where anything about the span, the provider or the attributes is not as
# expected, the attributes go the SDK's own way.
#: Samplers that decide without attributes, and processors that do nothing when a span starts.
_SAMPLERS: Final = frozenset({"StaticSampler", "TraceIdRatioBased"})
_BY_PARENT: Final = "ParentBased"
_PROCESSORS: Final = frozenset({"BatchSpanProcessor", "SimpleSpanProcessor"})


class Exemplar:
    """The span context of a measurement, converted to the form of each sink on demand; it does not keep the span.

    ``at`` is the time of the measurement in epoch seconds.
    """

    __slots__ = ("at", "spot")

    def __init__(self, spot: SpanContext) -> None:
        self.spot = spot
        self.at = time.time()

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of a Prometheus exemplar."""
        return {"trace_id": format(self.spot.trace_id, "032x"), "span_id": format(self.spot.span_id, "016x")}

    @property
    def context(self) -> Context:
        """Return the context from which the OpenTelemetry SDK makes an exemplar."""
        return trace.set_span_in_context(NonRecordingSpan(self.spot))


def current_span() -> Span | None:
    """Return the current span, recording or not; None until a TracerProvider is set, which may be late."""
    # The public getter of the provider reads the environment on every call while none is set.
    if getattr(trace, "_TRACER_PROVIDER", trace) is None:
        return None
    found = context.get_current().get(_KEY)
    return found if found is not None and isinstance(found, trace.Span) else _INVALID


class OpenSpan:
    """An open span; ``foreign`` is true when another instrumentation opened it and will end it."""

    __slots__ = ("_attached", "foreign", "span", "token")

    def __init__(self, span: Span, *, foreign: bool) -> None:
        self.span = span
        self.foreign = foreign
        #: Undoes ``attach``; None while the span is not attached.
        self.token: Token[Context] | None = None
        self._attached: Context | None = None

    def attach(self) -> None:
        """Make the span current, so that spans of the tool's own code nest under it."""
        if self.foreign and trace.get_current_span() is self.span:
            return
        if self.token is None and (isinstance(self.span, Light) or self.span.get_span_context().is_valid):
            self._attached = Context({**context.get_current(), _KEY: self.span})
            self.token = context.attach(self._attached)

    def detach(self) -> None:
        """Undo ``attach``; the caller is in its context."""
        if self.token is not None:
            token, self.token = self.token, None
            context.detach(token)

    def let_go(self, before: Span | None) -> None:
        """Undo ``attach`` after an interrupt that skipped ``detach``; ``before`` is the span that was current."""
        if not self.foreign and trace.get_current_span() is self.span:
            self.token = None
            context.attach(trace.set_span_in_context(before or _INVALID))

    def leave(self, before: Span | None, *, is_torn_off: bool) -> None:
        """Remove the span from the context; ``is_torn_off`` is true when an exception may have skipped ``detach``."""
        # A framework may run the handler in another context than the function around it: that one has ended.
        if self.token is not None and (
            context.get_current() is self._attached or trace.get_current_span() is self.span
        ):
            self.detach()
        if is_torn_off:
            self.let_go(before)

    def write(self, attributes: Mapping[str, Any], error_type: str | None, description: str | None) -> None:
        """Set attributes and, on failure, the type of the error and the status.

        ``description`` is content, None unless content capture is on. A foreign span keeps the type and the status that
        its owner sets, and gets no type for a call that was cancelled: to most owners that is no failure.
        """
        if self.foreign:
            if error_type is not None and error_type.rpartition(".")[2] not in _CANCELLED:
                own = getattr(self.span, "attributes", None) or {}
                attributes = {**attributes, **_beside(own, {semconv.ERROR_TYPE: clean(error_type)})}
            self.span.set_attributes(attributes)
            return
        if error_type is not None:
            attributes = {**attributes, semconv.ERROR_TYPE: clean(error_type)}
        if not (isinstance(self.span, Light) and self.span.put(attributes)):
            put(self.span, attributes)
        if error_type is not None:
            self.span.set_status(StatusCode.ERROR, clean(description, DESCRIPTION_CHARACTERS) if description else None)

    def end(self, at_ns: int | None = None) -> None:
        """End the span, unless it is foreign; ``at_ns`` is in epoch nanoseconds, by default now."""
        # A cancelled handler may still run in another context; the span can be detached only there.
        if self.token is not None and trace.get_current_span() is self.span:
            self.detach()
        if not self.foreign:
            self.span.end(at_ns)


def exemplar_of(span: Span) -> Exemplar | None:
    """Return the exemplar of a span, None when the span is not sampled."""
    if isinstance(span, Light):  # always sampled
        return Exemplar(span._context)  # noqa: SLF001
    spot = span.get_span_context()
    if not (spot.trace_flags & 1 and span.is_recording()):
        return None
    return Exemplar(spot)


def exemplar_of_run(opened: OpenSpan | None, within: Span | None) -> Exemplar | None:
    """Return the exemplar of an execution: that of its own span, else of the span that it began in."""
    span = within if opened is None else opened.span
    return None if span is None else exemplar_of(span)


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
    ``is_held`` is true when the other instrumentation holds ``current`` for this call, whatever its attributes are.
    Texts among the attributes may be any texts.
    """
    for key, value in attributes.items():
        if type(value) is str and not (len(value) <= LONGEST_NAME and value.isascii()):
            attributes[key] = clean(value)
    if mode != "own" and current is not _INVALID:
        own = _free_attributes(current)
        if own is not None and (is_held or _is_span_of(current, own, name)):
            current.set_attributes(_beside(own, attributes))
            return OpenSpan(current, foreign=True)
    if mode == "enrich" or (foreign_spans.SHARING in sys.modules and _opens_none(mode, current)):
        return None
    span = start_span(tracer, f"{semconv.EXECUTE_TOOL} {name}", attributes, start_ns, current)
    return OpenSpan(span, foreign=False)


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
    if mode != "own" and current is not _INVALID and _is_step_span(current, name):
        current.set_attributes(attributes)
        return OpenSpan(current, foreign=True)
    if _opens_none(mode, current):
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
    if _opens_none(mode):
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


def _opens_none(mode: str, current: Span = _INVALID) -> bool:
    """Return true where spans of others are enriched only, or a root would make the program fail."""
    if mode == "enrich" or current is not _INVALID or foreign_spans.SHARING not in sys.modules:
        return mode == "enrich"
    return os.environ.get(foreign_spans.SHARES_UNLESS, "").strip().lower() in ("false", "0")


def _is_step_span(span: Span, name: str) -> bool:
    """Return true when the runtime's own instrumentation opened this span for the step."""
    attributes = getattr(span, "attributes", None)
    if not span.is_recording() or not attributes or semconv.RUNTIME in attributes:
        return False
    if not any(key in attributes for key in foreign_spans.STEP_SPANS):
        return False
    return name in getattr(span, "name", "") or name in attributes.values()


def _free_attributes(span: Span) -> Mapping[str, Any] | None:
    """Return the attributes of a span of another instrumentation that records and has the numbers of no call, or None.

    Our own light spans are not asked: to read their attributes fills them.
    """
    if isinstance(span, Light) or not span.is_recording():
        return None
    attributes = getattr(span, "attributes", None) or {}
    return None if semconv.ARGS_HASH in attributes else attributes


def _is_span_of(span: Span, attributes: Mapping[str, Any], name: str) -> bool:
    """Return true when another instrumentation opened this span for a call of this tool."""
    if getattr(span, "name", "") == f"{semconv.EXECUTE_TOOL} {name}":
        return True  # some instrumentations set the attributes only when the span ends
    if not any(attributes.get(key) in values for key, values in foreign_spans.TOOL_SPANS.items()):
        return False
    named = next(filter(None, map(attributes.get, foreign_spans.TOOL_NAMES)), None)
    return named == name if named else name in getattr(span, "name", "")


def _beside(own: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that the owner of a span has not set; the tool's description is the owner's."""
    return {key: value for key, value in attributes.items() if key not in own and key != semconv.TOOL_DESCRIPTION}


class _Way(NamedTuple):
    """The way to start the spans of a tracer with these processors."""

    tracer: Any = None
    processors: object = None
    reads_at_start: bool = True
    #: The maker of its light spans; None before its first span, and where it makes none.
    light: LightTracer | None = None
    is_tried: bool = False


class _Last:
    """The way of the tracer that was used last, which is the only one in most programs."""

    way = _Way()


def put(span: Span, attributes: Mapping[str, Any]) -> None:
    """Set attributes on an open span of this package."""
    if isinstance(span, Light) and span.put(attributes):
        return
    kept = getattr(span, "_attributes", None)
    if (
        type(kept) is BoundedAttributes
        and span.is_recording()
        and kept.max_value_len is None
        and (kept.maxlen is None or len(kept) + len(attributes) <= kept.maxlen)
        and PLAIN.issuperset(map(type, attributes.values()))
    ):
        with kept._lock:  # noqa: SLF001 - the lock and the dictionary have had these names since 1.10
            kept._dict.update(attributes)  # noqa: SLF001
    else:
        span.set_attributes(attributes)


def put_on_any(span: Span, attributes: Mapping[str, Any]) -> None:
    """Set attributes on a recording span that another instrumentation may have opened, with a class of its own."""
    if isinstance(span, Light) or type(span).__module__ == SDK:
        put(span, attributes)
    else:
        span.set_attributes(attributes)


def start_span(tracer: Any, title: str, attributes: dict[str, Any], start_ns: int | None, within: Span) -> Span:
    """Start a span in the current span ``within``; the attributes are the span's from here on.

    A sampler or a processor that reads attributes at the start gets them.
    """
    if type(tracer) is trace.ProxyTracer:  # of a program that sets its provider late
        tracer = getattr(tracer, "_real_tracer", None) or tracer
    way = _Last.way
    if tracer is not way.tracer or way.processors is not tracer.span_processor._span_processors:  # noqa: SLF001
        way = _way_of(tracer)
    if way.reads_at_start:
        return tracer.start_span(title, None, SpanKind.INTERNAL, attributes, (), start_ns)  # type: ignore[no-any-return]
    if way.light is not None and (light := way.light.start(title, attributes, start_ns, within)) is not None:
        return light  # type: ignore[no-any-return]
    # Without the context, the SDK looks it up three times.
    span: Span = tracer.start_span(title, context.get_current(), SpanKind.INTERNAL, None, (), start_ns)
    if not way.is_tried and span.is_recording():
        _Last.way = way._replace(light=light_tracer(tracer, span), is_tried=True)
    put(span, attributes)
    return span


def _way_of(tracer: Any) -> _Way:
    """Return the way of a tracer; the SDK's own samplers and processors read no attribute of a span that starts."""
    if type(tracer).__module__ != SDK:
        return _Way()
    processors = tracer.span_processor._span_processors  # noqa: SLF001 - another tuple after each change
    reads = not (_is_blind(tracer.sampler) and all(_is_idle(processor) for processor in processors))
    _Last.way = _Way(tracer, processors, reads)
    return _Last.way


def _is_blind(sampler: Any) -> bool:
    """Return true for a sampler of the SDK that decides by the trace alone."""
    kind = type(sampler)
    if kind.__module__ != f"{SDK}.sampling":
        return False
    names = {base.__name__ for base in kind.__mro__}
    if _BY_PARENT in names:
        return all(_is_blind(inner) for inner in vars(sampler).values())
    return not _SAMPLERS.isdisjoint(names)


def _is_idle(processor: Any) -> bool:
    """Return true for a processor of the SDK that does nothing when a span starts."""
    kind, starts = type(processor), getattr(processor, "on_start", None)
    is_own = kind.__module__ == getattr(starts, "__module__", None) == f"{SDK}.export"  # and replaced by no program
    return is_own and kind.__name__ in _PROCESSORS
