"""Alerts about the agent's context, its limits and the claim store, and about this package's own telemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_otel import semconv
from agent_otel.alerts import promql
from agent_otel.alerts.rule_types import (
    COUNT,
    CRITICAL,
    IN_JOB,
    INFO,
    SHARE,
    TOOL,
    WARNING,
    Alert,
    Recording,
    on_executions,
    on_health,
    on_tools,
    value_of,
)
from agent_otel.alerts.thresholds import seconds
from agent_otel.semconv.types import prometheus_label

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.alerts.promql import Query


#: Results of operations on the claim store: the store failed, or it answered without a result
#: (agent_otel/remedies/claim_check/keys.py).
STORE_FAILS: Final = ("error", "timeout", "open")
NOT_RESOLVED: Final = ("not_found", "expired", "denied", "corrupt")
_FAILED: Final = f'{semconv.RESULT}=~"{"|".join(STORE_FAILS)}"'
#: Matcher for agents that do not scale to zero on purpose.
_MISSED: Final = f'{semconv.SCALES_TO_ZERO}=""'
_MARK_SECONDS: Final = 300  # a series stays visible for this long after its last sample
_UNRESOLVED: Final = f'{semconv.RESULT}=~"{"|".join(NOT_RESOLVED)}"'

_MODEL: Final = value_of(semconv.REQUEST_MODEL)
_OF_AGENT: Final = f"{{{{ with $labels.{prometheus_label(semconv.AGENT_NAME)} }}}} of agent {{{{ . }}}}{{{{ end }}}}"


def history_lost(query: Query) -> Alert:
    """Return a warning: answers are wrong without an error, but no run is stuck."""
    chosen = query.thresholds
    window = chosen.history_lost_window
    lost = query.counted(semconv.HISTORY_LOST, window, semconv.AGENT_NAME)
    return Alert(
        "AgentHistoryLost",
        WARNING,
        promql.at_least(lost, chosen.history_lost_min),
        reads=(lost,),
        summary="Model requests lack the earlier turns",
        description=f"Requests{_OF_AGENT}{IN_JOB} after the first turn without any message of the earlier turns within "
        f"{window}: {COUNT}. The model does not see the conversation. Check the checkpointer and the session ids.",
        dashboard=on_executions(),
        keep=chosen.keep_firing,
    )


def task_dropped(query: Query) -> Alert:
    """Return a warning: answers miss the task without an error, but no run is stuck."""
    chosen = query.thresholds
    window = chosen.task_dropped_window
    dropped = query.counted(semconv.TASKS_DROPPED, window, semconv.AGENT_NAME)
    return Alert(
        "AgentTaskDropped",
        WARNING,
        promql.at_least(dropped, chosen.task_dropped_min),
        reads=(dropped,),
        summary="A history window drops the task",
        description=f"Conversations{_OF_AGENT}{IN_JOB} whose window dropped the first user message within {window}: "
        f"{COUNT}. The model goes on without the task. Keep that message in the window, or summarise what it drops.",
        dashboard=on_executions(),
        keep=chosen.keep_firing,
    )


def context_near_limit(query: Query) -> Alert:
    """Return a warning: the requests are still answered, and there is time to shorten them."""
    chosen = query.thresholds
    window = chosen.context_near_window
    near = query.counted(semconv.CONTEXT_NEAR, window, semconv.REQUEST_MODEL)
    return Alert(
        "AgentContextNearLimit",
        WARNING,
        promql.at_least(near, chosen.context_near_min),
        reads=(near,),
        summary=f"Requests to model {_MODEL} are near its context window",
        description=f"Requests{IN_JOB} to model {_MODEL} near the end of its context window within {window}: {COUNT}. "
        "Above it the provider refuses them. The attributes `agent_otel.context.largest_tool` and `.turns_to_limit` of "
        "their spans name the tool and the requests that are left.",
        dashboard=on_executions(),
        keep=chosen.keep_firing,
    )


def context_rejected(query: Query) -> Alert:
    """Return a critical alert: runs end now, and a retry sends the same tokens."""
    chosen = query.thresholds
    window = chosen.context_rejected_window
    refused = query.counted(semconv.CONTEXTS_REJECTED, window, semconv.REQUEST_MODEL)
    return Alert(
        "AgentContextRejected",
        CRITICAL,
        promql.at_least(refused, chosen.context_rejected_min),
        reads=(refused,),
        summary=f"Requests are longer than the context window of model {_MODEL}",
        description=f"Requests{IN_JOB} that the provider of model {_MODEL} refused as too long within {window}: "
        f"{COUNT}. The run ends, unless its framework shortens the history. Trim old results or summarise.",
        dashboard=on_executions(),
        keep=chosen.keep_firing,
    )


def limit_hit(query: Query) -> Alert:
    """Return a warning: the limit worked; the cause can wait for office hours."""
    chosen = query.thresholds
    window = chosen.limit_hit_window
    hit = query.counted(semconv.LIMITS_HIT, window, semconv.LIMIT)
    return Alert(
        "AgentLimitHit",
        WARNING,
        promql.at_least(hit, chosen.limit_hit_min),
        reads=(hit,),
        summary=f"Executions reached the limit {value_of(semconv.LIMIT)}",
        description=f"Calls skipped{IN_JOB} within {window} because their execution had reached the limit "
        f"{value_of(semconv.LIMIT)}: {COUNT}. Look for calls that repeat; without any, raise the limit.",
        dashboard=on_executions(),
        keep=chosen.keep_firing,
    )


def call_denied(query: Query) -> Alert:
    """Return a warning: the policy held; the agent may be misled, or the policy lacks a rule."""
    chosen = query.thresholds
    window = chosen.denied_window
    by = (semconv.GEN_AI_TOOL_NAME, semconv.RULE, semconv.MODE)
    denied = query.counted(semconv.POLICY_DENIED, window, *by)
    return Alert(
        "AgentToolCallDenied",
        WARNING,
        promql.at_least(denied, chosen.denied_min),
        reads=(denied,),
        summary=f"The dispatch policy denies calls of {value_of(semconv.GEN_AI_TOOL_NAME)}",
        description=f"Calls of {value_of(semconv.GEN_AI_TOOL_NAME)}{IN_JOB} within {window} that the policy denies by "
        f"its rule {value_of(semconv.RULE)}, in the mode {value_of(semconv.MODE)}: {COUNT}. Read the conversation: the "
        "agent is misled, or the policy lacks a rule.",
        dashboard=on_executions(),
        keep=chosen.keep_firing,
    )


def claim_check_failing(query: Query) -> Alert:
    """Return a critical alert: stored results are unreadable, and new ones stay in the payload until a run fails."""
    chosen = query.thresholds
    window = chosen.claim_check_window
    by_operation = semconv.OPERATION
    failures = query.counter(semconv.CLAIM_CHECK_OPERATIONS, _FAILED)
    operations = query.counter(semconv.CLAIM_CHECK_OPERATIONS)
    failed = query.events("agent_otel_claim_check_failures", failures, window, by_operation)
    every = query.events("agent_otel_claim_check_operations", operations, window, by_operation)
    return Alert(
        "AgentClaimCheckFailing",
        CRITICAL,
        f"{promql.at_least(failed, chosen.claim_check_min_errors)}\n"
        f"and {failed} / {every} > {chosen.claim_check_errors_ratio:g}",
        reads=(failed, every),
        summary="Operations on the claim store fail",
        description=f"Failed operations ({value_of(by_operation)}) on the claim store{IN_JOB} within {window}: "
        f"{COUNT}, more than {chosen.claim_check_errors_ratio * 100:g}% of all. New results are not stored, and "
        "stored ones may be unreadable. Check the store that AGENT_OTEL_CLAIM_CHECK names.",
        dashboard=on_executions(),
        wait=chosen.claim_check_for,
    )


def unresolved_refs(query: Query) -> Alert:
    """Return a warning: a model used a reference that does not resolve and got an error instead of the result."""
    chosen = query.thresholds
    window = chosen.unresolved_window
    counter = query.counter(semconv.CLAIM_CHECK_OPERATIONS, _UNRESOLVED)
    missed = query.events("agent_otel_claim_check_unresolved", counter, window, semconv.RESULT)
    return Alert(
        "AgentClaimCheckUnresolvedRefs",
        WARNING,
        promql.at_least(missed, chosen.unresolved_min),
        reads=(missed,),
        summary="References to stored results do not resolve",
        description=f"Reads of stored results{IN_JOB} that returned none ({value_of(semconv.RESULT)}) within {window}: "
        f"{COUNT}. The agent cannot read the rest of a result. Compare TTL, store and keys of the workers.",
        dashboard=on_executions(),
        keep=chosen.keep_firing,
    )


def steady(query: Query) -> Recording:
    """Record the number of processes of a job that reported without a gap and does not scale to zero on purpose."""
    window = query.thresholds.gone_steady_window
    there = f"count by ({query.by()}) ({query.counter(semconv.BUILD_INFO, _MISSED)})"
    marks = max(1, int(seconds(window)) // _MARK_SECONDS)
    lasting = f"count_over_time(({there})[{window}:{_MARK_SECONDS}s]) >= {marks}"
    return Recording(query.record("agent_otel_processes", f"steady{window}"), f"{there}\nand\n{lasting}")


def telemetry_gone(query: Query) -> Alert:
    """Return a warning: the agent may work, but no other alert here can fire. Other rules report that a pod is down."""
    chosen = query.thresholds
    before, now = steady(query), f"count by ({query.by()}) ({query.counter(semconv.BUILD_INFO)})"
    return Alert(
        "AgentTelemetryGone",
        WARNING,
        f"last_over_time({before}[{chosen.gone_memory}])\nunless {now}",
        reads=(before,),
        summary="Agents report no telemetry",
        description=f"Processes{IN_JOB} that reported before: {COUNT}. None reports now, and no other alert of this "
        f"job can fire. Check that they run and are scraped. This alert ends after {chosen.gone_memory} at the latest.",
        dashboard=on_health(),
        wait=chosen.gone_for,
    )


def self_errors(query: Query) -> Alert:
    """Return a warning: the agent is not affected, but its telemetry is incomplete."""
    chosen = query.thresholds
    window = chosen.self_errors_window
    errors = query.counted(semconv.INTERNAL_ERRORS, window, semconv.WHERE)
    return Alert(
        "AgentTelemetrySelfErrors",
        WARNING,
        promql.at_least(errors, chosen.self_errors_min),
        reads=(errors,),
        summary="agent_otel has internal errors",
        description=f"Internal errors of agent_otel in {value_of(semconv.WHERE)}{IN_JOB} within {window}: {COUNT}. "
        "The agent is not affected, but its telemetry is incomplete. Its log has one warning for each place.",
        dashboard=on_health(),
        keep=chosen.keep_firing,
    )


def integration_unmatched(query: Query) -> Alert:
    """Return a warning: the agent is not affected, but a framework's calls are missing in every number."""
    chosen = query.thresholds
    by = (semconv.INTEGRATION, semconv.VERSION)
    info = query.counter(semconv.INSTRUMENTATION_INFO, f'{semconv.TARGET}="{semconv.UNMATCHED}"')
    return Alert(
        "AgentIntegrationUnmatched",
        WARNING,
        f"count by ({query.by(*by)}) (last_over_time({info}[{chosen.unmatched_window}]))",
        summary=f"Calls of {value_of(semconv.INTEGRATION)} {value_of(semconv.VERSION)} are not measured",
        description=f"Processes{IN_JOB} with {value_of(semconv.INTEGRATION)} {value_of(semconv.VERSION)}, a version "
        f"that agent_otel cannot instrument: {COUNT}. No other alert covers its calls. Their log names the versions "
        "that work.",
        dashboard=on_health(),
    )


