"""The recorder: series of the metrics of `agent_otel.semconv`, bound once for each label set on every sink."""

from __future__ import annotations

import functools
import logging
import sys
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel import semconv
from agent_otel._internal import errors, fork
from agent_otel._internal.fork import recording
from agent_otel.measure.preview import clean
from agent_otel.semconv.types import COUNTER, MOMENT_SECONDS
from agent_otel.telemetry.sinks import Fan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from agent_otel.semconv.types import Metric
    from agent_otel.telemetry.sinks import Exemplar, Series, Sink

_MOST_DEFINITIONS: Final = 8
_MOST_COSTLY: Final = 10
#: A tool's first results, and how many times the largest of them, and bytes, a result exceeds that has grown.
_FIRST_RESULTS: Final = 20
_GROWTH: Final = 5
_LEAST_GROWN_BYTES: Final = 4096
MOST_SETS: Final = 200
"""Sets of values that have series of their own besides the fixed ones; in further ones, the others are ``_other``."""
MOST_TOOLS: Final = 1_000
"""Tools by agent and workflow that have series of their own; further ones are counted as the tool ``_other``."""


class Metrics:
    """The series of all metrics on the sinks in use, for the runs of one agent and workflow.

    A limited label such as a tool's name keeps its first values, and all further ones become ``_other``: a model can
    invent ten thousand tool names, and each would add a set of series in every process. ``base`` has the limits.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the differences between runs
        self,
        sinks: list[Sink],
        large_result_bytes: int,
        remedies: tuple[str, ...] = (),
        labels: tuple[str, ...] = (),
        values: tuple[str, ...] = (),
        base: Metrics | None = None,
        run: tuple[str, str] = ("", ""),
    ) -> None:
        self.large_result_bytes = large_result_bytes
        #: Remedies that may replace a result: `ceiling`, `claim_check`.
        self.remedies = remedies
        self._sinks = sinks
        #: The labels of the program, and their values.
        self._own = labels, values
        #: The agent and the workflow.
        self._run = run
        #: The values that have occurred, by limited label.
        self.known: dict[str, set[str]] = base.known if base else {label: set() for label in semconv.NAME_LIMITS}
        #: Tools by agent and workflow.
        self.all_tools: set[tuple[str, ...]] = base.all_tools if base else set()
        #: By metric, then by label values.
        self._series: defaultdict[str, dict[tuple[str | None, ...], Series]] = defaultdict(dict)
        #: Fingerprints of definitions by tool.
        self._defined: dict[str, set[str]] = {}
        #: Series by tool.
        self.tools: dict[str, ToolSeries] = {}
        self._models: dict[str, ModelSeries] = {}
        self._payloads: dict[tuple[str, ...], PayloadSeries] = {}
        self.caps: dict[tuple[str, str], set[int]] = base.caps if base else {}

    def series(self, metric: Metric, *names: str | None) -> Series:
        """Return the series of a metric with the values of its labels; None is absent."""
        series = self._series[metric.name].get(names)
        if series is not None:
            return series
        values = tuple(map(self.limit, metric.labels, names))
        with recording.held:
            bound = self._series[metric.name]
            if values not in bound:
                labels, own = self._own
                every = (*values, *own, *(self._run if metric.is_of_run else ()))
                found = [one for sink in self._sinks if (one := _bound(sink, metric, every, labels)) is not None]
                bound[values] = found[0] if len(found) == 1 else Fan(found)
            return bound[values]

    def record(self, metric: Metric, value: float, *names: str | None, exemplar: Exemplar | None = None) -> None:
        """Observe a value, add to a counter or set a gauge, with these label values."""
        self.series(metric, *names).record(value, exemplar)

    def add(self, metric: Metric, amounts: Mapping[str, float]) -> None:
        """Record several amounts of a metric with one label, by its value."""
        bound = self._series[metric.name]
        with recording.held:
            for name, amount in amounts.items():
                (bound.get((name,)) or self.series(metric, name)).add(amount)

    def divide(
        self, metric: Metric, model: str | None, keys: Sequence[tuple[str, str]], amounts: Sequence[float]
    ) -> None:
        """Add the amounts of a request by part and tool; the caller holds the ``recording`` lock."""
        bound = self._series[metric.name]
        for (part, tool), amount in zip(keys, amounts, strict=True):
            if amount:
                names = tool, model, part
                (bound.get(names) or self.series(metric, *names)).add(amount)

    def bound(self, values: Mapping[str, str], *metrics: Metric) -> list[Series]:
        """Return the series of several metrics with these values of their labels. Counters begin at 0."""
        found = [self.series(metric, *(values.get(label, "") for label in metric.own_labels)) for metric in metrics]
        for metric, series in zip(metrics, found, strict=True):
            if metric.kind == COUNTER:
                series.record(0)
        return found

    def limit(self, label: str, name: str | None) -> str:
        """Apply the limit of a label to a name; an empty value means that the label is absent."""
        known = self.known.get(label)
        if not name or known is None or name in known or name == semconv.OTHER:
            return name or ""
        name = clean(name)
        if name in known:
            return name
        most = semconv.NAME_LIMITS[label]
        if len(known) >= most:
            errors.warn_once(
                f"limit of {label}",
                f"More than {most} distinct values of {label}; further ones are counted as {semconv.OTHER!r}. Are "
                "names being made up?",
            )
            return semconv.OTHER
        known.add(name)
        return name

    def tool(self, name: str, also_timed_by: tuple[str, ...] = ()) -> ToolSeries:
        """Return the series of a tool; without a duration if one of ``also_timed_by`` emits it.

        The tool that reads on in stored results is none of the program: its series records nothing.
        """
        if name == semconv.GET_TOOL_RESULT:
            return _own_tool()
        with recording.held:
            tool = self.limit(semconv.GEN_AI_TOOL_NAME, name)
            if tool not in self.tools and len(self.all_tools) >= MOST_TOOLS:
                tool = semconv.OTHER
            if tool not in self.tools:
                self.all_tools.add((tool, *self._run))
                self.tools[tool] = ToolSeries(self, tool, timed=not any(map(is_active, also_timed_by)))
            return self.tools[tool]

    def model(self, model: str | None) -> ModelSeries:
        """Return the series of a model, by its name in requests."""
        name = self.limit(semconv.REQUEST_MODEL, model)
        if name not in self._models:
            self._models[name] = ModelSeries(self, name)
        return self._models[name]

    def payload(self, runtime: str, activity: str | None, direction: str) -> PayloadSeries:
        """Return the series of a boundary, by the names that adapters report."""
        labels = semconv.PAYLOAD_SIZE.own_labels
        key = tuple(map(self.limit, labels, (runtime, activity, direction)))
        if key not in self._payloads:
            caps = self.caps.setdefault((key[0], direction), set())
            self._payloads[key] = PayloadSeries(self, caps, dict(zip(labels, key, strict=True)))
        return self._payloads[key]

    def truncations(self, tool: str, layer: str, reason: str) -> Series:
        """Return the counter of truncations by a layer for a reason; some reasons have separate counters."""
        own = semconv.REASON_COUNTERS.get(reason)
        if own is not None:
            return self.series(own, tool)
        return self.series(semconv.RESULTS_TRUNCATED, tool, layer, reason)

    def remedied(self, tool: str, remedy: str, removed_bytes: int) -> None:
        """Count a result that a remedy replaced and the removed bytes; `truncations` counts the truncation."""
        if remedy == semconv.CEILING:
            self.record(semconv.RESULTS_LARGE, 1, tool, semconv.CEILING)
        self.record(semconv.CONTEXT_REMOVED, max(removed_bytes, 0), remedy)

    def claim_check(self, operation: str, result: str, io_bytes: int, seconds: float) -> None:
        """Record an operation on the claim store."""
        self.record(semconv.CLAIM_CHECK_OPERATIONS, 1, operation, result)
        self.record(semconv.CLAIM_CHECK_DURATION, seconds, operation, result)
        if io_bytes:
            self.record(semconv.CLAIM_CHECK_IO, io_bytes, operation)

    def announce(self, limits: Iterable[str]) -> None:
        """Create the counters that alerts use at 0, so that the first event is an increase and not a new series."""
        for limit in limits:
            self.record(semconv.LIMITS_HIT, 0, limit)
        if semconv.CLAIM_CHECK in self.remedies:
            for operation, result in semconv.CLAIM_CHECK_CASES:
                self.record(semconv.CLAIM_CHECK_OPERATIONS, 0, operation, result)

    def defined(self, tool: str, fingerprint: str) -> None:
        """Show a definition of a tool; of too many of a tool only the first are shown."""
        tool = self.limit(semconv.GEN_AI_TOOL_NAME, tool)
        shown = self._defined.setdefault(tool, set())
        if fingerprint in shown or len(shown) < _MOST_DEFINITIONS:
            shown.add(fingerprint)
            self.record(semconv.DEFINITION_INFO, 1, tool, fingerprint)

    def offered(self, sizes: Mapping[str, int], tokens: Sequence[int]) -> None:
        """Count a request with these tools, ``sizes`` in bytes."""
        with recording.held:
            for (tool, definition_bytes), count in zip(sizes.items(), tokens, strict=True):
                self.series(semconv.TOOL_OFFERED, tool).add(1)
                self.series(semconv.DEFINITION_SENT, tool).add(definition_bytes)
                self.series(semconv.DEFINITION_TOKENS, tool).add(count)

    def dropped(self, dropped_bytes: int, turns: int, tasks: int) -> None:
        """Count the earlier messages that a window left out of a request."""
        self.record(semconv.HISTORY_DROPPED, dropped_bytes)
        self.record(semconv.TURNS_DROPPED, turns)
        if tasks:
            self.record(semconv.TASKS_DROPPED, tasks)

    def analysed(
        self, components: Mapping[str, int], tools: Mapping[str, int], unattributed_bytes: int, duplicate_bytes: int
    ) -> None:
        """Record the breakdown of a payload, in bytes."""
        for path, path_bytes in components.items():
            self.record(semconv.PAYLOAD_COMPONENT, path_bytes, path)
        for tool, tool_bytes in tools.items():
            self.record(semconv.PAYLOAD_BY_TOOL, tool_bytes, tool)
        self.record(semconv.PAYLOAD_BY_TOOL, unattributed_bytes, semconv.OTHER)
        self.record(semconv.PAYLOAD_DUPLICATE, duplicate_bytes)

    def execution(self, tool_calls: int, result_bytes: int, payload_bytes: int) -> None:
        """Record the totals of a finished execution."""
        self.record(semconv.EXECUTION_TOOL_CALLS, tool_calls)
        self.record(semconv.EXECUTION_RESULT_SIZE, result_bytes)
        if payload_bytes:
            self.record(semconv.EXECUTION_PAYLOAD_SIZE, payload_bytes)

    def spent(self, execution_id: str, totals: Any, exemplar: Exemplar | None) -> None:
        """Record the model requests of a finished execution, their tokens and their price, as soon as it is known."""
        tokens = totals.tokens
        if tokens is None:
            return
        count = tokens.input + tokens.output
        self.record(semconv.EXECUTION_MODEL_REQUESTS, tokens.requests)
        self.record(semconv.EXECUTION_MODEL_RETRIES, totals.model_retries)
        self.record(semconv.EXECUTION_TOKENS, count, exemplar=exemplar)
        self.record(semconv.EXECUTION_CACHED, tokens.cached)
        trace = "" if exemplar is None else exemplar.labels["trace_id"]
        agent, workflow = self._run
        row = Costly(execution_id, trace, workflow, agent, None, count, tokens.requests)
        costliest.add(row)

        def paid(cost: float) -> None:
            self.record(semconv.EXECUTION_PRICE, cost, exemplar=exemplar)
            costliest.add(row._replace(dollars=cost), row)

        tokens.when_priced(paid)

    def count_internal_error(self, handler: Callable[[str], None]) -> Callable[[str], None]:
        """Return an error handler that counts on the metric as well."""

        def count(where: str) -> None:
            handler(where)
            try:
                self.record(semconv.INTERNAL_ERRORS, 1, where)
            except errors.ours(Exception) as error:
                errors.warn_once("count", f"Internal errors cannot be counted: {type(error).__qualname__}")

        return count


def _bound(sink: Sink, metric: Metric, values: tuple[str, ...], labels: tuple[str, ...]) -> Series | None:
    """Bind a metric on one sink; None where it fails (a read-only multiprocess folder): other sinks still record."""
    try:
        return sink.series(labelled(metric, labels), values)
    except errors.ours(Exception) as error:
        errors.warn_once(
            f"sink {type(sink).__name__}",
            f"{type(sink).__name__} cannot record {metric.name}: {type(error).__qualname__}",
        )
        return None


def labelled(metric: Metric, labels: tuple[str, ...]) -> Metric:
    """Return a metric that has the program's labels as well, before the labels of the run."""
    of_run = metric.labels[len(metric.own_labels) :]
    return metric._replace(labels=(*metric.own_labels, *labels, *of_run)) if labels else metric


