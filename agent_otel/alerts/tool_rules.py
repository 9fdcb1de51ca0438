"""Recorded series and alerts about tools: sizes, truncations and failures of their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_otel import semconv
from agent_otel.alerts import promql
from agent_otel.alerts.rule_types import (
    BYTES,
    COUNT,
    CRITICAL,
    IN_JOB,
    INFO,
    SHARE,
    TOOL,
    WARNING,
    Alert,
    Recording,
    on_tools,
)
from agent_otel.semconv.types import prometheus_label

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.alerts.promql import Query

_NAME: Final = semconv.GEN_AI_TOOL_NAME
_NOT_ASKED_FOR: Final = f'{semconv.LAYER}!="{semconv.LAYER_REMEDY}"'
_NO_PAGE: Final = f'{semconv.REASON}!="{semconv.PAGE}"'
_CUT_JSON: Final = f'{semconv.REASON}="{semconv.CUT_JSON}"'
_WARN: Final = f'{semconv.THRESHOLD}="{semconv.WARN}"'
_KNOWN: Final = f'{semconv.LAYER}!="{semconv.DEFAULT}"'
_FAILED: Final = f'{prometheus_label(semconv.ERROR_TYPE)}!=""'


_CALLS: Final = "gen_ai_execute_tool"
_RESULTS: Final = "agent_otel_tool_results"
_CUTS: Final = f"{_RESULTS}_truncated"
_SIZE: Final = semconv.RESULT_SIZE.exposed_name


def results(query: Query, window: str) -> Recording:
    """Record the number of results that a tool returned."""
    return query.events(_RESULTS, query.part(semconv.RESULT_SIZE, "count"), window, _NAME)


def large(query: Query, window: str) -> Recording:
    """Record the number of a tool's results above the warn size."""
    return query.events(f"{_RESULTS}_large", query.counter(semconv.RESULTS_LARGE, _WARN), window, _NAME)


def over_known_budgets(query: Query, window: str) -> Recording:
    """Record the number of a tool's results above the budget of a layer whose limit is known."""
    return query.events(f"{_RESULTS}_over_budget", query.counter(semconv.RESULTS_OVER_BUDGET, _KNOWN), window, _NAME)


def cuts(query: Query, window: str) -> Recording:
    """Record the number of a tool's results that a layer other than a remedy truncated."""
    counter = query.counter(semconv.RESULTS_TRUNCATED, _NOT_ASKED_FOR)
    return query.events(f"{_CUTS}_without_remedies", counter, window, _NAME)


def p95(query: Query) -> Recording:
    """Record the 95th percentile of a tool's result size; no series without results."""
    window = query.thresholds.p95_window
    buckets = promql.total(
        query.labels(_NAME, promql.LE), f"rate({query.part(semconv.RESULT_SIZE, 'bucket')}[{window}])"
    )
    return Recording(query.record(_SIZE, f"p95_{window}", _NAME), f"{promql.quantile(0.95, buckets)} > 0")


def p95_before(query: Query) -> Recording:
    """Record the 95th percentile to compare with: of last week, else of yesterday, else of the first hours.

    A time with too few results is skipped, because its percentile means little.
    """
    chosen = query.thresholds
    size, every, step = p95(query), results(query, chosen.p95_window), chosen.p95_window
    times = (
        (chosen.grown_baseline_window, chosen.grown_baseline_offset),
        (chosen.grown_baseline_window, chosen.grown_yesterday_offset),
        (chosen.grown_first_window, chosen.grown_first_offset),
    )
    highest = (
        f"  max_over_time({size}[{window}] offset {ago})\n"
        f"    and sum_over_time({every}[{window}:{step}] offset {ago}) >= {chosen.grown_min_results}"
        for window, ago in times
    )
    return Recording(query.record(_SIZE, f"p95_{step}_before", _NAME), "\nor\n".join(highest), (size, every))


def json_cut_share(query: Query) -> Recording:
    """Record the share of a tool's results whose JSON a layer other than a remedy cut."""
    window = query.thresholds.json_cut_window
    counter = query.counter(semconv.RESULTS_TRUNCATED, _CUT_JSON, _NOT_ASKED_FOR)
    cut = query.events(f"{_RESULTS}_json_cut", counter, window, _NAME)
    return _share(query, f"{_RESULTS}_json_cut", cut, results(query, window), window)


def large_share(query: Query) -> Recording:
    """Record the share of a tool's results above the warn size."""
    window = query.thresholds.mostly_large_window
    return _share(query, f"{_RESULTS}_large", large(query, window), results(query, window), window)


def truncated_share(query: Query) -> Recording:
    """Record the share of a tool's results that any layer truncated."""
    window = query.thresholds.truncated_window
    cut = query.counted(semconv.RESULTS_TRUNCATED, window, _NAME)
    return _share(query, _CUTS, cut, results(query, window), window)


