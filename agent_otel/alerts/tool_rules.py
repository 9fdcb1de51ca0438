"""Recorded series and alerts about tools: sizes, truncations and failures of their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_otel import semconv
from agent_otel.alerts import promql
from agent_otel.alerts.rule_types import BYTES, COUNT, IN_JOB, INFO, SHARE, TOOL, WARNING, Alert, Recording, on_tools

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.alerts.promql import Query

_NAME: Final = semconv.GEN_AI_TOOL_NAME
# A suspected truncation is not certain, and a cleared result was delivered whole before.
_CUT: Final = f'{semconv.REASON}!~"{semconv.SUSPECTED}|{semconv.CLEARED}"'
_NOT_ASKED_FOR: Final = f'{semconv.LAYER}!="{semconv.LAYER_REMEDY}"'
_WARN: Final = f'{semconv.THRESHOLD}="{semconv.WARN}"'
_FAILED: Final = f'{promql.label(semconv.ERROR_TYPE)}!=""'


def _p95_record(query: Query) -> str:
    return f"agent_otel:tool_result_size_bytes:p95_{query.thresholds.p95_window}"


def _truncated_record(query: Query) -> str:
    return f"agent_otel:tool_results_truncated:ratio_{query.thresholds.truncated_window}"


def _results_record(query: Query) -> str:
    return f"agent_otel:tool_results:increase_{query.thresholds.first_cut_window}"


def _cuts_record(query: Query) -> str:
    return f"agent_otel:tool_results_truncated:increase_{query.thresholds.first_cut_window}"


def _errors_record(query: Query) -> str:
    return f"agent_otel:execute_tool:error_ratio_{query.thresholds.errors_window}"


def p95(query: Query) -> Recording:
    """Record the 95th percentile of a tool's result size; no series without results."""
    window = query.thresholds.p95_window
    bucket = query.part(semconv.RESULT_SIZE, "bucket")
    buckets = promql.total(query.by(_NAME, promql.LE), f"rate({bucket}[{window}])")
    return Recording(
        _p95_record(query),
        f"histogram_quantile(0.95,\n{promql.indented(buckets)}\n) > 0",
    )


def truncated_share(query: Query) -> Recording:
    """Record the share of a tool's results that any layer truncated."""
    window = query.thresholds.truncated_window
    cut = query.events(query.counter(semconv.RESULTS_TRUNCATED, _CUT), window, _NAME)
    return Recording(_truncated_record(query), promql.share(cut, _results(query, window)))


def results(query: Query) -> Recording:
    """Record how many results a tool returned; an alert sums a week of it."""
    window = query.thresholds.first_cut_window
    return Recording(_results_record(query), _results(query, window))


def cuts(query: Query) -> Recording:
    """Record how many of a tool's results any layer but a remedy truncated; an alert reads a week of it."""
    window = query.thresholds.first_cut_window
    counter = query.counter(semconv.RESULTS_TRUNCATED, _CUT, _NOT_ASKED_FOR)
    return Recording(_cuts_record(query), query.events(counter, window, _NAME))


def error_share(query: Query) -> Recording:
    """Record the share of a tool's failed calls; 0 before the first failure, which has no series yet."""
    window = query.thresholds.errors_window
    every = _calls(query, window)
    failed = query.events(query.part(semconv.TOOL_DURATION, "count", _FAILED), window, _NAME)
    none = f"{every} * 0"
    part = f"(\n{promql.indented(failed)}\n  or\n{promql.indented(none)}\n)"
    return Recording(_errors_record(query), promql.share(part, every))


def _results(query: Query, window: str) -> str:
    return query.events(query.part(semconv.RESULT_SIZE, "count"), window, _NAME)


def _calls(query: Query, window: str) -> str:
    return query.events(query.part(semconv.TOOL_DURATION, "count"), window, _NAME)


def too_large(query: Query) -> Alert:
    """Return an informational alert: single large results are normal for tools that search, fetch or read."""
    chosen = query.thresholds
    window = chosen.large_results_window
    large = query.events(query.counter(semconv.RESULTS_LARGE, _WARN), window, _NAME)
    return Alert(
        "AgentToolResultTooLarge",
        INFO,
        promql.at_least(large, chosen.large_results_min),
        summary=f"Tool {TOOL} returned large results",
        description=f"Results of tool {TOOL}{IN_JOB} above AGENT_OTEL_LARGE_RESULT_BYTES within {window}: {COUNT}. "
        "Every later turn carries them. Give the tool a limit or pages.",
        dashboard=on_tools(),
        keep=chosen.keep_firing,
    )