def is_active(source: str) -> bool:
    """Return true when ``module:name`` is an active instrumentor, or a framework's histogram that has a provider."""
    module_name, _, name = source.partition(":")
    found = getattr(sys.modules.get(module_name), name, None)
    if hasattr(found, "record"):
        # A histogram is a proxy until a provider is set; until then its values are not exported.
        return getattr(found, "_real_instrument", found) is not None
    instance = getattr(found, "_instance", None)
    return bool(getattr(instance, "is_instrumented_by_opentelemetry", False))


#: Tool -> bytes of the largest of its first results in the process before, from the status file.
usual_before: dict[str, int] = {}


class ToolSeries:
    """The series of one tool that most calls record on."""

    def __init__(self, metrics: Metrics, tool: str, *, timed: bool) -> None:
        self._metrics = metrics
        self.size, self.args_size, self.large, self.repeats, self.shape_changes, self.invalid_arguments = metrics.bound(
            {semconv.GEN_AI_TOOL_NAME: tool, semconv.THRESHOLD: semconv.WARN, semconv.BY: semconv.ARGUMENTS},
            *(semconv.RESULT_SIZE, semconv.ARGS_SIZE, semconv.RESULTS_LARGE),
            *(semconv.TOOL_REPEATS, semconv.SHAPE_CHANGES, semconv.INVALID_ARGUMENTS),
        )
        self.tool = tool
        self.duration = metrics.series(semconv.TOOL_DURATION, tool, "") if timed else None
        self.large_bytes = metrics.large_result_bytes
        #: Until this time (seconds of `time.perf_counter`), a result up to this size is neither the largest nor grown.
        self.until = 0.0
        self.bound: float = -1
        self._largest, self._grown = metrics.bound(
            {semconv.GEN_AI_TOOL_NAME: tool}, semconv.RESULT_LARGEST, semconv.RESULTS_GROWN
        )
        self._usual = usual_before.get(tool, 0)
        self._first: list[int] = []
        self._most = -1
        self.over_budget = {
            layer: metrics.series(semconv.RESULTS_OVER_BUDGET, tool, layer) for layer in semconv.BUDGET_LAYERS
        }
        for series in self.over_budget.values():
            series.record(0)
        metrics.record(semconv.TOOL_REPEATS, 0, tool, semconv.RESULT)
        for counter in (semconv.RESULT_DELIVERED, semconv.SCHEMA_CHANGES, *semconv.REASON_COUNTERS.values()):
            metrics.record(counter, 0, tool)
        remedied = [(semconv.LAYER_REMEDY, remedy) for remedy in metrics.remedies]
        for layer, reason in (*semconv.TRUNCATION_CASES, *remedied):
            metrics.record(semconv.RESULTS_TRUNCATED, 0, tool, layer, reason)
        if semconv.CEILING in metrics.remedies:
            metrics.record(semconv.RESULTS_LARGE, 0, tool, semconv.CEILING)

    def seen(self, args_bytes: int, result_bytes: int, exemplar: Exemplar | None) -> None:
        """Record a call that only a model request shows. Its duration is unknown."""
        self.args_size.record(args_bytes, exemplar)
        self.size.record(result_bytes, exemplar)
        self.noticed(result_bytes, time.perf_counter())
        if result_bytes > self._metrics.large_result_bytes:
            self.large.record(1, exemplar)

    @property
    def usual(self) -> int:
        """Return the bytes of the largest of the first results; 0 while there are too few."""
        return max(self._first) if len(self._first) >= _FIRST_RESULTS else 0

    def grown_from(self, result_bytes: int) -> int:
        """Return the earlier largest size if a result of this size has grown, else 0."""
        return self._usual if result_bytes > max(_GROWTH * self._usual, _LEAST_GROWN_BYTES) else 0

    def noticed(self, result_bytes: int, now: float) -> None:
        """Count a result that has grown, and keep the largest size."""
        if result_bytes > self._most or now > self.until:
            self._most, self.until = result_bytes, now + MOMENT_SECONDS
            self._largest.record(result_bytes)
        if self.grown_from(result_bytes):
            self._grown.record(1)
        if len(self._first) < _FIRST_RESULTS:
            self._first.append(result_bytes)
            self._usual = self._usual or self.usual
        else:
            self.bound = min(self._most, max(_GROWTH * self._usual, _LEAST_GROWN_BYTES))

    def failed_duration(self, error_type: str) -> Series | None:
        """Return the duration series of calls that failed with this error type, None when it is not recorded."""
        if self.duration is None:
            return None
        return self._metrics.series(semconv.TOOL_DURATION, self.tool, error_type)