def calls(query: Query) -> Recording:
    """Record the number of calls of a tool."""
    counter = query.part(semconv.TOOL_DURATION, "count")
    return query.events(f"{_CALLS}_calls", counter, query.thresholds.errors_window, _NAME)


def error_share(query: Query) -> Recording:
    """Record the share of a tool's failed calls; 0 before the first failure, which has no series yet."""
    every, window = calls(query), query.thresholds.errors_window
    failed = query.events(f"{_CALLS}_errors", query.part(semconv.TOOL_DURATION, "count", _FAILED), window, _NAME)
    name = query.record(f"{_CALLS}_errors", f"ratio{window}", _NAME)
    return Recording(name, promql.share_or_none(failed, every), (failed, every))


def _share(query: Query, name: str, part: Recording, whole: Recording, window: str) -> Recording:
    return Recording(query.record(name, f"ratio{window}", _NAME), promql.share(part, whole), (part, whole))


def too_large(query: Query) -> Alert:
    """Return an informational alert: single large results are normal for tools that search, fetch or read."""
    chosen = query.thresholds
    window = chosen.large_results_window
    many = large(query, window)
    return Alert(
        "AgentToolResultTooLarge",
        INFO,
        promql.at_least(many, chosen.large_results_min),
        reads=(many,),
        summary=f"Tool {TOOL} returned large results",
        description=f"Results of tool {TOOL}{IN_JOB} above AGENT_OTEL_LARGE_RESULT_BYTES within {window}: {COUNT}. "
        "Every later turn carries them. Give the tool a limit or pages.",
        dashboard=on_tools(),
        keep=chosen.keep_firing,
    )


def over_budget(query: Query) -> Alert:
    """Return a warning: a layer behind the tool cuts the result, or refuses the state with it in a later turn."""
    chosen = query.thresholds
    window = chosen.over_budget_window
    many = over_known_budgets(query, window)
    return Alert(
        "AgentToolResultOverBudget",
        WARNING,
        promql.at_least(many, 1),
        reads=(many,),
        summary=f"Results of tool {TOOL} are larger than the layers behind it accept",
        description=f"Results of tool {TOOL}{IN_JOB} above their budget within {window}: {COUNT}. The budget is that "
        "of the weakest layer: the room left in the runtime's payload or in the model's context window, the "
        f"framework's limit, or the ceiling. The layer is `{semconv.RESULT_BUDGET_LAYER}` on the tool's span.",
        dashboard=on_tools(),
        keep=chosen.keep_firing,
    )


def mostly_large(query: Query) -> Alert:
    """Return an informational alert: large results are no fault, and alerts on payloads page when a run is at risk."""
    chosen = query.thresholds
    window = chosen.mostly_large_window
    share, every = large_share(query), results(query, window)
    return Alert(
        "AgentToolResultsMostlyLarge",
        INFO,
        f"{share} > {chosen.mostly_large_ratio}\nand {promql.at_least(every, chosen.mostly_large_min_results)}",
        reads=(share, every),
        summary=f"Many results of tool {TOOL} are large",
        description=f"{SHARE} of the results of tool {TOOL}{IN_JOB} were above AGENT_OTEL_LARGE_RESULT_BYTES in the "
        f"last {window}. Every later turn carries them. Give the tool a limit or pages.",
        dashboard=on_tools(),
        wait=chosen.mostly_large_for,
    )


def truncation_high(query: Query) -> Alert:
    """Return an informational alert: an agent may work well on previews, and a ceiling truncates on purpose."""
    chosen = query.thresholds
    share, every = truncated_share(query), results(query, chosen.truncated_window)
    return Alert(
        "AgentToolTruncationHigh",
        INFO,
        f"{share} > {chosen.truncated_ratio}\nand {promql.at_least(every, chosen.truncated_min_results)}",
        reads=(share, every),
        summary=f"Most results of tool {TOOL} are truncated",
        description=f"{SHARE} of the results of tool {TOOL}{IN_JOB} were truncated in the last "
        f"{chosen.truncated_window}: the model works on fragments. The dashboard shows the layer that truncates.",
        dashboard=on_tools(),
        wait=chosen.truncated_for,
    )


