"""Metrics of `agent_otel.semconv`, bound once for each label set and recorded on every sink."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel.measure.preview import clean
from agent_otel.telemetry.recording import recording
from agent_otel.telemetry.sinks.base import Fan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_otel.semconv.types import Metric
    from agent_otel.telemetry.sinks.base import Series, Sink
    from agent_otel.telemetry.spans import Exemplar


_MOST_DEFINITIONS = 8


class ToolSeries:
    """All series of one tool and agent, bound to their labels."""

    __slots__ = (
        "_agent",
        "_errors",
        "_metrics",
        "args_size",
        "duration",
        "invalid_arguments",
        "large",
        "over_budget",
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
        self.large = metrics.series(semconv.RESULTS_LARGE, (tool, semconv.WARN))
        self.repeats = metrics.series(semconv.TOOL_REPEATS, (tool,))
        self.shape_changes = metrics.series(semconv.SHAPE_CHANGES, (tool,))
        self.invalid_arguments = metrics.series(semconv.INVALID_ARGUMENTS, (tool,))
        delivered = metrics.series(semconv.RESULT_DELIVERED, (tool,))
        schemas = metrics.series(semconv.SCHEMA_CHANGES, (tool,))
        counters = (delivered, self.large, self.repeats, self.shape_changes)
        for counter in (*counters, schemas, self.invalid_arguments):
            counter.record(0)
        for metric in semconv.REASON_COUNTERS.values():
            metrics.series(metric, (tool,)).record(0)
        self.over_budget = {
            layer: metrics.series(semconv.RESULTS_OVER_BUDGET, (tool, layer)) for layer in semconv.BUDGET_LAYERS
        }
        for counter in self.over_budget.values():
            counter.record(0)
        for layer, reason in semconv.TRUNCATION_CASES:
            metrics.series(semconv.RESULTS_TRUNCATED, (tool, layer, reason)).record(0)
        for remedy in metrics.remedies:
            metrics.series(semconv.RESULTS_TRUNCATED, (tool, semconv.LAYER_REMEDY, remedy)).record(0)
        if semconv.CEILING in metrics.remedies:
            metrics.series(semconv.RESULTS_LARGE, (tool, semconv.CEILING)).record(0)

    def seen(self, args_bytes: int, result_bytes: int, exemplar: Exemplar | None) -> None:
        """Record a call that only a model request shows: what it delivered is all that is known, and no duration."""
        self.args_size.record(args_bytes, exemplar)
        self.size.record(result_bytes, exemplar)
        self.count_large(result_bytes, exemplar)

    def count_large(self, text_bytes: int, exemplar: Exemplar | None) -> None:
        """Count a text that the model reads as a result, if it is large; also one made of an exception."""
        if text_bytes > self._metrics.large_result_bytes:
            self.large.record(1, exemplar)

    def truncated(self, layer: str, reason: str) -> Series:
        """Return the counter of truncations by a layer for a reason; some reasons have counters of their own."""
        return self._metrics.truncations(self.tool, layer, reason)

    def failed_duration(self, error_type: str) -> Series | None:
        """Return the duration series of calls that failed with this error type, None when it is not recorded."""
        if self.duration is None:
            return None
        series = self._errors.get(error_type)
        if series is None:
            error_type = self._metrics.limit(semconv.ERROR_TYPE, error_type)
            series = self._metrics.series(semconv.TOOL_DURATION, (self.tool, self._agent, error_type))
            self._errors[error_type] = series
        return series


class Metrics:
    """The series of all metrics on the sinks in use."""

    def __init__(self, sinks: list[Sink], large_result_bytes: int, remedies: tuple[str, ...] = ()) -> None:
        self.large_result_bytes = large_result_bytes
        #: Remedies that may replace a result: `ceiling`, `claim_check`.
        self.remedies = remedies
        self._sinks = sinks
        self._limiters = limiters()
        self._series: dict[tuple[str, tuple[str, ...]], Series] = {}
        #: Fingerprints of definitions by the label values of the tool and the agent.
        self._defined: dict[tuple[str, str], set[str]] = {}
        #: Delivered bytes, by the tools that have a label of their own.
        self._delivered: dict[str, Series] = {}
        #: Sizes of the parts of requests.
        self._request: dict[str, Series] = {}
        #: Series by the label values of the tool and the agent.
        self.tools: dict[tuple[str, str], ToolSeries] = {}

    def tool(self, name: str, agent: str | None, also_timed_by: tuple[str, ...] = ()) -> ToolSeries:
        """Return the series of a tool; without a duration if one of ``also_timed_by`` emits it."""
        with recording.held:
            key = (self.limit(semconv.GEN_AI_TOOL_NAME, name), self.limit(semconv.AGENT_NAME, agent))
            if key not in self.tools:
                timed = not any(is_active(instrumentor) for instrumentor in also_timed_by)
                self.tools[key] = ToolSeries(self, *key, timed=timed)
            return self.tools[key]

    def request(self, sizes: dict[str, int]) -> None:
        """Record the size of a model request, by its parts, each of ``semconv.REQUEST_PARTS``."""
        if not self._request:
            self._request = {part: self.series(semconv.REQUEST_SIZE, (part,)) for part in semconv.REQUEST_PARTS}
        with recording.held:
            for part, part_bytes in sizes.items():
                self._request[part].add(part_bytes)

    def delivered(self, tool: str, result_bytes: int) -> None:
        """Count the bytes of a result at its first delivery to a model."""
        series = self._delivered.get(tool)
        if series is None:
            label = self.limit(semconv.GEN_AI_TOOL_NAME, tool)
            series = self.series(semconv.RESULT_DELIVERED, (label,))
            if label == tool:
                self._delivered[tool] = series
        series.record(result_bytes)

    def truncated(self, tool: str, layer: str, reason: str) -> None:
        """Count a truncation that is detected after the tool call has ended."""
        self.truncations(self.limit(semconv.GEN_AI_TOOL_NAME, tool), layer, reason).record(1)

    def truncations(self, tool: str, layer: str, reason: str) -> Series:
        """Return the counter of a reason, by the label value of the tool."""
        own = semconv.REASON_COUNTERS.get(reason)
        if own is not None:
            return self.series(own, (tool,))
        return self.series(semconv.RESULTS_TRUNCATED, (tool, layer, reason))

    def remedied(self, tool: str, remedy: str, removed_bytes: int) -> None:
        """Count a result that a remedy replaced and the removed bytes; `ToolSeries.truncated` counts the truncation."""
        if remedy == semconv.CEILING:
            values = (self.limit(semconv.GEN_AI_TOOL_NAME, tool), semconv.CEILING)
            self.series(semconv.RESULTS_LARGE, values).record(1)
        self.removed(remedy, max(removed_bytes, 0))

    def removed(self, strategy: str, removed_bytes: int) -> None:
        """Count bytes that a remedy kept from the model."""
        self.series(semconv.CONTEXT_REMOVED, (strategy,)).record(removed_bytes)

    def summarized(self, result: str) -> None:
        """Count a summary of a long request, or the failure to make one."""
        self.series(semconv.CONTEXT_SUMMARIES, (result,)).record(1)

    def claim_check(self, operation: str, result: str, io_bytes: int, seconds: float) -> None:
        """Record an operation on the claim store."""
        self.series(semconv.CLAIM_CHECK_OPERATIONS, (operation, result)).record(1)
        self.series(semconv.CLAIM_CHECK_DURATION, (operation, result)).record(seconds)
        if io_bytes:
            self.series(semconv.CLAIM_CHECK_IO, (operation,)).record(io_bytes)

    def announce(self, limits: Iterable[str]) -> None:
        """Create the counters that alerts use at 0, so that the first event is an increase and not a new series."""
        for limit in limits:
            self.series(semconv.LIMITS_HIT, (limit,)).record(0)
        if semconv.CLAIM_CHECK in self.remedies:
            for operation, result in semconv.CLAIM_CHECK_CASES:
                self.series(semconv.CLAIM_CHECK_OPERATIONS, (operation, result)).record(0)

    def limit_hit(self, limit: str) -> None:
        """Count a call that a limit skipped."""
        self.series(semconv.LIMITS_HIT, (limit,)).record(1)

    def waited(self, reason: str, seconds: float) -> None:
        """Record a wait of a tool call before its dispatch."""
        self.series(semconv.BACKPRESSURE_WAIT, (reason,)).record(seconds)

    def denied(self, tool: str, rule: str, mode: str) -> None:
        """Count a call that the dispatch policy denied."""
        self.series(semconv.POLICY_DENIED, (self.limit(semconv.GEN_AI_TOOL_NAME, tool), rule, mode)).record(1)

    def defined(self, tool: str, agent: str | None, fingerprint: str) -> None:
        """Show a definition of a tool; of too many of a tool and agent only the first are shown."""
        key = (self.limit(semconv.GEN_AI_TOOL_NAME, tool), self.limit(semconv.AGENT_NAME, agent))
        shown = self._defined.setdefault(key, set())
        if fingerprint in shown or len(shown) < _MOST_DEFINITIONS:
            shown.add(fingerprint)
            self.set(semconv.DEFINITION_INFO, (*key, fingerprint), 1)

    def schema_changed(self, tool: str) -> None:
        """Count a change of a tool's definition."""
        self.series(semconv.SCHEMA_CHANGES, (self.limit(semconv.GEN_AI_TOOL_NAME, tool),)).record(1)

    def unmatched(self) -> None:
        """Count a result in a model request that matches no recorded tool call."""
        self.series(semconv.RESULTS_UNMATCHED, ()).record(1)

    def followed(self, tool: str, outcome: str) -> None:
        """Count the follow-up of a truncated or paged result."""
        self.series(semconv.TOOL_FOLLOWUPS, (self.limit(semconv.GEN_AI_TOOL_NAME, tool), outcome)).record(1)

    def incomplete(self, tool: str, reason: str, answers: int = 1) -> None:
        """Count final answers that are built on a part of a result."""
        self.series(semconv.ANSWERS_INCOMPLETE, (self.limit(semconv.GEN_AI_TOOL_NAME, tool), reason)).record(answers)

    def lost(self, agent: str | None) -> None:
        """Count a request without its earlier turns."""
        self.series(semconv.HISTORY_LOST, (self.limit(semconv.AGENT_NAME, agent),)).record(1)

    def dropped(self, agent: str | None, dropped_bytes: int, turns: int, tasks: int) -> None:
        """Count the earlier messages that a window left out of a request."""
        labels = (self.limit(semconv.AGENT_NAME, agent),)
        self.series(semconv.HISTORY_DROPPED, labels).record(dropped_bytes)
        self.series(semconv.TURNS_DROPPED, labels).record(turns)
        if tasks:
            self.series(semconv.TASKS_DROPPED, labels).record(tasks)

    def doubled(self, agent: str | None) -> None:
        """Count a request that holds a message or a result twice."""
        self.series(semconv.HISTORY_DOUBLED, (self.limit(semconv.AGENT_NAME, agent),)).record(1)

    def stable(self, share: float) -> None:
        """Record the share of a request's bytes that begin it as they began the request before."""
        self.series(semconv.REQUEST_STABLE, ()).record(share)

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
        """Return the series of a metric with these label values, bound once on every sink."""
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
            except errors.ours(Exception) as error:
                errors.warn_once("count", f"Internal errors cannot be counted: {type(error).__qualname__}")

        return count