@functools.cache
def _own_tool() -> ToolSeries:
    """Return the series of a tool that record nothing."""
    series = ToolSeries(Metrics([], sys.maxsize), "", timed=False)
    series.bound = series.until = sys.maxsize  # no result is the largest or has grown
    return series


# The log record ``tool.large_result``: one per tool and hour, in the words of the span, for who greps logs.

_LOGGED_SECONDS: Final = 3600.0
_UNCONFIGURED_SECONDS: Final = 1.0

_log = logging.getLogger("agent_otel")
#: Time of the next record of each tool, in the seconds of the monotonic clock; tools are label values, so few.
_next_record: dict[str, float] = {}


def is_record_due(tool: str) -> bool:
    """Return False within the hour after a record of this tool."""
    return time.monotonic() >= _next_record.get(tool, 0.0)


@errors.guarded("large_result")
def log_large_result(
    tool: str, result_bytes: int, budget: tuple[int, str], args_hash: str | None, exemplar: Exemplar | None
) -> None:
    """Log a large result that is due.

    The record has the span's attributes as fields, for structured logging, and the same as ``key=value`` in its text.
    A program that has not configured `logging` gets none: Python would write it to the standard error of a command. It
    is looked up again a second later.
    """
    is_configured = _log.hasHandlers()
    _next_record[tool] = time.monotonic() + (_LOGGED_SECONDS if is_configured else _UNCONFIGURED_SECONDS)
    if not is_configured:
        return
    found: dict[str, str | int] = {
        semconv.TOOL_NAME: tool,
        semconv.RESULT_BYTES: result_bytes,
        semconv.RESULT_BUDGET_BYTES: budget[0],
        semconv.RESULT_BUDGET_LAYER: budget[1],
    }
    if args_hash is not None:
        found[semconv.ARGS_HASH] = args_hash
    if exemplar is not None:
        found[semconv.TRACE_ID] = f"{exemplar.spot.trace_id:032x}"
    text = " ".join(f"{key}={value}" for key, value in found.items())
    _log.warning("%s %s", semconv.LARGE_RESULT, text, extra={semconv.EVENT_NAME: semconv.LARGE_RESULT, **found})


