"""The rules as data: recorded series and alerts, in the groups of the rule files.

The comment of an alert says why it has its severity. In a text, ``<name>`` is the value of a threshold, and ``<name%>``
a ratio as a percentage.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_otel import semconv
from agent_otel.alerts import promql
from agent_otel.alerts.options import seconds
from agent_otel.alerts.promql import JOB, Events, Query, Recording
from agent_otel.semconv.types import prometheus_label

if TYPE_CHECKING:
    from collections.abc import Callable

_TOOL: Final = semconv.GEN_AI_TOOL_NAME
_WORKFLOW: Final = (semconv.RUNTIME, semconv.WORKFLOW_NAME)
_DIRECTED: Final = (*_WORKFLOW, semconv.DIRECTION)
_BOUNDARY: Final = (*_WORKFLOW, semconv.ACTIVITY, semconv.DIRECTION)
_MODEL: Final = (semconv.REQUEST_MODEL,)
_AGENT: Final = (semconv.AGENT_NAME,)

# daprd's own histograms (1.17.7 and newer), payload ÷ --max-body-size, and their labels: dapr/dapr,
# pkg/diagnostics/workflow_monitoring.go.
DAPR_WORKFLOW: Final = "dapr_runtime_workflow_payload_size_ratio"
DAPR_ACTIVITY: Final = "dapr_runtime_workflow_activity_payload_size_ratio"
DAPR_LABELS: Final = ("app_id", "namespace", "workflow_name", "activity_name")

#: Results of operations on the claim store: the store failed, or it answered without a result
#: (agent_otel/remedies/claim_check/envelope.py).
STORE_FAILS: Final = ("error", "timeout", "open")
NOT_RESOLVED: Final = ("not_found", "expired", "denied", "corrupt")
_MARK_SECONDS: Final = 300  # a series stays visible for this long after its last sample


@dataclass(frozen=True)
class Alert:
    """An alert; its texts are Prometheus's templates. ``dashboard`` is a path in Grafana, with labels as variables."""

    name: str
    severity: str
    expr: str
    summary: str
    description: str
    dashboard: str
    #: Time that the expression has to be true before the alert fires (``for``).
    wait: str = ""
    #: Time that the alert stays after its expression is false (``keep_firing_for``), so that single events do not flap.
    keep: str = ""
    #: Recorded series that ``expr`` reads.
    reads: tuple[Recording, ...] = ()


# --- templates ---------------------------------------------------------------------------------------------------


def _value(name: str) -> str:
    """Return the template of a label's value, by the attribute's name."""
    return f"{{{{ $labels.{prometheus_label(name)} }}}}"


def _of(name: str, words: str) -> str:
    """Return the template of a part of a sentence that is left out where a series has no such label."""
    return f"{{{{ with $labels.{prometheus_label(name)} }}}} {words}{{{{ end }}}}"


def _link(uid: str, **variables: str) -> str:
    """Return a path to a dashboard; ``variables`` maps each variable to the label whose value it takes."""
    query = (f"var-{name}={{{{ $labels.{prometheus_label(of)} | urlquery }}}}" for name, of in variables.items())
    return f"/d/{uid}?{'&'.join(query)}"


_IN_JOB: Final = _of(JOB, "in job {{ . }}")  # some series have no job
_OF_ACTIVITY: Final = _of(semconv.ACTIVITY, "of activity {{ . }}")
_OF_AGENT: Final = _of(semconv.AGENT_NAME, "of agent {{ . }}")
_THE_TOOL: Final = f"tool {_value(_TOOL)}"
_THE_MODEL: Final = f"model {_value(semconv.REQUEST_MODEL)}"
_THE_WORKFLOW: Final = f"workflow {_value(semconv.WORKFLOW_NAME)}"
_WHERE_IT_RAN: Final = f"of {_THE_WORKFLOW} on {_value(semconv.RUNTIME)}{_IN_JOB}"
_DIRECTION: Final = _value(semconv.DIRECTION)
_COUNT: Final = '{{ $value | printf "%.0f" }}'
_SHARE: Final = "{{ $value | humanizePercentage }}"
_BYTES: Final = "{{ $value | humanize1024 }}B"

