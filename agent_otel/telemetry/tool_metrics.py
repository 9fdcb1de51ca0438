"""Metrics of the catalogue, bound once for each label set and recorded on every sink."""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel.telemetry.cardinality import limiters
from agent_otel.telemetry.sinks.base import Fan, recording

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.semconv import Metric
    from agent_otel.telemetry.sinks.base import Exemplar, Series, Sink

    _Waiting = tuple["ToolSeries", Series | None, float, int, int | None, Exemplar | None]

_BATCH = 64  # calls; putting so many on their series takes a tenth of a millisecond


class ToolSeries:
    """All series of one tool on behalf of one agent, ready to record on."""

    __slots__ = (
        "_agent",
        "_errors",
        "_metrics",
        "args_size",
        "duration",
        "large",
        "produced",
        "repeats",
        "shape_changes",
        "size",
        "tool",
    )

    def __init__(self, metrics: Metrics, tool: str, agent: str, *, timed: bool) -> None:
        self._metrics = metrics
        self._agent = agent
        self._errors: dict[str, Series] = {}
        self.tool = tool
        self.duration = metrics.series(semconv.TOOL_DURATION, (tool, agent, "")) if timed else None
        self.size = metrics.series(semconv.RESULT_SIZE, (tool,))
        self.args_size = metrics.series(semconv.ARGS_SIZE, (tool,))
        self.produced = metrics.series(semconv.RESULT_PRODUCED, (tool,))
        self.large = metrics.series(semconv.RESULTS_LARGE, (tool, semconv.WARN))
        self.repeats = metrics.series(semconv.TOOL_REPEATS, (tool,))
        self.shape_changes = metrics.series(semconv.SHAPE_CHANGES, (tool,))
        delivered = metrics.series(semconv.RESULT_DELIVERED, (tool,))
        for counter in (self.produced, delivered, self.large, self.repeats, self.shape_changes):
            counter.record(0)
        for layer, reason in semconv.TRUNCATION_CASES:
            metrics.series(semconv.RESULTS_TRUNCATED, (tool, layer, reason)).record(0)
        for remedy in metrics.remedies:
            metrics.series(semconv.RESULTS_TRUNCATED, (tool, semconv.LAYER_REMEDY, remedy)).record(0)
        if semconv.CEILING in metrics.remedies:
            metrics.series(semconv.RESULTS_LARGE, (tool, semconv.CEILING)).record(0)

    def call(
        self,
        seconds: float,
        args_bytes: int,
        result_bytes: int | None,
        error_type: str | None,
        exemplar: Exemplar | None,
    ) -> None:
        """Record a call that is over; one that raised has no result, and an error may have one."""
        duration = self.duration if error_type is None else self.failed_duration(error_type)
        waiting = self._metrics.waiting
        if waiting is None:
            with recording.held:
                self.add(duration, seconds, args_bytes, result_bytes, exemplar)
        else:
            waiting.append((self, duration, seconds, args_bytes, result_bytes, exemplar))
            if len(waiting) >= _BATCH:
                self._metrics.settle()
        if result_bytes is not None and result_bytes > self._metrics.large_result_bytes:
            self.large.record(1, exemplar)

    def failure(self, text_bytes: int, exemplar: Exemplar | None) -> None:
        """Count the text that a framework made of an exception, if it is large: the model reads it like a result."""
        if text_bytes > self._metrics.large_result_bytes:
            self.large.record(1, exemplar)

    def add(
        self,
        duration: Series | None,
        seconds: float,
        args_bytes: int,
        result_bytes: int | None,
        exemplar: Exemplar | None,
    ) -> None:
        """Put a call on its series, with ``recording`` held."""
        if duration is not None:
            duration.add(seconds, exemplar)
        self.args_size.add(args_bytes, exemplar)
        if result_bytes is not None:
            self.size.add(result_bytes, exemplar)
            self.produced.add(result_bytes)

    def truncated(self, layer: str, reason: str) -> Series:
        """The counter of one kind of cut."""
        return self._metrics.series(semconv.RESULTS_TRUNCATED, (self.tool, layer, reason))

    def failed_duration(self, error_type: str) -> Series | None:
        """The duration series of calls that failed in this way."""
        if self.duration is None:
            return None
        series = self._errors.get(error_type)
        if series is None:
            error_type = self._metrics.limit(semconv.ERROR_TYPE, error_type)
            series = self._metrics.series(semconv.TOOL_DURATION, (self.tool, self._agent, error_type))
            self._errors[error_type] = series
        return series