class PayloadSeries:
    """All series of one boundary: a runtime, an activity and a direction.

    ``caps`` has the caps of all payloads of the runtime in this direction. The gauge has the smallest: a step's result
    and a workflow's may have different ones.
    """

    def __init__(self, metrics: Metrics, caps: set[int], values: Mapping[str, str]) -> None:
        self._metrics = metrics
        self._values = values
        is_history = values[semconv.DIRECTION] == semconv.HISTORY
        self.size, self.utilization, self.growth, self.near, self.over = metrics.bound(
            values,
            semconv.HISTORY_SIZE if is_history else semconv.PAYLOAD_SIZE,
            *(semconv.UTILIZATION, semconv.PAYLOAD_GROWTH, semconv.PAYLOAD_NEAR_CAP, semconv.PAYLOAD_OVER_CAP),
        )
        self.rejected, self.stuck, self.few_turns = metrics.bound(
            values, semconv.PAYLOADS_REJECTED, semconv.STUCK_RETRIES, semconv.FEW_TURNS_LEFT
        )
        self._largest, self._turns_left, self._stuck = metrics.bound(
            values, semconv.PAYLOAD_LARGEST, semconv.TURNS_LEFT, semconv.STUCK
        )
        self._most, self._until = -1, 0.0
        #: By execution: its turns left and the time of this, and the time of its last refusal in a row.
        self._turns: dict[str, tuple[int, float]] = {}
        self._refused: dict[str, float] = {}
        self._caps = caps
        self._cap_bytes = 0

    def payload(self, payload_bytes: int, cap_bytes: int | None, near_ratio: float, exemplar: Exemplar | None) -> None:
        """Record the size of a payload and, where there is a cap, its utilization."""
        now = time.monotonic()
        if payload_bytes > self._most or now > self._until:
            self._most, self._until = payload_bytes, now + MOMENT_SECONDS
            self._largest.record(payload_bytes)
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
            labels = map(self._values.__getitem__, semconv.PAYLOAD_CAP.labels)
            self._metrics.record(semconv.PAYLOAD_CAP, min(tuple(self._caps)), *labels)
        if utilization > 1:
            self.over.record(1, exemplar)
        elif utilization >= near_ratio:
            self.near.record(1, exemplar)

    def forecast(self, execution: str, turns: int) -> None:
        """Show the turns left of the execution that has fewest."""
        now = time.monotonic()
        self._turns = {name: seen for name, seen in self._turns.items() if now - seen[1] <= MOMENT_SECONDS}
        self._turns[execution] = turns, now
        self._turns_left.record(min(left for left, _ in self._turns.values()))

    def is_stuck(self, execution: str, *, stuck: bool = True) -> None:
        """Show how many executions are stuck, after this one was refused again, or was taken at last."""
        if not stuck and execution not in self._refused:
            return
        now = time.monotonic()
        self._refused = {name: at for name, at in self._refused.items() if now - at <= MOMENT_SECONDS}
        self._refused.pop(execution, None)
        if stuck:
            self.stuck.record(1)
            self._refused[execution] = now
        self._stuck.record(len(self._refused))


