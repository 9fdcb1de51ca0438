"""Sums of metrics over a period, from a Prometheus."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from agent_otel.alerts import promql
from agent_otel.cli.console import printable

if TYPE_CHECKING:
    from agent_otel.cli.prometheus import Prometheus
    from agent_otel.semconv.types import Metric

_NEVER: Final = 0.0


class Period:
    """Sums over a window that ends at a time."""

    def __init__(self, store: Prometheus, window: str, until: float, matchers: tuple[str, ...]) -> None:
        self._store = store
        self._window = window
        self._until = until
        self._matchers = matchers

    def total(self, metric: Metric, part: str) -> float:
        """Return the sum of all series of a metric."""
        return sum(self.sums(metric, part=part).values())

    def sums(self, metric: Metric, *labels: str, part: str = "") -> dict[tuple[str, ...], float]:
        """Return what a counter, or a part of a histogram, gained, by these labels; those above 0."""
        return self._values(promql.total(labels, self._gained(metric, part)), labels)

    def quantile(self, at: float, metric: Metric, *labels: str) -> dict[tuple[str, ...], float]:
        """Return a quantile of a histogram by these labels."""
        buckets = promql.total((*labels, promql.LE), self._gained(metric, "bucket"))
        return self._values(promql.quantile(at, buckets), labels)

    def _gained(self, metric: Metric, part: str) -> str:
        name = f"{metric.exposed_name}_{part}" if part else metric.exposed_name
        return promql.gained(promql.selector(name, self._matchers), self._window)

    def _values(self, expression: str, labels: tuple[str, ...]) -> dict[tuple[str, ...], float]:
        found = {}
        for own, value in self._store.query(expression, self._until):
            if value > _NEVER and math.isfinite(value):
                found[tuple(printable(own.get(label, "")) for label in labels)] = value
        return found
