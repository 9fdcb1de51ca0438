"""A collector's OTLP/HTTP door: receives traces as protobuf and keeps the spans as plain values."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Condition
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1 import trace_pb2

from agent_otel.testing.servers.scripted import Answer, LoopbackServer, Route

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

PROTOBUF = "application/x-protobuf"


@dataclass(frozen=True)
class Event:
    """An event on a span; the time is in nanoseconds since 1970."""

    name: str
    time_ns: int
    attributes: dict[str, Any]


@dataclass(frozen=True)
class Span:
    """A span as it arrived; ids are hexadecimal, times are nanoseconds since 1970."""

    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_span_id: str | None
    scope: str
    status: str
    status_message: str
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]
    resource: dict[str, Any]
    events: list[Event] = field(default_factory=list)


def plain_value(value: AnyValue) -> Any:
    """Return an attribute's value as Python has it."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [plain_value(each) for each in value.array_value.values]
    if kind == "kvlist_value":
        return plain_attributes(value.kvlist_value.values)
    return getattr(value, kind)


def plain_attributes(attributes: Iterable[KeyValue]) -> dict[str, Any]:
    """Return attributes as a dictionary."""
    return {each.key: plain_value(each.value) for each in attributes}


def read_spans(request: ExportTraceServiceRequest) -> list[Span]:
    """Return all spans of one export."""
    return [
        _span(span, scoped.scope.name, plain_attributes(resource.resource.attributes))
        for resource in request.resource_spans
        for scoped in resource.scope_spans
        for span in scoped.spans
    ]


def _span(span: trace_pb2.Span, scope: str, resource: dict[str, Any]) -> Span:
    return Span(
        name=span.name,
        kind=trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_span_id=span.parent_span_id.hex() or None,
        scope=scope,
        status=trace_pb2.Status.StatusCode.Name(span.status.code).removeprefix("STATUS_CODE_"),
        status_message=span.status.message,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes=plain_attributes(span.attributes),
        resource=resource,
        events=[Event(e.name, e.time_unix_nano, plain_attributes(e.attributes)) for e in span.events],
    )


class Inbox:
    """What has arrived so far, and a way to wait for more."""

    def __init__(self) -> None:
        self.arrived = Condition()
        self.spans: list[Span] = []

    def take_traces(self, request: ExportTraceServiceRequest) -> ExportTraceServiceResponse:
        """Keep the spans of one export."""
        with self.arrived:
            self.spans.extend(read_spans(request))
            self.arrived.notify_all()
        return ExportTraceServiceResponse()

    def wait_until(self, enough: Callable[[], bool], timeout: float) -> bool:
        """Wait until ``enough`` holds, at most ``timeout`` seconds; say whether it does."""
        with self.arrived:
            return self.arrived.wait_for(enough, timeout)

    def wait_for_spans(self, count: int, timeout: float = 60.0, quiet: float = 0.0) -> list[Span]:
        """Return the spans once ``count`` are there, or what there is after ``timeout`` seconds.

        ``quiet`` seconds more are waited after that, for a span too many to show.
        """
        self.wait_until(lambda: len(self.spans) >= count, timeout)
        time.sleep(quiet)
        return list(self.spans)

    def routes(self) -> Mapping[str, Route]:
        """Return the HTTP routes that fill this inbox."""
        return {"/v1/traces": self._traces}

    def _traces(self, body: bytes) -> Answer:
        response = self.take_traces(ExportTraceServiceRequest.FromString(body))
        return Answer(response.SerializeToString(), PROTOBUF)


class TraceReceiver(LoopbackServer):
    """Receives OTLP/HTTP traces on 127.0.0.1 and keeps them in ``inbox``; port 0 takes a free one."""

    def __init__(self, port: int = 0) -> None:
        self.inbox = Inbox()
        super().__init__(self.inbox.routes(), port)