#: Alerts on the requests to models.
REQUESTS: Final[tuple[Callable[[Query], Alert], ...]] = (
    history_lost,
    task_dropped,
    context_near_limit,
    context_rejected,
)
ALERTS: Final[tuple[Callable[[Query], Alert], ...]] = (
    limit_hit,
    call_denied,
    claim_check_failing,
    unresolved_refs,
    telemetry_gone,
    self_errors,
    integration_unmatched,
)

_NAME: Final = semconv.GEN_AI_TOOL_NAME
_INVALID: Final = "agent_otel_tool_invalid_arguments"

# Alerts of the tools' group: about definitions that change, and calls that do not fit the definition.


def invalid_share(query: Query) -> Recording:
    """Record the share of a tool's calls whose arguments were refused before the handler; 0 without such calls."""
    window = query.thresholds.invalid_arguments_window
    every = query.events("agent_otel_tool_calls", query.part(semconv.ARGS_SIZE, "count"), window, _NAME)
    refused = query.counted(semconv.INVALID_ARGUMENTS, window, _NAME)
    name = query.record(_INVALID, f"ratio{window}", _NAME)
    return Recording(name, promql.share_or_none(refused, every), (refused, every))


def arguments_invalid(query: Query) -> Alert:
    """Return a warning: the model repeats refused calls, which costs requests, and may give up."""
    chosen = query.thresholds
    window, history = chosen.invalid_arguments_window, chosen.invalid_arguments_history
    share = invalid_share(query)
    _, every = share.reads
    before = Recording(
        query.record(_INVALID, f"ratio{window}_avg{history}_offset{window}", _NAME),
        f"avg_over_time({share}[{history}] offset {window})",
        (share,),
    )
    return Alert(
        "AgentToolArgumentsInvalid",
        WARNING,
        f"{share} > {chosen.invalid_arguments_ratio}\n"
        f"unless {share} <= {chosen.invalid_arguments_factor:g} * {before}\n"
        f"and {promql.at_least(every, chosen.invalid_arguments_min_calls)}",
        reads=(share, before, every),
        summary=f"More calls of tool {TOOL} have invalid arguments",
        description=f"{SHARE} of the calls of tool {TOOL}{IN_JOB} in the last {window} were refused before the tool "
        f"ran, because their arguments do not fit its schema; that is more than {chosen.invalid_arguments_factor:g} "
        f"times the share of the {history} before. Look for a changed schema, prompt or model.",
        dashboard=on_tools(),
        keep=chosen.keep_firing,
    )


