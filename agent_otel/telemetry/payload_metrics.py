"""Metrics of payloads, bound once for each boundary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel.telemetry.recording import recording

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_otel.telemetry.spans import Exemplar
    from agent_otel.telemetry.tool_metrics import Metrics


class PayloadSeries:
    """All series of one boundary: a runtime, a workflow, an activity and a direction.

    ``caps`` are those of all payloads of the runtime in this direction, of which the gauge has the smallest: a step's
    result and a workflow's may have different ones.
    """

    __slots__ = (
        "_cap_bytes",
        "_caps",
        "_metrics",
        "_values",
        "few_turns",
        "growth",
        "near",
        "over",
        "rejected",
        "size",
        "stuck",
        "utilization",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - the labels
        self, metrics: Metrics, caps: set[int], runtime: str, workflow: str, activity: str, direction: str
    ) -> None:
        self._metrics = metrics
        self._caps = caps
        self._cap_bytes = 0
        self._values = (runtime, direction)
        boundary = (runtime, workflow, activity, direction)
        if direction == semconv.HISTORY:
            self.size = metrics.series(semconv.HISTORY_SIZE, (runtime, workflow))
        else:
            self.size = metrics.series(semconv.PAYLOAD_SIZE, boundary)
        self.utilization = metrics.series(semconv.UTILIZATION, (runtime, workflow, direction))
        self.growth = metrics.series(semconv.PAYLOAD_GROWTH, (runtime, workflow))
        self.near = metrics.series(semconv.PAYLOAD_NEAR_CAP, boundary)
        self.over = metrics.series(semconv.PAYLOAD_OVER_CAP, boundary)
        self.rejected = metrics.series(semconv.PAYLOADS_REJECTED, boundary)
        self.stuck = metrics.series(semconv.STUCK_RETRIES, boundary)
        self.few_turns = metrics.series(semconv.FEW_TURNS_LEFT, (runtime, workflow))
        for counter in (self.near, self.over, self.rejected, self.stuck, self.few_turns):
            counter.record(0)

    def payload(self, payload_bytes: int, cap_bytes: int | None, near_ratio: float, exemplar: Exemplar | None) -> None:
        """Record the size of a payload and, where there is a cap, its utilization."""
        if cap_bytes is None:
            self.size.record(payload_bytes, exemplar)
            return
        utilization = payload_bytes / cap_bytes
        with recording.held:
            self.size.add(payload_bytes, exemplar)
            self.utilization.add(utilization, exemplar)
        if cap_bytes != self._cap_bytes:
            self._cap_bytes = cap_bytes
            self._caps.add(cap_bytes)
            self._metrics.set(semconv.PAYLOAD_CAP, self._values, min(tuple(self._caps)))
        if utilization > 1:
            self.over.record(1, exemplar)
        elif utilization >= near_ratio:
            self.near.record(1, exemplar)


class PayloadMetrics:
    """The series of all boundaries, by the names that adapters report."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._series: dict[tuple[str, str | None, str | None, str], PayloadSeries] = {}
        self._caps: dict[tuple[str, str], set[int]] = {}

    def series(self, runtime: str, workflow: str | None, activity: str | None, direction: str) -> PayloadSeries:
        """Return the series of a boundary."""
        key = (runtime, workflow, activity, direction)
        found = self._series.get(key)
        if found is None:
            limit = self._metrics.limit
            names = (
                limit(semconv.RUNTIME, runtime),
                limit(semconv.WORKFLOW_NAME, workflow),
                limit(semconv.ACTIVITY, activity),
            )
            caps = self._caps.setdefault((names[0], direction), set())
            found = PayloadSeries(self._metrics, caps, *names, direction)
            if semconv.OTHER not in names:
                self._series[key] = found
        return found

    def analysed(
        self,
        workflow: str | None,
        components: Mapping[str, int],
        tools: Mapping[str, int],
        unattributed_bytes: int,
        duplicate_bytes: int,
    ) -> None:
        """Record the breakdown of a payload, in bytes."""
        metrics = self._metrics
        name = metrics.limit(semconv.WORKFLOW_NAME, workflow)
        for path, path_bytes in components.items():
            component = metrics.limit(semconv.COMPONENT, path)
            metrics.series(semconv.PAYLOAD_COMPONENT, (name, component)).record(path_bytes)
        for tool, tool_bytes in tools.items():
            labels = (name, metrics.limit(semconv.GEN_AI_TOOL_NAME, tool))
            metrics.series(semconv.PAYLOAD_BY_TOOL, labels).record(tool_bytes)
        metrics.series(semconv.PAYLOAD_BY_TOOL, (name, semconv.OTHER)).record(unattributed_bytes)
        metrics.series(semconv.PAYLOAD_DUPLICATE, (name,)).record(duplicate_bytes)

    def unread(self, workflow: str | None, components: Mapping[str, int]) -> None:
        """Record the bytes of an analysed payload that no model request held."""
        metrics = self._metrics
        name = metrics.limit(semconv.WORKFLOW_NAME, workflow)
        for path, path_bytes in components.items():
            component = metrics.limit(semconv.COMPONENT, path)
            metrics.series(semconv.PAYLOAD_UNREAD, (name, component)).record(path_bytes)