_ON_TOOLS: Final = _link("agent-otel-tools", job=JOB, tool=_TOOL)
_ON_PAYLOAD: Final = _link("agent-otel-payload", job=JOB, workflow=semconv.WORKFLOW_NAME)
_ON_EXECUTIONS: Final = _link("agent-otel-executions", job=JOB)
_ON_HEALTH: Final = _link("agent-otel-health", job=JOB)

# --- events and recorded series ----------------------------------------------------------------------------------

_NO_REMEDY: Final = f'{semconv.LAYER}!="{semconv.LAYER_REMEDY}"'
_RESULTS: Final = Events(semconv.RESULT_SIZE, name="agent_otel_tool_results", part="count")
_LARGE: Final = Events(semconv.RESULTS_LARGE, matchers=(f'{semconv.THRESHOLD}="{semconv.WARN}"',))
_OVER_BUDGET: Final = Events(semconv.RESULTS_OVER_BUDGET, matchers=(f'{semconv.LAYER}!="{semconv.DEFAULT}"',))
_CUT: Final = Events(semconv.RESULTS_TRUNCATED)
#: Without results that a remedy cut on purpose.
_CUTS: Final = Events(
    semconv.RESULTS_TRUNCATED, matchers=(_NO_REMEDY,), name="agent_otel_tool_results_truncated_without_remedies"
)
_JSON_CUTS: Final = Events(
    semconv.RESULTS_TRUNCATED,
    matchers=(f'{semconv.REASON}="{semconv.CUT_JSON}"', _NO_REMEDY),
    name="agent_otel_tool_results_json_cut",
)
_ANSWERS: Final = Events(semconv.ANSWERS_INCOMPLETE, matchers=(f'{semconv.REASON}!="{semconv.PAGE}"',))
_CALLS: Final = Events(semconv.TOOL_DURATION, name="gen_ai_execute_tool_calls", part="count")
_ERRORS: Final = Events(
    semconv.TOOL_DURATION,
    matchers=(f'{prometheus_label(semconv.ERROR_TYPE)}!=""',),
    name="gen_ai_execute_tool_errors",
    part="count",
)
#: Calls, those with refused arguments included.
_ALL_CALLS: Final = Events(semconv.ARGS_SIZE, name="agent_otel_tool_calls", part="count")
_REFUSED: Final = Events(semconv.INVALID_ARGUMENTS)
_CHANGES: Final = Events(semconv.SCHEMA_CHANGES)
_OPERATIONS: Final = Events(semconv.CLAIM_CHECK_OPERATIONS, (semconv.OPERATION,))
_FAILED: Final = Events(
    semconv.CLAIM_CHECK_OPERATIONS,
    (semconv.OPERATION,),
    (f'{semconv.RESULT}=~"{"|".join(STORE_FAILS)}"',),
    name="agent_otel_claim_check_failures",
)
_UNRESOLVED: Final = Events(
    semconv.CLAIM_CHECK_OPERATIONS,
    (semconv.RESULT,),
    (f'{semconv.RESULT}=~"{"|".join(NOT_RESOLVED)}"',),
    name="agent_otel_claim_check_unresolved",
)


def _p95(query: Query) -> Recording:
    """Record the 95th percentile of a tool's result size; no series without results."""
    window, size = query.thresholds.p95_window, semconv.RESULT_SIZE
    buckets = promql.total(query.labels(_TOOL, promql.LE), f"rate({query.series(size, part='bucket')}[{window}])")
    name = query.record(size.exposed_name, f"p95_{window}", _TOOL)
    return Recording(name, f"{promql.quantile(0.95, buckets)} > 0")


def _p95_before(query: Query) -> Recording:
    """Record the 95th percentile to compare with: of last week, else of yesterday, else of the first hours.

    A time with too few results is skipped, because its percentile means little.
    """
    chosen = query.thresholds
    size, step = _p95(query), chosen.p95_window
    every = query.count(_RESULTS, step)
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
    name = query.record(semconv.RESULT_SIZE.exposed_name, f"p95_{step}_before", _TOOL)
    return Recording(name, "\nor\n".join(highest), (size, every))


def _utilization(query: Query) -> Recording:
    """Record the utilization of the fullest payload, as the upper bound of its bucket."""
    bucket = query.series(semconv.UTILIZATION, part="bucket")
    return query.fullest(semconv.UTILIZATION.exposed_name, bucket, query.thresholds.payload_window, *_DIRECTED)