def schema_changed(query: Query) -> Alert:
    """Return a warning: prompts, stored calls and tests that name the old properties are out of date."""
    chosen = query.thresholds
    window = chosen.schema_changed_window
    changes = query.counted(semconv.SCHEMA_CHANGES, window, _NAME)
    return Alert(
        "AgentToolSchemaChanged",
        WARNING,
        promql.at_least(changes, chosen.schema_changed_min),
        reads=(changes,),
        summary=f"The definition of tool {TOOL} has changed",
        description=f"Changes of the schema of tool {TOOL}{IN_JOB} in model requests within {window}: {COUNT}. The "
        f"event `{semconv.TOOL_SCHEMA_CHANGED}` in the traces names the properties.",
        dashboard=on_tools(),
        keep=chosen.keep_firing,
    )


def definitions(query: Query) -> Recording:
    """Record the definitions of tools in use, of all processes of a job: a deployment replaces these."""
    by = (semconv.GEN_AI_TOOL_NAME, semconv.AGENT_NAME, semconv.FINGERPRINT)
    info = query.counter(semconv.DEFINITION_INFO)
    return Recording(query.record("agent_otel_tool_definitions", "used", *by), f"group by ({query.by(*by)}) ({info})")


def schema_new(query: Query) -> Alert:
    """Return a notice: the deployment most often means the change, and the calls show whether it is sound."""
    chosen = query.thresholds
    window, used = chosen.schema_new_window, definitions(query)
    changes = query.counted(semconv.SCHEMA_CHANGES, window, _NAME)
    before = f"last_over_time({used}[{chosen.schema_new_history}] offset {window})"
    other = f"group by ({query.by(_NAME, semconv.AGENT_NAME)}) ({before})"
    return Alert(
        "AgentToolSchemaNew",
        INFO,
        f"count by ({query.by(_NAME)}) (\n"
        f"  last_over_time({used}[{window}])\n"
        f"  unless {before}\n"
        f"  and on ({query.by(_NAME, semconv.AGENT_NAME)})\n"
        f"  {other}\n"
        f")\nunless {changes} > 0",
        reads=(used, changes),
        summary=f"Tool {TOOL} has a definition that it did not have before",
        description=f"Definitions of tool {TOOL}{IN_JOB} in model requests of the last {window} with other properties, "
        f"types or required properties than any of the {chosen.schema_new_history} before: {COUNT}. No process has "
        "seen the change, so that it came with a deployment or a restart.",
        dashboard=on_tools(),
    )


DRIFT_ALERTS: Final[tuple[Callable[[Query], Alert], ...]] = (arguments_invalid, schema_changed, schema_new)