def json_truncated(query: Query) -> Alert:
    """Return a critical alert: each answer of the agent is built on a fragment of JSON, and no call fails."""
    chosen = query.thresholds
    window = chosen.json_cut_window
    share, every = json_cut_share(query), results(query, window)
    return Alert(
        "AgentToolJsonTruncated",
        CRITICAL,
        f"{share} >= {chosen.json_cut_ratio}\nand {promql.at_least(every, chosen.json_cut_min_results)}",
        reads=(share, every),
        summary=f"The JSON of tool {TOOL} is always cut",
        description=f"{SHARE} of the results of tool {TOOL}{IN_JOB} in the last {window} are JSON that ends in the "
        "middle. The model answers from fragments. Give the tool pages, or raise the limit of the layer that cuts.",
        dashboard=on_tools(),
        wait=chosen.json_cut_for,
    )


def answers_incomplete(query: Query) -> Alert:
    """Return a critical alert: the model has answered from a part of a result, and nothing else shows it."""
    chosen = query.thresholds
    window = chosen.answers_incomplete_window
    counter = query.counter(semconv.ANSWERS_INCOMPLETE, _NO_PAGE)
    answers = query.events("agent_otel_answers_incomplete", counter, window, _NAME)
    return Alert(
        "AgentAnswersIncomplete",
        CRITICAL,
        promql.at_least(answers, chosen.answers_incomplete_min),
        reads=(answers,),
        summary=f"Answers are built on a part of a result of tool {TOOL}",
        description=f"Final answers{IN_JOB} within {window} that are built on a truncated, withheld or undelivered "
        f"result of tool {TOOL}: {COUNT}. No later call got the rest. The traces name the calls.",
        dashboard=on_tools(),
        keep=chosen.keep_firing,
    )


def first_truncation(query: Query) -> Alert:
    """Return a warning: answers may be worse without an error, but no run is stuck."""
    chosen = query.thresholds
    window, history = chosen.first_cut_window, chosen.first_cut_history
    cut, every = cuts(query, window), results(query, window)
    cut_before = Recording(
        query.record(f"{_CUTS}_without_remedies", f"max{history}_offset{window}", _NAME),
        f"max_over_time({cut}[{history}] offset {window}) > 0",
        (cut,),
    )
    every_before = Recording(
        query.record(_RESULTS, f"increase{history}_offset{window}", _NAME),
        f"sum_over_time({every}[{history}:{window}] offset {window})",
        (every,),
    )
    return Alert(
        "AgentToolFirstTruncation",
        WARNING,
        f"{cut} > 0 unless {cut_before}\nand {promql.at_least(every_before, chosen.first_cut_min_results)}",
        reads=(cut_before, every_before),
        summary=f"Results of tool {TOOL} are truncated for the first time in {history}",
        description=f"Results of tool {TOOL}{IN_JOB} truncated within {window}: {COUNT}; none in the {history} before. "
        "The model sees only a part of them. Check for larger results, or for an update of the tool or its framework.",
        dashboard=on_tools(),
        keep=chosen.keep_firing,
    )


def grown(query: Query) -> Alert:
    """Return a warning: there is time to act, and an alert on the payload pages when a run is at risk."""
    chosen = query.thresholds
    size, every, before = p95(query), results(query, chosen.p95_window), p95_before(query)
    return Alert(
        "AgentToolResultGrown",
        WARNING,
        f"{size} > {chosen.grown_factor:g} * {before} and {size} > {chosen.grown_min_bytes}\n"
        f"and {promql.at_least(every, chosen.grown_min_results)}",
        reads=(size, every, before),
        summary=f"Results of tool {TOOL} are more than {chosen.grown_factor:g} times as large as before",
        description=f"The 95th percentile of the result size of tool {TOOL}{IN_JOB} is {BYTES} over "
        f"{chosen.p95_window}, more than {chosen.grown_factor:g} times the highest around this hour last week; for a "
        "newer tool, of yesterday or of its first hours. Look for new data, a new field or a query without a limit.",
        dashboard=on_tools(),
        wait=chosen.grown_for,
    )


def error_rate(query: Query) -> Alert:
    """Return a warning: agents continue after the errors."""
    chosen = query.thresholds
    share, every = error_share(query), calls(query)
    return Alert(
        "AgentToolErrorRateHigh",
        WARNING,
        f"{share} > {chosen.errors_ratio}\nand {promql.at_least(every, chosen.errors_min_calls)}",
        reads=(share, every),
        summary=f"Many calls of tool {TOOL} fail",
        description=f"{SHARE} of the calls of tool {TOOL}{IN_JOB} failed in the last {chosen.errors_window}. "
        "The dashboard lists the errors by type.",
        dashboard=on_tools(),
        wait=chosen.errors_for,
    )


ALERTS: Final[tuple[Callable[[Query], Alert], ...]] = (
    too_large,
    over_budget,
    mostly_large,
    truncation_high,
    grown,
    error_rate,
)
#: Alerts on single truncations.
TRUNCATIONS: Final[tuple[Callable[[Query], Alert], ...]] = (json_truncated, answers_incomplete, first_truncation)