def _turns_left(query: Query) -> Recording:
    """Record how many turns the fullest payload has left at the average growth per turn; no series without growth.

    Of all directions, the one with the fewest free bytes counts.
    """
    used, window = _utilization(query), query.thresholds.growth_window
    capped = query.by(semconv.RUNTIME, semconv.DIRECTION)
    cap = f"min by ({capped}) ({query.series(semconv.PAYLOAD_CAP)})"
    free = f"clamp_min(1 - {used}, 0)\n* on ({capped}) group_left ()\n{cap}"
    grown, turns = (
        f"sum by ({query.by(*_WORKFLOW)}) (rate({query.series(semconv.PAYLOAD_GROWTH, part=part)}[{window}]))"
        for part in ("sum", "count")
    )
    least = f"min by ({query.by(*_WORKFLOW)}) (\n{promql.indented(free)}\n)"
    per_turn = promql.indented(f"{grown}\n/\n{turns}\n> 0")
    name = query.record("agent_otel_workflow_payload", "turns_left", *_WORKFLOW)
    return Recording(name, f"{least}\n/\n(\n{per_turn}\n)", (used,))


# --- conditions: an expression, and the recorded series that it reads --------------------------------------------


class Condition(NamedTuple):
    """The expression of an alert, and the recorded series that it reads."""

    expr: str
    reads: tuple[Recording, ...] = ()


def _counted(prefix: str, *events: Events) -> Callable[[Query], Condition]:
    """Return the condition for at least ``{prefix}_min`` events in ``{prefix}_window``, by default for any event."""

    def condition(query: Query) -> Condition:
        window, least = getattr(query.thresholds, f"{prefix}_window"), getattr(query.thresholds, f"{prefix}_min", 1)
        counts = tuple(query.count(each, window) for each in events)
        return Condition("\nor ".join(promql.at_least(count, least) for count in counts), counts)

    return condition


def _shared(  # noqa: PLR0913 - one for each difference
    prefix: str, events: Events, every: Events, *, least: str = "min_results", above: str = ">", or_none: bool = False
) -> Callable[[Query], Condition]:
    """Return the condition for a share of events above ``{prefix}_ratio``, of enough events in ``{prefix}_window``."""

    def condition(query: Query) -> Condition:
        window, ratio, number = (getattr(query.thresholds, f"{prefix}_{name}") for name in ("window", "ratio", least))
        share, whole = query.share(events, every, window, or_none=or_none), query.count(every, window)
        return Condition(f"{share} {above} {ratio}\nand {promql.at_least(whole, number)}", (share, whole))

    return condition


def _grown(query: Query) -> Condition:
    chosen = query.thresholds
    size, every, before = _p95(query), query.count(_RESULTS, chosen.p95_window), _p95_before(query)
    return Condition(
        f"{size} > {chosen.grown_factor:g} * {before} and {size} > {chosen.grown_min_bytes}\n"
        f"and {promql.at_least(every, chosen.grown_min_results)}",
        (size, every, before),
    )


def _first_truncation(query: Query) -> Condition:
    chosen = query.thresholds
    window, history = chosen.first_cut_window, chosen.first_cut_history
    cut, every = query.count(_CUTS, window), query.count(_RESULTS, window)
    cut_before = Recording(
        query.record(_CUTS.name, f"max{history}_offset{window}", _TOOL),
        f"max_over_time({cut}[{history}] offset {window}) > 0",
        (cut,),
    )
    every_before = Recording(
        query.record(_RESULTS.name, f"increase{history}_offset{window}", _TOOL),
        f"sum_over_time({every}[{history}:{window}] offset {window})",
        (every,),
    )
    expr = f"{cut} > 0 unless {cut_before}\nand {promql.at_least(every_before, chosen.first_cut_min_results)}"
    return Condition(expr, (cut_before, every_before))


def _arguments_invalid(query: Query) -> Condition:
    chosen = query.thresholds
    window, history = chosen.invalid_arguments_window, chosen.invalid_arguments_history
    share, every = query.share(_REFUSED, _ALL_CALLS, window, or_none=True), query.count(_ALL_CALLS, window)
    before = Recording(
        f"{share}_avg{history}_offset{window}", f"avg_over_time({share}[{history}] offset {window})", (share,)
    )
    return Condition(
        f"{share} > {chosen.invalid_arguments_ratio}\n"
        f"unless {share} <= {chosen.invalid_arguments_factor:g} * {before}\n"
        f"and {promql.at_least(every, chosen.invalid_arguments_min_calls)}",
        (share, before, every),
    )


