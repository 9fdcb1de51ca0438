"""Alerts of the tools' group: about definitions that change, and calls that do not fit the definition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_otel import semconv
from agent_otel.alerts import promql
from agent_otel.alerts.rule_types import COUNT, IN_JOB, INFO, SHARE, TOOL, WARNING, Alert, Recording, on_tools

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.alerts.promql import Query

_NAME: Final = semconv.GEN_AI_TOOL_NAME
_INVALID: Final = "agent_otel_tool_invalid_arguments"


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


ALERTS: Final[tuple[Callable[[Query], Alert], ...]] = (arguments_invalid, schema_changed, schema_new)