def mostly_large(query: Query) -> Alert:
    """Return a warning: the tool's results became too large; an alert on the payload pages when a run is at risk."""
    chosen = query.thresholds
    window = chosen.mostly_large_window
    large = query.events(query.counter(semconv.RESULTS_LARGE, _WARN), window, _NAME)
    share = promql.share(large, _results(query, window))
    enough = promql.at_least(_results(query, window), chosen.mostly_large_min_results)
    return Alert(
        "AgentToolResultsMostlyLarge",
        WARNING,
        f"{share} > {chosen.mostly_large_ratio}\nand\n{enough}",
        summary=f"Many results of tool {TOOL} are large",
        description=f"{SHARE} of the results of tool {TOOL}{IN_JOB} were above AGENT_OTEL_LARGE_RESULT_BYTES in the "
        f"last {window}. Every later turn carries them. Give the tool a limit or pages.",
        dashboard=on_tools(),
        wait=chosen.mostly_large_for,
    )


def truncation_high(query: Query) -> Alert:
    """Return an informational alert: an agent may work well on previews, and a ceiling truncates on purpose."""
    chosen = query.thresholds
    enough = promql.at_least(_results(query, chosen.truncated_window), chosen.truncated_min_results)
    return Alert(
        "AgentToolTruncationHigh",
        INFO,
        f"{_truncated_record(query)} > {chosen.truncated_ratio}\nand\n{enough}",
        summary=f"Most results of tool {TOOL} are truncated",
        description=f"{SHARE} of the results of tool {TOOL}{IN_JOB} were truncated in the last "
        f"{chosen.truncated_window}: the model works on fragments. The dashboard shows the layer that truncates.",
        dashboard=on_tools(),
        wait=chosen.truncated_for,
    )


def first_truncation(query: Query) -> Alert:
    """Return a warning: answers may be worse without an error, but no run is stuck."""
    chosen = query.thresholds
    window, history = chosen.first_cut_window, chosen.first_cut_history
    known = f"[{history}:{window}] offset {window}"
    return Alert(
        "AgentToolFirstTruncation",
        WARNING,
        f"{_cuts_record(query)} > 0\n"
        f"unless\nmax_over_time({_cuts_record(query)}[{history}] offset {window}) > 0\n"
        f"and\nround(sum_over_time({_results_record(query)}{known})) >= {chosen.first_cut_min_results}",
        summary=f"Results of tool {TOOL} are truncated for the first time in {history}",
        description=f"Results of tool {TOOL}{IN_JOB} truncated within {window}: {COUNT}; none in the {history} before. "
        "The model sees only a part of them. Check for larger results, or for an update of the tool or its framework.",
        dashboard=on_tools(),
        keep=chosen.keep_firing,
    )


def grown(query: Query) -> Alert:
    """Return a warning: there is time to act, and an alert on the payload pages when a run is at risk."""
    chosen = query.thresholds
    record = _p95_record(query)
    before = f"max_over_time({record}[{chosen.grown_baseline_window}] offset {chosen.grown_baseline_offset})"
    enough = promql.at_least(_results(query, chosen.p95_window), chosen.grown_min_results)
    return Alert(
        "AgentToolResultGrown",
        WARNING,
        f"{record} > {chosen.grown_factor:g} * {before}\nand\n{record} > {chosen.grown_min_bytes}\nand\n{enough}",
        summary=f"Results of tool {TOOL} are more than {chosen.grown_factor:g} times as large as last week",
        description=f"The 95th percentile of the result size of tool {TOOL}{IN_JOB} is {BYTES} over "
        f"{chosen.p95_window}, more than {chosen.grown_factor:g} times the highest of the "
        f"{chosen.grown_baseline_window} that ended {chosen.grown_baseline_offset} ago. Look for new data, a new field "
        "or a query without a limit.",
        dashboard=on_tools(),
        wait=chosen.grown_for,
    )


def error_rate(query: Query) -> Alert:
    """Return a warning: agents continue after the errors."""
    chosen = query.thresholds
    enough = promql.at_least(_calls(query, chosen.errors_window), chosen.errors_min_calls)
    return Alert(
        "AgentToolErrorRateHigh",
        WARNING,
        f"{_errors_record(query)} > {chosen.errors_ratio}\nand\n{enough}",
        summary=f"Many calls of tool {TOOL} fail",
        description=f"{SHARE} of the calls of tool {TOOL}{IN_JOB} failed in the last {chosen.errors_window}. "
        "The dashboard lists the errors by type.",
        dashboard=on_tools(),
        wait=chosen.errors_for,
    )


RECORDINGS: Final[tuple[Callable[[Query], Recording], ...]] = (p95, truncated_share, results, cuts, error_share)
ALERTS: Final[tuple[Callable[[Query], Alert], ...]] = (
    too_large,
    mostly_large,
    truncation_high,
    first_truncation,
    grown,
    error_rate,
)