def _schema_new(query: Query) -> Condition:
    chosen = query.thresholds
    window, by = chosen.schema_new_window, query.by(_TOOL, semconv.AGENT_NAME)
    changes, info = query.count(_CHANGES, window), query.series(semconv.DEFINITION_INFO)
    # The definitions in use, of all processes of a job: a deployment replaces these.
    all_labels = (_TOOL, semconv.AGENT_NAME, semconv.FINGERPRINT)
    used = Recording(
        query.record("agent_otel_tool_definitions", "used", *all_labels), f"group by ({query.by(*all_labels)}) ({info})"
    )
    before = f"last_over_time({used}[{chosen.schema_new_history}] offset {window})"
    return Condition(
        f"count by ({query.by(_TOOL)}) (\n"
        f"  last_over_time({used}[{window}])\n"
        f"  unless {before}\n"
        f"  and on ({by})\n"
        f"  group by ({by}) ({before})\n"
        f")\nunless {changes} > 0",
        (used, changes),
    )


def _near_cap(query: Query) -> Condition:
    chosen, used = query.thresholds, _utilization(query)
    near = query.count(Events(semconv.PAYLOAD_NEAR_CAP, _DIRECTED), chosen.payload_window)
    return Condition(f"{used} > {chosen.payload_near_ratio:g}\nand {near} > 0", (used, near))


def _dapr_near_stall(query: Query) -> Condition:
    """Return the condition, which is never true where daprd's metrics are not scraped."""
    window, ratio = query.thresholds.dapr_window, query.thresholds.dapr_ratio
    workflow, activity = (
        query.fullest(name, query.select(f"{name}_bucket"), window, *labels)
        for name, labels in ((DAPR_WORKFLOW, DAPR_LABELS[:3]), (DAPR_ACTIVITY, DAPR_LABELS))
    )
    return Condition(f"{workflow} > {ratio:g}\nor {activity} > {ratio:g}", (workflow, activity))


def _claim_check_failing(query: Query) -> Condition:
    chosen = query.thresholds
    failed, every = (query.count(events, chosen.claim_check_window) for events in (_FAILED, _OPERATIONS))
    least = promql.at_least(failed, chosen.claim_check_min_errors)
    return Condition(f"{least}\nand {failed} / {every} > {chosen.claim_check_errors_ratio:g}", (failed, every))