def is_emitted(metric: Metric) -> bool:
    """Return true when another instrumentation exports an instrument of this name."""
    provider = getattr(sys.modules.get("opentelemetry.metrics._internal"), "_METER_PROVIDER", None)
    others = [meter for scope, meter in dict(getattr(provider, "_meters", {})).items() if scope.name != semconv.SCOPE]
    return any(key.startswith(f"{metric.name},") for each in others for key in list(vars(each)["_instrument_ids"]))


class ModelSeries:
    """All series of one model."""

    def __init__(self, metrics: Metrics, model: str) -> None:
        self._metrics, self._model = metrics, model
        self._is_timed = not is_emitted(semconv.MODEL_DURATION)
        labels = {semconv.REQUEST_MODEL: model}
        self.utilization, self.near = metrics.bound(labels, semconv.CONTEXT_UTILIZATION, semconv.CONTEXT_NEAR)

    def took(self, provider: str, error_type: str | None, seconds: float, exemplar: Exemplar | None) -> None:
        """Record the duration of a request, unless another instrumentation does."""
        if self._is_timed:
            names = semconv.CHAT, provider, self._model, error_type
            self._metrics.record(semconv.MODEL_DURATION, seconds, *names, exemplar=exemplar)

    def used(self, utilization: float, near_ratio: float) -> None:
        """Record the share of the context window that a request takes."""
        with recording.held:
            self.utilization.add(utilization)
            if utilization >= near_ratio:
                self.near.add(1)


