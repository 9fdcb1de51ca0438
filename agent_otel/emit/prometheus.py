"""The Prometheus sink: ``prometheus_client`` metrics in the program's own registry, cached children.

Works in multiprocess mode, because the metrics are the client's own; exemplars are then dropped by the client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import prometheus_client

from agent_otel import _shield, catalogue

if TYPE_CHECKING:
    from agent_otel.catalogue import Metric
    from agent_otel.emit.sinks import Exemplar, Series


class _Histogram:
    __slots__ = ("_observe",)

    def __init__(self, child: Any) -> None:
        self._observe = child.observe

    def record(self, value: float, exemplar: Exemplar | None = None) -> None:
        self._observe(value, exemplar and exemplar.labels)


class _Counter:
    __slots__ = ("_inc",)

    def __init__(self, child: Any) -> None:
        self._inc = child.inc

    def record(self, value: float, exemplar: Exemplar | None = None) -> None:
        self._inc(value, exemplar and exemplar.labels)


class _Gauge:
    __slots__ = ("_set",)

    def __init__(self, child: Any) -> None:
        self._set = child.set

    def record(self, value: float, exemplar: Exemplar | None = None) -> None:  # noqa: ARG002 - gauges have none
        self._set(value)


class PrometheusSink:
    """Metrics in ``registry``, made when first bound."""

    def __init__(self, registry: prometheus_client.CollectorRegistry = prometheus_client.REGISTRY) -> None:
        self._registry = registry
        self._metrics: dict[str, Any] = {}

    def series(self, metric: Metric, values: tuple[str, ...]) -> Series:
        """Bind a metric to label values."""
        parent = self._metrics.get(metric.name)
        if parent is None:
            parent = self._metrics[metric.name] = self._make(metric)
        child = parent.labels(*values) if metric.labels else parent
        if metric.kind == catalogue.HISTOGRAM:
            return _Histogram(child)
        return _Counter(child) if metric.kind == catalogue.COUNTER else _Gauge(child)

    def _make(self, metric: Metric) -> Any:
        try:
            return self._build(metric, self._registry)
        except ValueError:  # the name is taken in the program's registry
            _shield.say_once(
                f"taken {metric.prometheus_name}",
                f"Another part of the program already exposes {metric.prometheus_name}; ours is not exposed.",
            )
            return self._build(metric, None)

    @staticmethod
    def _build(metric: Metric, registry: prometheus_client.CollectorRegistry | None) -> Any:
        name, meaning, labels = metric.prometheus_name, metric.meaning, metric.prometheus_labels
        if metric.kind == catalogue.HISTOGRAM:
            return prometheus_client.Histogram(name, meaning, labels, buckets=metric.buckets, registry=registry)
        if metric.kind == catalogue.COUNTER:
            return prometheus_client.Counter(name, meaning, labels, registry=registry)
        return prometheus_client.Gauge(name, meaning, labels, registry=registry, multiprocess_mode="max")
