"""Attributes that bypass the SDK's validation are those that the SDK itself would keep."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_ON,
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
    TraceIdRatioBased,
)
from opentelemetry.trace import INVALID_SPAN

from agent_otel.telemetry import spans
from tests.rows import each_row

START = {"gen_ai.tool.name": "search", "tool.args.bytes": 9}
END = {"tool.result.bytes": 20_301, "tool.result.truncated": False, "ratio": 0.5}


class SeesAttributes(Sampler):
    """A sampler that decides by an attribute, as those of programs may."""

    def should_sample(  # noqa: D102 - the interface's
        self, *args: Any, **kwargs: Any
    ) -> SamplingResult:
        attributes = kwargs.get("attributes", args[4] if len(args) > 4 else None) or {}
        kept = attributes.get("gen_ai.tool.name") == "search"
        return SamplingResult(Decision.RECORD_AND_SAMPLE if kept else Decision.DROP, attributes)

    def get_description(self) -> str:  # noqa: D102 - the interface's
        return "by tool"


class SeesStart(SpanProcessor):
    """A processor that reads attributes when a span starts."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def on_start(self, span: Any, parent_context: Any = None) -> None:  # noqa: ARG002, D102 - the interface
        self.seen.append(dict(span.attributes))


def _ended(provider: TracerProvider) -> ReadableSpan:
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    span = spans.start_span(tracer, "execute_tool search", START, 1, INVALID_SPAN)
    spans.put(span, END)
    span.end()
    (ended,) = exporter.get_finished_spans()
    return ended


@each_row("sampler", [ALWAYS_ON, ParentBased(ALWAYS_ON), TraceIdRatioBased(1), SeesAttributes()])
def test_a_span_has_all_attributes(sampler: Sampler) -> None:
    assert {**START, **END} == dict(_ended(TracerProvider(sampler=sampler)).attributes or {})


def test_a_processor_reads_them_at_the_start_also_one_that_is_added_later() -> None:
    provider, early, late = TracerProvider(), SeesStart(), SeesStart()
    tracer = provider.get_tracer("test")
    spans.start_span(tracer, "execute_tool search", START, 1, INVALID_SPAN).end()
    provider.add_span_processor(early)
    spans.start_span(tracer, "execute_tool search", START, 1, INVALID_SPAN).end()
    provider.add_span_processor(late)
    spans.start_span(tracer, "execute_tool search", START, 1, INVALID_SPAN).end()
    assert ([START, START], [START]) == (early.seen, late.seen)


def test_the_limits_of_the_provider_hold() -> None:
    few = _ended(TracerProvider(span_limits=SpanLimits(max_span_attributes=3)))
    short = _ended(TracerProvider(span_limits=SpanLimits(max_span_attribute_length=3)))
    assert END == dict(few.attributes or {})
    assert few.dropped_attributes == 2
    assert (short.attributes or {})["gen_ai.tool.name"] == "sea"


def test_what_is_not_plain_goes_the_way_of_the_sdk() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    span = provider.get_tracer("test").start_span("x")
    names = ["a", "b"]
    spans.put(span, {"names": names})
    names.append("c")
    span.end()
    (ended,) = exporter.get_finished_spans()
    assert ("a", "b") == (ended.attributes or {})["names"]


class _Wrapped:
    """A span with a class of another instrumentation, which has the SDK's own inside."""

    def __init__(self, span: Any) -> None:
        self._span = span
        self.told: list[Any] = []

    def set_attributes(self, attributes: Any) -> None:
        self.told.append(attributes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._span, name)


def test_a_span_with_another_class_is_told_itself() -> None:
    span: Any = TracerProvider().get_tracer("test").start_span("chat")
    wrapped: Any = _Wrapped(span)
    spans.put_on_any(wrapped, END)
    assert (wrapped.told, dict(span.attributes)) == ([END], {})
    spans.put_on_any(span, END)
    assert dict(span.attributes) == END