def _telemetry_gone(query: Query) -> Condition:
    """Return the condition; a job counts that reported without a gap and does not scale to zero on purpose."""
    window, count = query.thresholds.gone_steady_window, f"count by ({query.by()})"
    lasts = query.series(semconv.BUILD_INFO, f'{semconv.SCALES_TO_ZERO}=""')
    there = f"{count} ({lasts})"
    marks = max(1, int(seconds(window)) // _MARK_SECONDS)
    lasting = f"count_over_time(({there})[{window}:{_MARK_SECONDS}s]) >= {marks}"
    steady = Recording(query.record("agent_otel_processes", f"steady{window}"), f"{there}\nand\n{lasting}")
    now = f"{count} ({query.series(semconv.BUILD_INFO)})"
    return Condition(f"last_over_time({steady}[{query.thresholds.gone_memory}])\nunless {now}", (steady,))


def _integration_unmatched(query: Query) -> Condition:
    info = query.series(semconv.INSTRUMENTATION_INFO, f'{semconv.TARGET}="{semconv.UNMATCHED}"')
    by = query.by(semconv.INTEGRATION, semconv.VERSION)
    return Condition(f"count by ({by}) (last_over_time({info}[{query.thresholds.unmatched_window}]))")


# --- alerts ------------------------------------------------------------------------------------------------------

_THRESHOLD: Final = re.compile(r"<(\w+)(%?)>")


@dataclass(frozen=True)
class Rule:
    """An alert before its thresholds are known."""

    severity: str
    name: str
    condition: Callable[[Query], Condition]
    summary: str
    description: str
    dashboard: str = _ON_TOOLS
    #: Threshold of the time that the condition has to be true. Without one, an event's alert is kept for a time.
    wait: str = ""
    is_event: bool = True

    def alert(self, query: Query) -> Alert:
        """Return the alert of an export."""
        expr, reads = self.condition(query)
        chosen = query.thresholds

        def value(match: re.Match[str]) -> str:
            value = getattr(chosen, match[1])
            return value if isinstance(value, str) else f"{value * 100:g}%" if match[2] else f"{value:g}"

        return Alert(
            self.name,
            self.severity,
            expr,
            _THRESHOLD.sub(value, self.summary),
            _THRESHOLD.sub(value, self.description),
            self.dashboard,
            wait=getattr(chosen, self.wait) if self.wait else "",
            keep=chosen.keep_firing if self.is_event and not self.wait else "",
            reads=reads,
        )


_critical: Final = functools.partial(Rule, "critical")
_warning: Final = functools.partial(Rule, "warning")
_info: Final = functools.partial(Rule, "info")

_TOOL_RULES: Final = (
    # Single large results are normal for tools that search, fetch or read.
    _info(
        "AgentToolResultTooLarge",
        _counted("large_results", _LARGE),
        f"Tool {_value(_TOOL)} returned large results",
        f"Results of {_THE_TOOL}{_IN_JOB} above AGENT_OTEL_LARGE_RESULT_BYTES within <large_results_window>: {_COUNT}. "
        "Every later turn carries them. Give the tool a limit or pages.",
    ),
    # A later layer cuts the result, or refuses the state with it in a later turn.
    _warning(
        "AgentToolResultOverBudget",
        _counted("over_budget", _OVER_BUDGET),
        f"Results of {_THE_TOOL} are larger than the layers behind it accept",
        f"Results of {_THE_TOOL}{_IN_JOB} above their budget within <over_budget_window>: {_COUNT}. The budget is that "
        "of the weakest layer: the room left in the runtime's payload or in the model's context window, the "
        f"framework's limit, or the ceiling. The layer is `{semconv.RESULT_BUDGET_LAYER}` on the tool's span.",
    ),
    # Large results can be right, and alerts on payloads page when a run is at risk.
    _info(
        "AgentToolResultsMostlyLarge",
        _shared("mostly_large", _LARGE, _RESULTS),
        f"Many results of {_THE_TOOL} are large",
        f"{_SHARE} of the results of {_THE_TOOL}{_IN_JOB} were above AGENT_OTEL_LARGE_RESULT_BYTES in the last "
        "<mostly_large_window>. Every later turn carries them. Give the tool a limit or pages.",
        wait="mostly_large_for",
    ),
    # An agent may work well on previews, and a ceiling truncates on purpose.
    _info(
        "AgentToolTruncationHigh",
        _shared("truncated", _CUT, _RESULTS),
        f"Most results of {_THE_TOOL} are truncated",
        f"{_SHARE} of the results of {_THE_TOOL}{_IN_JOB} were truncated in the last <truncated_window>: the model "
        "works on fragments. The dashboard shows the layer that truncates.",
        wait="truncated_for",
    ),
    # There is time to act, and an alert on the payload pages when a run is at risk.
    _warning(
        "AgentToolResultGrown",
        _grown,
        f"Results of {_THE_TOOL} are more than <grown_factor> times as large as before",
        f"The 95th percentile of the result size of {_THE_TOOL}{_IN_JOB} is {_BYTES} over <p95_window>, more than "
        "<grown_factor> times the highest around this hour last week; for a newer tool, of yesterday or of its first "
        "hours. Look for new data, a new field or a query without a limit.",
        wait="grown_for",
    ),
    # Agents continue after the errors.
    _warning(
        "AgentToolErrorRateHigh",
        _shared("errors", _ERRORS, _CALLS, least="min_calls", or_none=True),
        f"Many calls of {_THE_TOOL} fail",
        f"{_SHARE} of the calls of {_THE_TOOL}{_IN_JOB} failed in the last <errors_window>. The dashboard lists the "
        "errors by type.",
        wait="errors_for",
    ),
)

_TRUNCATION_RULES: Final = (
    # Each answer of the agent is built on a fragment of JSON, and no call fails.
    _critical(
        "AgentToolJsonTruncated",
        _shared("json_cut", _JSON_CUTS, _RESULTS, above=">="),
        f"The JSON of {_THE_TOOL} is always cut",
        f"{_SHARE} of the results of {_THE_TOOL}{_IN_JOB} in the last <json_cut_window> are JSON that ends in the "
        "middle. The model answers from fragments. Give the tool pages, or raise the limit of the layer that cuts.",
        wait="json_cut_for",
    ),
    # The model has answered from a part of a result, and nothing else shows it.
    _critical(
        "AgentAnswersIncomplete",
        _counted("answers_incomplete", _ANSWERS),
        f"Answers are built on a part of a result of {_THE_TOOL}",
        f"Final answers{_IN_JOB} within <answers_incomplete_window> that are built on a truncated, withheld or "
        f"undelivered result of {_THE_TOOL}: {_COUNT}. No later call got the rest. The traces name the calls.",
    ),
    # Answers may be worse without an error, but no run is stuck.
    _warning(
        "AgentToolFirstTruncation",
        _first_truncation,
        f"Results of {_THE_TOOL} are truncated for the first time in <first_cut_history>",
        f"Results of {_THE_TOOL}{_IN_JOB} truncated within <first_cut_window>: {_COUNT}; none in the "
        "<first_cut_history> before. The model sees only a part of them. Check for larger results, or for an update of "
        "the tool or its framework.",
    ),
)

_DEFINITION_RULES: Final = (
    # The model repeats refused calls, which costs requests, and may give up.
    _warning(
        "AgentToolArgumentsInvalid",
        _arguments_invalid,
        f"More calls of {_THE_TOOL} have invalid arguments",
        f"{_SHARE} of the calls of {_THE_TOOL}{_IN_JOB} in the last <invalid_arguments_window> were refused before the "
        "tool ran, because their arguments do not fit its schema; that is more than <invalid_arguments_factor> times "
        "the share of the <invalid_arguments_history> before. Look for a changed schema, prompt or model.",
    ),
    # Prompts, stored calls and tests that name the old properties are out of date.
    _warning(
        "AgentToolSchemaChanged",
        _counted("schema_changed", _CHANGES),
        f"The definition of {_THE_TOOL} has changed",
        f"Changes of the schema of {_THE_TOOL}{_IN_JOB} in model requests within <schema_changed_window>: {_COUNT}. "
        f"The event `{semconv.TOOL_SCHEMA_CHANGED}` in the traces names the properties.",
    ),
    # The deployment most often means the change, and the calls show whether it is sound.
    _info(
        "AgentToolSchemaNew",
        _schema_new,
        f"Tool {_value(_TOOL)} has a definition that it did not have before",
        f"Definitions of {_THE_TOOL}{_IN_JOB} in model requests of the last <schema_new_window> with other properties, "
        f"types or required properties than any of the <schema_new_history> before: {_COUNT}. No process has seen the "
        "change, so that it came with a deployment or a restart.",
        is_event=False,
    ),
)

_PAYLOAD_RULES: Final = (
    # The runtime may reject the next turn's payload, and the run's work is lost with it.
    _critical(
        "AgentWorkflowPayloadNearCap",
        _near_cap,
        f"A payload of {_THE_WORKFLOW} is near its cap",
        f"A payload ({_DIRECTION}) {_WHERE_IT_RAN} has reached {_SHARE} of its cap within <payload_window>. Above the "
        "cap the runtime rejects it, and the run fails or retries forever. End or compact the execution now.",
        _ON_PAYLOAD,
    ),
    # Runs fail or are stuck now.
    _critical(
        "AgentWorkflowPayloadOverCap",
        _counted(
            "payload_over", Events(semconv.PAYLOAD_OVER_CAP, _BOUNDARY), Events(semconv.PAYLOADS_REJECTED, _BOUNDARY)
        ),
        f"Payloads of {_THE_WORKFLOW} are over their cap",
        f"Payloads ({_DIRECTION}){_OF_ACTIVITY} {_WHERE_IT_RAN} over their cap or rejected within "
        f"<payload_over_window>: {_COUNT}. Their runs fail or stall, and a retry sends the same bytes. Terminate or "
        "reset them.",
        _ON_PAYLOAD,
    ),
    # There is time to act before the page.
    _warning(
        "AgentWorkflowFewTurnsLeft",
        _counted("few_turns", Events(semconv.FEW_TURNS_LEFT, _WORKFLOW)),
        f"Executions of {_THE_WORKFLOW} have few turns left",
        f"Executions {_WHERE_IT_RAN} that reached, within <few_turns_window>, fewer than 3 turns to their cap at their "
        f"recent growth: {_COUNT}. End or compact them before the runtime rejects them.",
        _ON_PAYLOAD,
    ),
    # The run makes no progress, the retries cost money, and no timeout ends them.
    _critical(
        "AgentWorkflowStuckRetries",
        _counted("stuck_retries", Events(semconv.STUCK_RETRIES, _BOUNDARY)),
        f"Workflow {_value(semconv.WORKFLOW_NAME)} retries rejected payloads",
        f"Payloads ({_DIRECTION}){_OF_ACTIVITY} {_WHERE_IT_RAN} rejected again within <stuck_retries_window>: "
        f"{_COUNT}. Each retry sends the same bytes and cannot succeed. Terminate the executions.",
        _ON_PAYLOAD,
    ),
    # daprd stalls a workflow above 0.95 and reports no error to the application.
    _critical(
        "AgentDaprPayloadNearStall",
        _dapr_near_stall,
        f"daprd is about to stall workflow {_value(DAPR_LABELS[2])}",
        f"A dispatch of workflow {_value(DAPR_LABELS[2])}{_of(DAPR_LABELS[3], '(activity {{ . }})')} of app "
        f"{_value(DAPR_LABELS[0])} has reached {_SHARE} of --max-body-size within <dapr_window>. Above 95 % daprd "
        "stalls the workflow without an error. Raise --max-body-size.",
        _link("agent-otel-payload", workflow=DAPR_LABELS[2]),
    ),
)

_REQUEST_RULES: Final = (
    # Answers are wrong without an error, but no run is stuck.
    _warning(
        "AgentHistoryLost",
        _counted("history_lost", Events(semconv.HISTORY_LOST, _AGENT)),
        "Model requests lack the earlier turns",
        f"Requests{_OF_AGENT}{_IN_JOB} after the first turn without any message of the earlier turns within "
        f"<history_lost_window>: {_COUNT}. The model does not see the conversation. Check the checkpointer and the "
        "session ids.",
        _ON_EXECUTIONS,
    ),
    # Answers miss the task without an error, but no run is stuck.
    _warning(
        "AgentTaskDropped",
        _counted("task_dropped", Events(semconv.TASKS_DROPPED, _AGENT)),
        "A history window drops the task",
        f"Conversations{_OF_AGENT}{_IN_JOB} whose window dropped the first user message within <task_dropped_window>: "
        f"{_COUNT}. The model goes on without the task. Keep that message in the window, or summarise what it drops.",
        _ON_EXECUTIONS,
    ),
    # The requests are still answered, and there is time to shorten them.
    _warning(
        "AgentContextNearLimit",
        _counted("context_near", Events(semconv.CONTEXT_NEAR, _MODEL)),
        f"Requests to {_THE_MODEL} are near its context window",
        f"Requests{_IN_JOB} to {_THE_MODEL} near the end of its context window within <context_near_window>: {_COUNT}. "
        "Above it the provider refuses them. The attributes `agent_otel.context.largest_tool` and `.turns_to_limit` of "
        "their spans name the tool and the requests that are left.",
        _ON_EXECUTIONS,
    ),
    # Runs end now, and a retry sends the same request.
    _critical(
        "AgentRequestRejected",
        _counted("request_rejected", Events(semconv.REQUESTS_REJECTED, (*_MODEL, semconv.REASON))),
        f"The provider of {_THE_MODEL} refuses requests: {_value(semconv.REASON)}",
        f"Requests{_IN_JOB} that the provider of {_THE_MODEL} refused within <request_rejected_window>, for the reason "
        f"{_value(semconv.REASON)}: {_COUNT}. The run ends, and a retry sends the same request. The attributes "
        "`agent_otel.rejected.tool` and `.call_id` of their spans name the call.",
        _ON_EXECUTIONS,
    ),
)

_TELEMETRY_RULES: Final = (
    # The limit worked; the cause can wait for office hours.
    _warning(
        "AgentLimitHit",
        _counted("limit_hit", Events(semconv.LIMITS_HIT, (semconv.LIMIT,))),
        f"Executions reached the limit {_value(semconv.LIMIT)}",
        f"Calls skipped{_IN_JOB} within <limit_hit_window> because their execution had reached the limit "
        f"{_value(semconv.LIMIT)}: {_COUNT}. Look for calls that repeat; without any, raise the limit.",
        _ON_EXECUTIONS,
    ),
    # The policy held; the agent may be misled, or the policy lacks a rule.
    _warning(
        "AgentToolCallDenied",
        _counted("denied", Events(semconv.POLICY_DENIED, (_TOOL, semconv.RULE, semconv.MODE))),
        f"The dispatch policy denies calls of {_value(_TOOL)}",
        f"Calls of {_value(_TOOL)}{_IN_JOB} within <denied_window> that the policy denies by its rule "
        f"{_value(semconv.RULE)}, in the mode {_value(semconv.MODE)}: {_COUNT}. Read the conversation: the agent is "
        "misled, or the policy lacks a rule.",
        _ON_EXECUTIONS,
    ),
    # Stored results are unreadable, and new ones stay in the payload until a run fails.
    _critical(
        "AgentClaimCheckFailing",
        _claim_check_failing,
        "Operations on the claim store fail",
        f"Failed operations ({_value(semconv.OPERATION)}) on the claim store{_IN_JOB} within <claim_check_window>: "
        f"{_COUNT}, more than <claim_check_errors_ratio%> of all. New results are not stored, and stored ones may be "
        "unreadable. Check the store that AGENT_OTEL_CLAIM_CHECK names.",
        _ON_EXECUTIONS,
        wait="claim_check_for",
    ),
    # A model used a reference that does not resolve and got an error instead of the result.
    _warning(
        "AgentClaimCheckUnresolvedRefs",
        _counted("unresolved", _UNRESOLVED),
        "References to stored results do not resolve",
        f"Reads of stored results{_IN_JOB} that returned none ({_value(semconv.RESULT)}) within <unresolved_window>: "
        f"{_COUNT}. The agent cannot read the rest of a result. Compare TTL, store and keys of the workers.",
        _ON_EXECUTIONS,
    ),
    # The agent may work, but no other alert here can fire. Other rules report that a pod is down.
    _warning(
        "AgentTelemetryGone",
        _telemetry_gone,
        "Agents report no telemetry",
        f"Processes{_IN_JOB} that reported before: {_COUNT}. None reports now, and no other alert of this job can "
        "fire. Check that they run and are scraped. This alert ends after <gone_memory> at the latest.",
        _ON_HEALTH,
        wait="gone_for",
    ),
    # The agent is not affected, but its telemetry is incomplete.
    _warning(
        "AgentTelemetrySelfErrors",
        _counted("self_errors", Events(semconv.INTERNAL_ERRORS, (semconv.WHERE,))),
        "agent_otel has internal errors",
        f"Internal errors of agent_otel in {_value(semconv.WHERE)}{_IN_JOB} within <self_errors_window>: {_COUNT}. The "
        "agent is not affected, but its telemetry is incomplete. Its log has one warning for each place.",
        _ON_HEALTH,
    ),
    # The agent is not affected, but a framework's calls are missing in every number.
    _warning(
        "AgentIntegrationUnmatched",
        _integration_unmatched,
        f"Calls of {_value(semconv.INTEGRATION)} {_value(semconv.VERSION)} are not measured",
        f"Processes{_IN_JOB} with {_value(semconv.INTEGRATION)} {_value(semconv.VERSION)}, a version that agent_otel "
        f"cannot instrument: {_COUNT}. No other alert covers its calls. Their log names the versions that work.",
        _ON_HEALTH,
        is_event=False,
    ),
)


class Group(NamedTuple):
    """Rules that Prometheus evaluates in order: alerts come after the series that they read."""

    rules: tuple[Rule, ...]
    #: Series that no alert reads; panels and runbooks do.
    recordings: tuple[Callable[[Query], Recording], ...] = ()


# Mimir and Grafana Cloud refuse a group of more than 20 rules, by default. No group reads what another one records.
GROUPS: Final = {
    "agent-otel-tools": Group(_TOOL_RULES),
    "agent-otel-truncations": Group(_TRUNCATION_RULES),
    "agent-otel-definitions": Group(_DEFINITION_RULES),
    "agent-otel-payload": Group(_PAYLOAD_RULES, (_turns_left,)),
    "agent-otel-requests": Group(_REQUEST_RULES),
    "agent-otel-telemetry": Group(_TELEMETRY_RULES),
}
