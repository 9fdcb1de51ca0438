"""A collector for tests: a real OTLP receiver, gRPC and HTTP/protobuf, that keeps what it got as plain values.

Also a bad collector: ``OtlpReceiver(hang=True)`` accepts every export and never answers it.
"""

from __future__ import annotations

from concurrent import futures
from dataclasses import dataclass
from threading import Event as Flag
from typing import TYPE_CHECKING, Any

import grpc  # type: ignore[import-untyped, unused-ignore] # its stubs are a package of their own
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric

from agent_otel.testing.servers.scripted import Answer, LoopbackServer, Route
from examples.local_servers.otlp import PROTOBUF, Event, Inbox, Span, plain_attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from typing_extensions import Self

__all__ = ["Event", "Exemplar", "OtlpReceiver", "Point", "Span"]

_CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


@dataclass(frozen=True)
class Exemplar:
    """One measurement kept beside a data point; ids are hexadecimal and empty when there was no span."""

    value: float
    trace_id: str
    span_id: str
    attributes: dict[str, Any]


@dataclass(frozen=True)
class Point:
    """One data point of a metric. ``kind`` is ``sum``, ``gauge``, ``histogram`` or ``exponential_histogram``.

    ``value`` belongs to sums and gauges; ``count``, ``sum``, ``bounds`` and ``bucket_counts`` to histograms, where
    ``bucket_counts`` has one entry more than ``bounds`` and is not cumulative over buckets.
    """

    name: str
    unit: str
    description: str
    kind: str
    scope: str
    attributes: dict[str, Any]
    resource: dict[str, Any]
    exemplars: list[Exemplar]
    time_ns: int
    monotonic: bool = False
    cumulative: bool = False
    value: float = 0.0
    count: int = 0
    sum: float = 0.0
    bounds: tuple[float, ...] = ()
    bucket_counts: tuple[int, ...] = ()


class OtlpReceiver(Inbox):
    """Receives traces and metrics on two free loopback ports for as long as the ``with`` block lasts."""

    def __init__(self, *, hang: bool = False) -> None:
        super().__init__()
        self.points: list[Point] = []
        self.exports_begun = 0
        self._hang = hang
        self._closing = Flag()
        self._http = LoopbackServer(self.routes())
        self._grpc: Any = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
        traces = _service("trace", self.take_traces, ExportTraceServiceRequest, ExportTraceServiceResponse)
        metrics = _service("metrics", self.take_metrics, ExportMetricsServiceRequest, ExportMetricsServiceResponse)
        self._grpc.add_generic_rpc_handlers((traces, metrics))
        self._grpc_port: int = self._grpc.add_insecure_port("127.0.0.1:0")

    @property
    def http_endpoint(self) -> str:
        """Value of ``OTEL_EXPORTER_OTLP_ENDPOINT`` for ``http/protobuf``."""
        return self._http.url

    @property
    def grpc_endpoint(self) -> str:
        """Value of ``OTEL_EXPORTER_OTLP_ENDPOINT`` for ``grpc``."""
        return f"http://127.0.0.1:{self._grpc_port}"

    def environment(self, protocol: str = "http/protobuf") -> dict[str, str]:
        """Return the standard variables that push traces here, by ``http/protobuf`` or ``grpc``."""
        return {
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.grpc_endpoint if protocol == "grpc" else self.http_endpoint,
        }

    def __enter__(self) -> Self:
        self._http.__enter__()
        self._grpc.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._http.__exit__()
        self._grpc.stop(grace=0.5).wait()

    def take_traces(self, request: ExportTraceServiceRequest) -> ExportTraceServiceResponse:
        """Keep the spans of one export; when told to hang, keep nothing and do not come back."""
        self._hang_if_told()
        return super().take_traces(request)

    def take_metrics(self, request: ExportMetricsServiceRequest) -> ExportMetricsServiceResponse:
        """Keep the data points of one export; when told to hang, keep nothing and do not come back."""
        self._hang_if_told()
        with self.arrived:
            self.points.extend(read_points(request))
            self.arrived.notify_all()
        return ExportMetricsServiceResponse()

    def latest(self, name: str) -> list[Point]:
        """Return the newest data point of each series of a metric, in the order in which the series came up."""
        series = {(repr(p.resource), repr(sorted(p.attributes.items()))): p for p in self.points if p.name == name}
        return list(series.values())

    def wait_for_metric(self, name: str, timeout: float = 60.0) -> list[Point]:
        """Return :meth:`latest` once the metric has a point; empty when none came in ``timeout`` seconds."""
        self.wait_until(lambda: any(point.name == name for point in self.points), timeout)
        return self.latest(name)

    def routes(self) -> Mapping[str, Route]:
        """Return the HTTP routes of both signals."""
        return {**super().routes(), "/v1/metrics": self._metrics}

    def _metrics(self, body: bytes) -> Answer:
        response = self.take_metrics(ExportMetricsServiceRequest.FromString(body))
        return Answer(response.SerializeToString(), PROTOBUF)

    def _hang_if_told(self) -> None:
        with self.arrived:
            self.exports_begun += 1
            self.arrived.notify_all()
        if self._hang:
            self._closing.wait()
            raise ConnectionAbortedError("the receiver closed without an answer")


def _service(signal: str, take: Callable[[Any], Any], request: Any, response: Any) -> Any:
    """Return the one-method gRPC service of a signal, as its .proto file declares it."""

    def export(sent: Any, _context: Any) -> Any:
        return take(sent)

    method = grpc.unary_unary_rpc_method_handler(
        export, request_deserializer=request.FromString, response_serializer=response.SerializeToString
    )
    name = f"opentelemetry.proto.collector.{signal}.v1.{signal.capitalize()}Service"
    return grpc.method_handlers_generic_handler(name, {"Export": method})


def read_points(request: ExportMetricsServiceRequest) -> list[Point]:
    """Return all data points of one export."""
    return [
        point
        for resource in request.resource_metrics
        for scoped in resource.scope_metrics
        for metric in scoped.metrics
        for point in _points(metric, scoped.scope.name, plain_attributes(resource.resource.attributes))
    ]


def _points(metric: Metric, scope: str, resource: dict[str, Any]) -> list[Point]:
    kind = str(metric.WhichOneof("data"))
    data: Any = getattr(metric, kind)
    return [
        Point(
            name=metric.name,
            unit=metric.unit,
            description=metric.description,
            kind=kind,
            scope=scope,
            attributes=plain_attributes(point.attributes),
            resource=resource,
            exemplars=[_exemplar(each) for each in point.exemplars],
            time_ns=point.time_unix_nano,
            monotonic=getattr(data, "is_monotonic", False),
            cumulative=getattr(data, "aggregation_temporality", None) == _CUMULATIVE,
            **(_histogram(point) if "histogram" in kind else {"value": _number(point)}),
        )
        for point in data.data_points
    ]


def _histogram(point: Any) -> dict[str, Any]:
    return {
        "count": point.count,
        "sum": point.sum,
        "bounds": tuple(getattr(point, "explicit_bounds", ())),
        "bucket_counts": tuple(getattr(point, "bucket_counts", ())),
    }


def _exemplar(exemplar: Any) -> Exemplar:
    attributes = plain_attributes(exemplar.filtered_attributes)
    return Exemplar(_number(exemplar), exemplar.trace_id.hex(), exemplar.span_id.hex(), attributes)


def _number(point: Any) -> float:
    """Return the value of a point or an exemplar, which is an integer or a double on the wire."""
    number: float = getattr(point, point.WhichOneof("value"))
    return number