# The executions of this process that cost most, for its status file: a metric has no ids.


class Costly(NamedTuple):
    """Tokens and model requests of an execution, and US dollars where its model has a price."""

    execution: str
    trace: str
    workflow: str
    agent: str
    dollars: float | None
    tokens: int
    requests: int


class Costliest:
    """The ten executions that cost most; of those without a price, the ones with most tokens."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all executions, for a forked child."""
        self._lock = threading.Lock()
        self._rows: list[Costly] = []

    def add(self, row: Costly, before: Costly | None = None) -> None:
        """Add an execution, or replace its row ``before`` the price was known."""
        with self._lock:
            others = [other for other in self._rows if other is not before]
            self._rows = sorted([*others, row], key=lambda one: (-(one.dollars or 0.0), -one.tokens))[:_MOST_COSTLY]

    def rows(self) -> list[dict[str, Any]]:
        """Return the executions as plain data, the costliest first."""
        return [row._asdict() for row in self._rows]


costliest = Costliest()
fork.after_fork(costliest.reset)

# Labels of the program, such as a tenant or a team, on all metrics and spans. ``AGENT_OTEL_LABELS`` names them. A value
# is fixed there, or comes from ``agent_otel.execution(labels=…)`` or from OpenTelemetry's baggage.

#: Returns the labels that the program gave the execution in this context; `agent_otel.core.run_visit` sets it.
of_execution: Callable[[], Mapping[str, str] | None] = dict


