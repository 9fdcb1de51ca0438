"""A light span is exported as the SDK's own span, whatever is read from it or done with it while it is open."""

from __future__ import annotations

import json
import logging
import threading
from typing import TYPE_CHECKING, Any, Final

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanLimits, Tracer, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan, SpanContext, Status, StatusCode, TraceFlags
from opentelemetry.trace.span import TraceState

from agent_otel.telemetry import spans
from agent_otel.telemetry.spans import Light
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

START: Final[dict[str, str | int]] = {"gen_ai.tool.name": "search", "tool.args.bytes": 9}
END = {"tool.result.bytes": 20_301, "tool.result.truncated": False}
AT = 1_800_000_000_000_000_000
STATE = TraceState([("vendor", "7")])
SAMPLED, UNSAMPLED = TraceFlags(TraceFlags.SAMPLED), TraceFlags(TraceFlags.DEFAULT)


class Counted(IdGenerator):
    """Ids 1, 2, 3 and so on."""

    def __init__(self) -> None:
        self.last = 0

    def generate_span_id(self) -> int:  # noqa: D102 - the interface's
        self.last += 1
        return self.last

    generate_trace_id = generate_span_id


def _nothing(_: Any) -> None:
    """Leave the span alone."""


def _everything(span: Any) -> None:
    """Do all that a tool's code may do with the span."""
    span.set_attribute("own", 1)
    span.set_attributes({"gen_ai.tool.name": "other", "list": ["a", "b"]})
    span.add_event("event", {"n": 1}, AT + 5)
    span.add_link(SpanContext(5, 6, is_remote=True, trace_flags=SAMPLED), {"why": "test"})
    span.update_name("renamed")
    span.set_status(Status(StatusCode.ERROR, "no"))


def _reads(span: Any) -> None:
    """Read all that is public, as processors of logs and other instrumentations do."""
    read = (span.name, span.kind, span.resource, span.links, span.events, span.status, span.start_time, span.end_time)
    assert read[0] == "execute_tool search"
    assert dict(span.attributes) == START
    assert (span.instrumentation_scope.name, span.dropped_attributes, span.is_recording()) == ("test", 0, True)
    assert json.loads(span.to_json())["attributes"] == START


def _fails(span: Any) -> None:
    """End a block of the span by an exception."""
    with pytest.raises(ZeroDivisionError), trace.use_span(span, end_on_exit=False):
        raise ZeroDivisionError


def _span(remote: bool, flags: TraceFlags) -> trace.Span:  # noqa: FBT001 - a case's fields
    return NonRecordingSpan(SpanContext(77, 78, is_remote=remote, trace_flags=flags, trace_state=STATE))


WITHIN = {
    "root": INVALID_SPAN,
    "local": _span(False, SAMPLED),
    "remote": _span(True, SAMPLED),
    "unsampled": _span(True, UNSAMPLED),
}
USES: dict[str, Callable[[Any], None]] = {
    "nothing": _nothing, "everything": _everything, "reads": _reads, "fails": _fails
}  # fmt: skip


def _tracer(sampler: Sampler, **given: Any) -> tuple[Tracer, InMemorySpanExporter]:
    provider, exporter = TracerProvider(sampler=sampler, id_generator=Counted(), **given), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test", "1", attributes={"of": "scope"})
    assert isinstance(tracer, Tracer)
    return tracer, exporter


def _ours(tracer: Tracer, within: trace.Span) -> trace.Span:
    with trace.use_span(within):
        return spans.start_span(tracer, "execute_tool search", {**START}, AT, within)


def _theirs(tracer: Tracer, within: trace.Span) -> trace.Span:
    context = trace.set_span_in_context(within)
    return tracer.start_span("execute_tool search", context, attributes=START, start_time=AT)


def _exported(
    start: Callable[[Tracer, trace.Span], trace.Span], sampler: Sampler, within: trace.Span, use: Callable[[Any], None]
) -> tuple[type, list[Any]]:
    """Start a first span, and a second one that is used; return the class of the second and what was exported."""
    tracer, exporter = _tracer(sampler)
    start(tracer, INVALID_SPAN).end(AT + 1)
    span = start(tracer, within)
    if span.is_recording():
        use(span)
    spans.put(span, END) if start is _ours else span.set_attributes(END)
    span.end(AT + 10)
    return type(span), [_plain(ended) for ended in exporter.get_finished_spans()]


def _plain(span: ReadableSpan) -> Any:
    """Return all of an exported span that is no time of the test's own."""
    shown = json.loads(span.to_json())
    for event in shown["events"]:
        if event["name"] == "exception":
            event["timestamp"] = event["attributes"]["exception.stacktrace"] = ""
    context = span.get_span_context()
    flags = (context.trace_flags, context.trace_state, context.is_remote) if context else None
    parent = span.parent and (span.parent.span_id, span.parent.is_remote)
    return shown, flags, parent, span.instrumentation_scope, span.dropped_attributes