class Metrics:
    """The sinks in force and what is bound to them."""

    def __init__(self, sinks: list[Sink], large_result_bytes: int, remedies: tuple[str, ...] = ()) -> None:
        self.large_result_bytes = large_result_bytes
        #: What may be put in place of a result: `ceiling`, `claim_check`.
        self.remedies = remedies
        self._sinks = sinks
        #: Calls that are not on their series yet, where the sink asks for them before it is read; else None.
        self.waiting: deque[_Waiting] | None = None
        if len(sinks) == 1 and sinks[0].settles(self.settle):
            self.waiting = deque()
        self._limiters = limiters()
        self._series: dict[tuple[str, tuple[str, ...]], Series] = {}
        #: By the name of the tool and that of the agent, as they are on the metrics.
        self.tools: dict[tuple[str, str], ToolSeries] = {}

    def settle(self) -> None:
        """Put the waiting calls on their series. Many at once cost a fraction of one amid the program's own work."""
        waiting = self.waiting
        if waiting is None:
            return
        with recording.held:
            while True:
                try:
                    series, duration, seconds, args_bytes, result_bytes, exemplar = waiting.popleft()
                except IndexError:
                    return
                series.add(duration, seconds, args_bytes, result_bytes, exemplar)

    def tool(self, name: str, agent: str | None, also_timed_by: tuple[str, ...] = ()) -> ToolSeries:
        """Return the series of a tool. ``also_timed_by`` names what may emit its duration already."""
        with recording.held:
            key = (self.limit(semconv.GEN_AI_TOOL_NAME, name), self.limit(semconv.AGENT_NAME, agent))
            if key not in self.tools:
                timed = not any(_is_active(instrumentor) for instrumentor in also_timed_by)
                self.tools[key] = ToolSeries(self, *key, timed=timed)
            return self.tools[key]

    def request(self, sizes: dict[str, int]) -> None:
        """Record the size of a model request, part by part."""
        for part, part_bytes in sizes.items():
            self.series(semconv.REQUEST_SIZE, (part,)).record(part_bytes)

    def delivered(self, tool: str, result_bytes: int) -> None:
        """Count the bytes of a result that a model was sent."""
        self.series(semconv.RESULT_DELIVERED, (self.limit(semconv.GEN_AI_TOOL_NAME, tool),)).record(result_bytes)

    def truncated(self, tool: str, layer: str, reason: str) -> None:
        """Count a cut that is found when the tool call is over."""
        values = (self.limit(semconv.GEN_AI_TOOL_NAME, tool), layer, reason)
        self.series(semconv.RESULTS_TRUNCATED, values).record(1)

    def remedied(self, tool: str, remedy: str, removed_bytes: int) -> None:
        """Count a result in whose place a remedy has put something smaller; the cut is counted with the others."""
        if remedy == semconv.CEILING:
            values = (self.limit(semconv.GEN_AI_TOOL_NAME, tool), semconv.CEILING)
            self.series(semconv.RESULTS_LARGE, values).record(1)
        self.removed(remedy, max(removed_bytes, 0))

    def removed(self, strategy: str, removed_bytes: int) -> None:
        """Count bytes that a remedy kept from the model."""
        self.series(semconv.CONTEXT_REMOVED, (strategy,)).record(removed_bytes)

    def claim_check(self, operation: str, result: str, io_bytes: int, seconds: float) -> None:
        """Record an operation on the claim store."""
        self.series(semconv.CLAIM_CHECK_OPERATIONS, (operation, result)).record(1)
        self.series(semconv.CLAIM_CHECK_DURATION, (operation, result)).record(seconds)
        if io_bytes:
            self.series(semconv.CLAIM_CHECK_IO, (operation,)).record(io_bytes)

    def announce(self, limits: tuple[str, ...]) -> None:
        """Create at 0 what alerts wait for: the first one is to be an increase, and not a newborn series."""
        for limit in limits:
            self.series(semconv.LIMITS_HIT, (limit,)).record(0)
        if semconv.CLAIM_CHECK in self.remedies:
            for operation, result in semconv.CLAIM_CHECK_CASES:
                self.series(semconv.CLAIM_CHECK_OPERATIONS, (operation, result)).record(0)

    def limit_hit(self, limit: str) -> None:
        """Count a call that was skipped."""
        self.series(semconv.LIMITS_HIT, (limit,)).record(1)

    def unmatched(self) -> None:
        """Count a result that belongs to no tool call seen."""
        self.series(semconv.RESULTS_UNMATCHED, ()).record(1)

    def followed(self, tool: str, outcome: str) -> None:
        """Count what was done after a cut result or a page."""
        self.series(semconv.TOOL_FOLLOWUPS, (self.limit(semconv.GEN_AI_TOOL_NAME, tool), outcome)).record(1)

    def lost(self, agent: str | None) -> None:
        """Count a request without its earlier turns."""
        self.series(semconv.HISTORY_LOST, (self.limit(semconv.AGENT_NAME, agent),)).record(1)

    def doubled(self, agent: str | None) -> None:
        """Count a request that holds the same twice."""
        self.series(semconv.HISTORY_DOUBLED, (self.limit(semconv.AGENT_NAME, agent),)).record(1)

    def stable(self, share: float) -> None:
        """Record how much of a request was the beginning of the one before."""
        self.series(semconv.REQUEST_STABLE, ()).record(share)

    def cached(self, tokens: int) -> None:
        """Count the tokens that a provider says it had cached."""
        self.series(semconv.CACHED_TOKENS, ()).record(tokens)

    def execution(
        self, workflow: str | None, agent: str | None, tool_calls: int, result_bytes: int, payload_bytes: int
    ) -> None:
        """Record the totals of a finished execution."""
        values = (self.limit(semconv.WORKFLOW_NAME, workflow), self.limit(semconv.AGENT_NAME, agent))
        self.series(semconv.EXECUTION_TOOL_CALLS, values).record(tool_calls)
        self.series(semconv.EXECUTION_RESULT_SIZE, values).record(result_bytes)
        if payload_bytes:
            self.series(semconv.EXECUTION_PAYLOAD_SIZE, values).record(payload_bytes)

    def series(self, metric: Metric, values: tuple[str, ...]) -> Series:
        """Bind a metric to label values on every sink; the same series is returned the next time."""
        key = (metric.name, values)
        series = self._series.get(key)
        if series is None:
            with recording.held:
                bound = [one for sink in self._sinks if (one := _bind(sink, metric, values)) is not None]
                series = self._series.setdefault(key, bound[0] if len(bound) == 1 else Fan(bound))
        return series

    def set(self, metric: Metric, values: tuple[str, ...], value: float) -> None:
        """Set a gauge."""
        self.series(metric, values).record(value)

    def limit(self, label: str, name: str | None) -> str:
        """Apply the limit of a label to a name; an empty value means that the label is absent."""
        return self._limiters[label](name) if name else ""

    def count_internal_error(self, handler: Callable[[str], None]) -> Callable[[str], None]:
        """Return an error handler that counts on the metric as well."""

        def count(where: str) -> None:
            handler(where)
            try:
                self.series(semconv.INTERNAL_ERRORS, (where,)).record(1)
            except Exception as error:
                errors.warn_once("count", f"Internal errors cannot be counted: {type(error).__qualname__}")

        return count


def _bind(sink: Sink, metric: Metric, values: tuple[str, ...]) -> Series | None:
    """Bind on one sink; one that cannot (a multiprocess folder that is not writable) must not cost the others."""
    try:
        return sink.series(metric, values)
    except Exception as error:
        errors.warn_once(
            f"sink {type(sink).__name__}",
            f"{type(sink).__name__} cannot record {metric.name}: {type(error).__qualname__}",
        )
        return None


def _is_active(source: str) -> bool:
    """Whether ``module:name`` emits: an instrumentor that has instrumented, or a histogram of a framework's own."""
    module_name, _, name = source.partition(":")
    found = getattr(sys.modules.get(module_name), name, None)
    if hasattr(found, "record"):
        # A histogram is a proxy until there is a provider, and without one nobody sees it.
        return getattr(found, "_real_instrument", found) is not None
    instance = getattr(found, "_instance", None)
    return bool(getattr(instance, "is_instrumented_by_opentelemetry", False))
