"""Recorded series and alerts about tools: sizes of their results, cuts and failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_otel import semconv
from agent_otel.alerts import promql
from agent_otel.alerts.rule_types import BYTES, COUNT, IN_JOB, INFO, SHARE, TOOL, WARNING, Alert, Recording, on_tools

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.alerts.promql import Query

_NAME: Final = semconv.GEN_AI_TOOL_NAME
# A suspicion is no cut, and what is cleared later was delivered whole.
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
    """The 95th percentile of a tool's result size; nothing where it gave no results."""
    window = query.thresholds.p95_window
    bucket = query.part(semconv.RESULT_SIZE, "bucket")
    buckets = promql.total(query.by(_NAME, promql.LE), f"rate({bucket}[{window}])")
    return Recording(
        _p95_record(query),
        f"histogram_quantile(0.95,\n{promql.indented(buckets)}\n) > 0",
    )


def truncated_share(query: Query) -> Recording:
    """Which share of a tool's results was cut, by whomever."""
    window = query.thresholds.truncated_window
    cut = query.events(query.counter(semconv.RESULTS_TRUNCATED, _CUT), window, _NAME)
    return Recording(_truncated_record(query), promql.share(cut, _results(query, window)))


def results(query: Query) -> Recording:
    """How many results a tool gave; a week of it is added up."""
    window = query.thresholds.first_cut_window
    return Recording(_results_record(query), _results(query, window))


def cuts(query: Query) -> Recording:
    """How many of a tool's results were cut by what nobody had switched on here; a week of it is looked through."""
    window = query.thresholds.first_cut_window
    counter = query.counter(semconv.RESULTS_TRUNCATED, _CUT, _NOT_ASKED_FOR)
    return Recording(_cuts_record(query), query.events(counter, window, _NAME))


def error_share(query: Query) -> Recording:
    """Which share of a tool's calls failed. There is no series of failures before the first, and so no 0 of them."""
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
    """For information: a large result now and then is ordinary for tools that search, fetch or read."""
    chosen = query.thresholds
    window = chosen.large_results_window
    large = query.events(query.counter(semconv.RESULTS_LARGE, _WARN), window, _NAME)
    return Alert(
        "AgentToolResultTooLarge",
        INFO,
        promql.at_least(large, chosen.large_results_min),
        summary=f"Tool {TOOL} gave large results",
        description=f"Results of tool {TOOL}{IN_JOB} above AGENT_OTEL_LARGE_RESULT_BYTES within {window}: {COUNT}.",
        dashboard=on_tools(),
        keep=chosen.keep_firing,
    )


def mostly_large(query: Query) -> Alert:
    """A warning: the tool has gone bad, but what breaks by it, a payload, has a page of its own."""
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
        f"last {window}.",
        dashboard=on_tools(),
        wait=chosen.mostly_large_for,
    )


def truncation_high(query: Query) -> Alert:
    """For information: an agent can do well on previews, and who switched a ceiling on knows of it."""
    chosen = query.thresholds
    enough = promql.at_least(_results(query, chosen.truncated_window), chosen.truncated_min_results)
    return Alert(
        "AgentToolTruncationHigh",
        INFO,
        f"{_truncated_record(query)} > {chosen.truncated_ratio}\nand\n{enough}",
        summary=f"Most results of tool {TOOL} are cut",
        description=f"{SHARE} of the results of tool {TOOL}{IN_JOB} were cut in the last {chosen.truncated_window}: "
        "the model works on fragments.",
        dashboard=on_tools(),
        wait=chosen.truncated_for,
    )


def first_truncation(query: Query) -> Alert:
    """A warning: answers have changed for the worse and no error says so, but nothing stands still."""
    chosen = query.thresholds
    window, history = chosen.first_cut_window, chosen.first_cut_history
    known = f"[{history}:{window}] offset {window}"
    return Alert(
        "AgentToolFirstTruncation",
        WARNING,
        f"{_cuts_record(query)} > 0\n"
        f"unless\nmax_over_time({_cuts_record(query)}[{history}] offset {window}) > 0\n"
        f"and\nround(sum_over_time({_results_record(query)}{known})) >= {chosen.first_cut_min_results}",
        summary=f"Results of tool {TOOL} are cut, which they never were",
        description=f"Results of tool {TOOL}{IN_JOB} cut within {window}: {COUNT}. None was in {history} before.",
        dashboard=on_tools(),
        keep=chosen.keep_firing,
    )


def grown(query: Query) -> Alert:
    """A warning: there is time, and the page comes with the payload."""
    chosen = query.thresholds
    record = _p95_record(query)
    before = f"max_over_time({record}[{chosen.grown_baseline_window}] offset {chosen.grown_baseline_offset})"
    enough = promql.at_least(_results(query, chosen.p95_window), chosen.grown_min_results)
    return Alert(
        "AgentToolResultGrown",
        WARNING,
        f"{record} > {chosen.grown_factor:g} * {before}\nand\n{record} > {chosen.grown_min_bytes}\nand\n{enough}",
        summary=f"Results of tool {TOOL} have grown more than {chosen.grown_factor:g} times",
        description=f"The 95th percentile of the results of tool {TOOL}{IN_JOB} is {BYTES} over {chosen.p95_window}, "
        f"more than {chosen.grown_factor:g} times the highest of {chosen.grown_baseline_window} that ended "
        f"{chosen.grown_baseline_offset} ago.",
        dashboard=on_tools(),
        wait=chosen.grown_for,
    )


def error_rate(query: Query) -> Alert:
    """A warning: agents go on with the errors that they are given."""
    chosen = query.thresholds
    enough = promql.at_least(_calls(query, chosen.errors_window), chosen.errors_min_calls)
    return Alert(
        "AgentToolErrorRateHigh",
        WARNING,
        f"{_errors_record(query)} > {chosen.errors_ratio}\nand\n{enough}",
        summary=f"Calls of tool {TOOL} fail",
        description=f"{SHARE} of the calls of tool {TOOL}{IN_JOB} failed in the last {chosen.errors_window}.",
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