@each_row("within", WITHIN.values(), ids=WITHIN)
@each_row("use", USES.values(), ids=USES)
@each_row("sampler", [ALWAYS_ON, ParentBased(ALWAYS_ON)], ids=["always", "parent"])
def test_what_is_exported_is_the_span_of_the_sdk(
    sampler: Sampler, use: Callable[[Any], None], within: trace.Span
) -> None:
    kind, ours = _exported(_ours, sampler, within, use)
    _, theirs = _exported(_theirs, sampler, within, use)
    assert theirs == ours
    is_unsampled = within is WITHIN["unsampled"]
    assert issubclass(kind, Light) == (not is_unsampled)
    assert len(theirs) == (1 if is_unsampled and isinstance(sampler, ParentBased) else 2)


@each_row("sampler", [ALWAYS_OFF, TraceIdRatioBased(1), ParentBased(TraceIdRatioBased(1))])
def test_the_sdk_starts_the_roots_that_its_sampler_may_drop(sampler: Sampler) -> None:
    kind, ours = _exported(_ours, sampler, INVALID_SPAN, _nothing)
    assert not issubclass(kind, Light)
    assert ours == _exported(_theirs, sampler, INVALID_SPAN, _nothing)[1]


def test_another_sampler_or_tracer_is_asked_from_then_on() -> None:
    tracer, exporter = _tracer(ALWAYS_ON)
    _ours(tracer, INVALID_SPAN).end()
    tracer.sampler = ALWAYS_OFF
    assert not _ours(tracer, INVALID_SPAN).is_recording()
    other, of_other = _tracer(ALWAYS_ON)
    _ours(other, INVALID_SPAN).end()
    _ours(other, INVALID_SPAN).end()
    assert (1, 2) == (len(exporter.get_finished_spans()), len(of_other.get_finished_spans()))


def test_the_limit_of_attributes_holds() -> None:
    tracer, exporter = _tracer(ALWAYS_ON, span_limits=SpanLimits(max_span_attributes=3))
    _ours(tracer, INVALID_SPAN).end()
    span = _ours(tracer, INVALID_SPAN)
    assert isinstance(span, Light)
    spans.put(span, END)
    span.end()
    ended = exporter.get_finished_spans()[-1]
    assert ({"tool.args.bytes": 9, **END}, 1) == (dict(ended.attributes or {}), ended.dropped_attributes)


def test_nothing_is_written_after_the_end_and_the_sdk_warns(caplog: pytest.LogCaptureFixture) -> None:
    tracer, exporter = _tracer(ALWAYS_ON)
    _ours(tracer, INVALID_SPAN).end()
    span = _ours(tracer, INVALID_SPAN)
    assert isinstance(span, Span)
    span.end(AT + 10)
    with caplog.at_level(logging.WARNING):
        span.set_attribute("late", 1)
        spans.put(span, {"later": 1})
        span.end(AT + 20)
    ended = exporter.get_finished_spans()
    assert (2, START, AT + 10) == (len(ended), dict(ended[-1].attributes or {}), ended[-1].end_time)
    assert [record.getMessage() for record in caplog.records] == [
        "Setting attribute on ended span.",
        "Setting attribute on ended span.",
        "Calling end() on an ended span.",
    ]
    assert (START, AT + 10) == (dict(span.attributes or {}), span.end_time)


def test_threads_that_use_a_span_at_once_lose_nothing() -> None:
    tracer, exporter = _tracer(ALWAYS_ON)
    _ours(tracer, INVALID_SPAN).end()
    for _ in range(200):
        span, ready = _ours(tracer, INVALID_SPAN), threading.Barrier(3)
        threads = [threading.Thread(target=_writes, args=(span, ready, number)) for number in range(2)]
        for thread in threads:
            thread.start()
        ready.wait()
        spans.put(span, END)
        for thread in threads:
            thread.join()
        span.end()
    read = [dict(ended.attributes or {}) for ended in exporter.get_finished_spans()[1:]]
    assert [{**START, **END, "thread.0": True, "thread.1": True}] * 200 == read


def _writes(span: trace.Span, ready: threading.Barrier, number: int) -> None:
    ready.wait()
    span.set_attribute(f"thread.{number}", True)


def test_a_name_that_no_span_has_is_none_of_a_light_one() -> None:
    tracer, _ = _tracer(ALWAYS_ON)
    _ours(tracer, INVALID_SPAN).end()
    span: Any = _ours(tracer, INVALID_SPAN)
    assert issubclass(type(span), Light)
    for name in ("foo", "_foo", "__foo__"):
        assert not hasattr(span, name)
    span.foo = 1
    assert span.foo == 1


_FORKED = """
import json, os
import agent_otel
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

def ids():
    with agent_otel.tool_call("search") as call:
        call.result("x")
    with provider.get_tracer("program").start_as_current_span("own"):
        pass
    found = [span.resource.attributes["service.instance.id"] for span in exporter.get_finished_spans()]
    exporter.clear()
    return found

parent = [ids(), ids()]
reader, writer = os.pipe()
if not os.fork():
    os.write(writer, json.dumps(ids()).encode())
    os._exit(0)
child = json.loads(os.read(reader, 10_000))
print(json.dumps([len(set(parent[0] + parent[1])), len(set(child)), child[0] in parent[0]]))
"""


def test_spans_of_a_forked_child_have_the_resource_of_the_child(environment: Callable[[str], Environment]) -> None:
    """The SDK gives each process an id of its own, also a forked one."""
    child = environment("bare").run(_FORKED, env={"AGENT_OTEL": "1"}, check=True)
    assert ("", [1, 1, False]) == (child.stderr, json.loads(child.stdout))