def _bind(sink: Sink, metric: Metric, values: tuple[str, ...]) -> Series | None:
    """Bind a metric on one sink.

    Return None with a warning when the sink fails (a read-only multiprocess folder), so that other sinks still record.
    """
    try:
        return sink.series(metric, values)
    except errors.ours(Exception) as error:
        errors.warn_once(
            f"sink {type(sink).__name__}",
            f"{type(sink).__name__} cannot record {metric.name}: {type(error).__qualname__}",
        )
        return None


def is_active(source: str) -> bool:
    """Return true when ``module:name`` is an active instrumentor, or a framework's histogram that has a provider."""
    module_name, _, name = source.partition(":")
    found = getattr(sys.modules.get(module_name), name, None)
    if hasattr(found, "record"):
        # A histogram is a proxy until a provider is set; until then its values are not exported.
        return getattr(found, "_real_instrument", found) is not None
    instance = getattr(found, "_instance", None)
    return bool(getattr(instance, "is_instrumented_by_opentelemetry", False))


# Limits on distinct label values: the first names are kept, all further ones become ``_other``. A model can invent
# ten thousand tool names, and each would add a set of series in every process.


class NameLimiter:
    """A function that maps a name to itself below the limit, else to ``_other``."""

    def __init__(self, label: str, limit: int) -> None:
        self._label = label
        self._limit = limit
        self._known: set[str] = set()

    def __call__(self, name: str) -> str:
        """Return the label value for a name."""
        if name in self._known:
            return name
        name = clean(name)
        if name in self._known:
            return name
        if len(self._known) >= self._limit:
            errors.warn_once(
                f"limit of {self._label}",
                f"More than {self._limit} distinct values of {self._label}; further ones are counted as "
                f"{semconv.OTHER!r}. Are names being made up?",
            )
            return semconv.OTHER
        self._known.add(name)
        return name


def limiters() -> dict[str, NameLimiter]:
    """Return a limiter for each limited label."""
    return {label: NameLimiter(label, limit) for label, limit in semconv.NAME_LIMITS.items()}