class Labels:
    """The labels that the settings name, and the sets of values that have occurred. Each set adds series."""

    def __init__(self, chosen: tuple[tuple[str, str | None], ...]) -> None:
        from opentelemetry import baggage  # noqa: PLC0415 - preload has it, where there are labels

        self._get_baggage = baggage.get_baggage
        self._chosen = chosen
        #: The values outside of any execution and without baggage.
        self.fixed = tuple(fixed or "" for _, fixed in chosen)
        self._sets = {self.fixed}

    def now(self) -> tuple[str, ...]:
        """Return the values in this context; a label without a value is empty."""
        given = of_execution() or {}
        values = tuple(self._value(name, given, fixed) for name, fixed in self._chosen)
        if values in self._sets:
            return values
        if len(self._sets) > MOST_SETS:
            errors.warn_once(
                "limit of labels",
                f"AGENT_OTEL_LABELS has more than {MOST_SETS} sets of values; further ones are counted as "
                f"{semconv.OTHER!r}.",
            )
            return tuple(
                value if value == fixed else semconv.OTHER for value, fixed in zip(values, self.fixed, strict=True)
            )
        self._sets.add(values)
        return values

    def _value(self, name: str, given: Mapping[str, str], fixed: str | None) -> str:
        """Return a label's value: of the execution, else of the baggage (of any sender), else the fixed value."""
        value: object = given.get(name)
        if value is None:
            value = self._get_baggage(name)
        if type(value) is not str:
            return fixed or ""
        text = clean(value)
        if text.isprintable():
            return text
        return "".join(one if one.isprintable() else " " if one.isspace() else "?" for one in text)
