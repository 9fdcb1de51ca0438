"""Spans of other instrumentations that are full: what their owners set stays, and ours goes where there is room."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import use_span

from agent_otel import semconv
from agent_otel.telemetry import foreign_spans, spans

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.environments import Environment

OWN = {"openinference.span.kind": "TOOL", "tool.name": "search", "session.id": "s", "user.id": "u"}
OURS = {
    "other.1": 1,
    "other.2": 2,
    semconv.ARGS_HASH: "0" * 12,
    semconv.ARGS_BYTES: 2,
    semconv.RESULT_BYTES: 3,
    semconv.RESULT_TRUNCATED: False,
}


def traced(limits: SpanLimits | None) -> tuple[Any, InMemorySpanExporter]:
    """Return a tracer of the SDK with these limits, and what it exports."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(span_limits=limits)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("other"), exporter


def filled(tracer: Any, count: int) -> Any:
    """Return an open span of another instrumentation with so many attributes."""
    span: Any = tracer.start_span("search", attributes=dict(list(OWN.items())[:count]))
    span.set_attributes({f"input.{number}": number for number in range(count - len(OWN))})
    return span


def test_a_full_span_keeps_what_its_owner_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the default limit, one of the program, and one of the environment; of few free places the best is made."""
    cases = [(SpanLimits(max_span_attributes=most), most) for most in (4, 16, 128, 1_000)] + [(None, 128)]
    for limits, most in cases:
        for count in {max(4, most - 40), max(4, most - 10), most - 1, most}:
            for mode in ("auto", "enrich"):
                tracer, exporter = traced(limits)
                span = filled(tracer, count)
                before = dict(span.attributes)
                with use_span(span, end_on_exit=False):
                    opened = spans.open_tool_span(tracer, mode, "search", dict(OURS), 1, span)
                    assert opened is not None
                    opened.write({semconv.RESULT_HANDED_BACK_BYTES: 1, "other.3": 3}, "ValueError", None)
                    opened.end()
                span.set_attributes({f"late.{number}": 1 for number in range(min(most // 16, most - count))})
                span.end()
                theirs: Any = next(one for one in exporter.get_finished_spans() if one.name == "search")
                assert before.items() <= theirs.attributes.items(), (most, count, mode)
                assert 0 == theirs.dropped_attributes
                ours: Any = theirs.attributes
                if mode == "auto" and not opened.foreign:
                    child: Any = next(one for one in exporter.get_finished_spans() if one.name != "search")
                    assert theirs.context.span_id == child.parent.span_id
                    ours = child.attributes
                if (mode == "auto" and most > 4) or most - most // 16 - count >= 4:
                    assert ours[semconv.RESULT_BYTES] == 3
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "8")
    tracer, _ = traced(None)
    span = filled(tracer, 8)
    spans.put_on_any(span, OURS)
    assert 8 == len(span.attributes)
    assert OWN.items() <= span.attributes.items()


def test_the_most_important_go_first() -> None:
    tracer, _ = traced(SpanLimits(max_span_attributes=16))
    span = filled(tracer, 12)  # one stays free for the owner
    spans.put_on_any(span, {**OURS, "session.id": "s"})
    added = span.attributes.keys() - filled(tracer, 12).attributes.keys()
    assert {semconv.RESULT_BYTES, semconv.RESULT_TRUNCATED, semconv.ARGS_BYTES} == added
    tracer, _ = traced(SpanLimits(max_span_attributes=SpanLimits.UNSET))
    span = filled(tracer, 1_000)
    spans.put_on_any(span, OURS)
    assert OURS.items() <= span.attributes.items()


def test_a_step_gets_a_span_below_a_full_one() -> None:
    tracer, exporter = traced(None)
    for count, names in ((127, {"execute_activity charge"}), (50, set())):
        span = tracer.start_span("charge", attributes={"temporalActivityID": "1"})
        span.set_attributes({f"input.{number}": number for number in range(count)})
        opened = spans.open_step_span(
            tracer, "auto", "charge", {semconv.RUNTIME: "temporal"}, 1, span, lambda: (None, ())
        )
        assert opened is not None
        opened.write({semconv.PAYLOAD_BYTES: 1}, None, None)
        opened.end()
        span.end()
        finished: dict[str, Any] = {one.name: one for one in exporter.get_finished_spans()}
        assert {"charge", *names} == finished.keys()
        assert "1" == finished["charge"].attributes["temporalActivityID"]
        assert (semconv.PAYLOAD_BYTES in finished["charge"].attributes) is (not names)
        exporter.clear()


def test_a_span_that_is_full_of_events_gets_none() -> None:
    tracer, exporter = traced(SpanLimits(max_events=2))
    span = tracer.start_span("chat")
    for name in ("first", "second", "third"):
        foreign_spans.add_event(span, name, {})
    span.end()
    assert ["first", "second"] == [event.name for event in exporter.get_finished_spans()[0].events]


_AGENT = """
import json
from openinference.instrumentation import using_attributes
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry import trace

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
LangChainInstrumentor().instrument(tracer_provider=provider)

from langchain_core.tools import tool

@tool
def search(query: str) -> str:
    '''Search.'''
    trace.get_current_span().set_attributes({f"app.{number}": number for number in range(107)})
    return "found"

with using_attributes(session_id="the-session", user_id="the-user"):
    search.invoke({"query": "x"})
print(json.dumps([dict(span.attributes) for span in exporter.get_finished_spans()], default=str))
"""


def test_a_full_span_of_openinference(environment: Callable[[str], Environment]) -> None:
    child = environment("peers-openinference").run(
        _AGENT, env={"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "off"}, timeout=100, check=True
    )
    found = json.loads(child.stdout.splitlines()[-1])
    (theirs,) = [span for span in found if "openinference.span.kind" in span]
    assert {"TOOL", "the-session", "the-user"} == {
        theirs.get(name) for name in ("openinference.span.kind", "session.id", "user.id")
    }
    assert 1 == sum(span.get(semconv.RESULT_BYTES) == len("found") for span in found)
