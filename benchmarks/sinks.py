"""The worth of our own cells beside the metrics of the Prometheus client and of OpenTelemetry, in a call and alone.

``python -m benchmarks.sinks`` from the root of the repository, in an environment that has the package and rich
(``scripts/benchmark sinks``). They are interleaved in one process; times are minima, in U. ``… ratio`` is the child of
the budget: it prints a call with OpenTelemetry's metrics as a multiple of one with the cells that is followed by as
many ``record`` calls of the SDK's own histograms, which is the least that its metrics can cost.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from prometheus_client import CollectorRegistry
from rich.console import Console
from rich.table import Table

import agent_otel
from agent_otel import semconv
from agent_otel._internal.fork import recording
from agent_otel.telemetry import metrics_server, setup
from agent_otel.telemetry.metrics import Metrics
from agent_otel.telemetry.sinks.otel import OTelSink
from agent_otel.telemetry.sinks.prometheus import PrometheusSink
from benchmarks import budgets, clock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_otel.semconv.types import Metric
    from agent_otel.telemetry.metrics import ToolSeries
    from agent_otel.telemetry.sinks import Series


class ClientSink(PrometheusSink):
    """The sink on the client's own metrics, as in multiprocess mode, but without its files."""

    def declare(self, metric: Metric) -> Callable[[tuple[str, ...]], Series]:
        """Return a metric of the client."""
        return metrics_server.client_metric(metric, self._registry)


def _record(series: ToolSeries) -> None:
    """Record what a tool call with a result records."""
    with recording.held:
        if series.duration is not None:
            series.duration.add(0.001)
        series.args_size.add(20)
        series.size.add(200)


def measured(metrics: dict[str, Metrics], more: Mapping[str, Callable[[], object]] | None = None) -> dict[str, float]:
    """Return what measuring adds to a tool call with each of these and in ``more`` cases, and the metrics alone."""
    tool, out = agent_otel.tool(budgets.bare), setup.telemetry()

    def with_metrics(chosen: Metrics) -> Callable[[], object]:
        def call() -> object:
            out.metrics = chosen
            return tool("where is it")

        return call

    cases: dict[str, Callable[[], object]] = {"bare": lambda: budgets.bare("where is it")}
    cases |= {name: with_metrics(one) for name, one in metrics.items()} | dict(more or {})
    series = {name: one.tool("bare") for name, one in metrics.items()}
    cases |= {f"{name}, alone": functools.partial(_record, one) for name, one in series.items()}
    took = clock.measure(cases, rounds=200)
    return {name: took[name] - (0 if "alone" in name else took["bare"]) for name in cases if name != "bare"}


def _metrics() -> dict[str, Metrics]:
    meter = MeterProvider([InMemoryMetricReader()]).get_meter("benchmark")
    sinks = (PrometheusSink(CollectorRegistry()), ClientSink(CollectorRegistry()), OTelSink(meter))
    return {name: Metrics([sink], 10**6) for name, sink in zip(("cells", "client", "otel"), sinks, strict=True)}


def ratios() -> tuple[float, float]:
    """Return a call with a recorded span and OpenTelemetry's metrics, to one with the cells, and to the least cost."""
    metrics = _metrics()
    del metrics["client"]
    budgets.record_spans()
    tool, out = agent_otel.tool(budgets.bare), setup.telemetry()
    meter = MeterProvider([InMemoryMetricReader()]).get_meter("floor")
    record_duration, record_args, record_size = (
        meter.create_histogram(metric.name, explicit_bucket_boundaries_advisory=list(metric.buckets)).record
        for metric in (semconv.TOOL_DURATION, semconv.ARGS_SIZE, semconv.RESULT_SIZE)
    )
    attributes = {semconv.GEN_AI_TOOL_NAME: "bare"}
    within = trace.set_span_in_context(NonRecordingSpan(SpanContext(1, 1, False, TraceFlags(1))), Context())

    def least() -> None:
        out.metrics = metrics["cells"]
        tool("where is it")
        record_duration(0.001, attributes, within)
        record_args(20, attributes, within)
        record_size(200, attributes, within)

    took = measured(metrics, {"least": least})
    return took["otel"] / took["cells"], took["otel"] / took["least"]


def main() -> int:
    """Measure without a recorded span, then with one."""
    if sys.argv[1:] == ["ratio"]:
        print(*ratios())
        return 0
    metrics = _metrics()
    silent = measured(metrics)
    budgets.record_spans()
    spanned = measured(metrics)
    table = Table("sink", "no span recorded, U", "span recorded, U")
    for name, took in silent.items():
        table.add_row(name, f"{took:.2f}", f"{spanned[name]:.2f}")
    Console(width=110).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
