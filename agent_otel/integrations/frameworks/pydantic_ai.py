"""Pydantic AI 2.

Produced is read at ``ToolManager._raw_execute``, handed back at ``execute_tool_call``, outside of the hooks of
capabilities. Output tools, with which the model gives its final answer, pass neither.

On Temporal both run in workflow code, which runs again whenever it is replayed and is not measured. The tool itself
runs in an activity, where the framework calls its toolset without them: produced is read there. A tool whose activity
is switched off runs in workflow code.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from agent_otel._internal.failures import cause_of
from agent_otel._internal.object_kinds import fields, is_empty, is_named, listed, properties, text
from agent_otel.core.types import HANDED_BACK, LEFT_ALONE, AgentRun, RunReader, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.readers import inject_into, message_of, raises
from agent_otel.integrations.registry import Candidate, Integration

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation, Replacement

ENTRY = Integration(
    "pydantic-ai",
    distribution="pydantic-ai-slim",
    minimum="2.0",
    tested="2.0 and 2.68; on DBOS and Temporal 2.68, on Prefect 2.59",
    uncovered="output functions; calls that are deferred to the program (`ExternalToolset`); on Temporal, results of "
    "capabilities' hooks and tools without an activity, which run in workflow code, and the policy on a "
    "`DynamicToolset`'s tools of your own class; on DBOS and Prefect the stored result stays whole",
    sites=(
        Candidate(
            "pydantic_ai.tool_manager",
            raw_execute="ToolManager._raw_execute",
            execute_tool_call="ToolManager.execute_tool_call",
        ),
        Candidate("pydantic_ai.agent", agent_run="Agent.iter"),  # all ways to run an agent pass it
        # The module imports the class from elsewhere: it is wrapped only on Temporal.
        Candidate("pydantic_ai.durable_exec.temporal._toolset", activity="FunctionToolset.call_tool"),
        Candidate("pydantic_ai.mcp", activity="MCPToolset.call_tool"),
    ),
)

# The tool or a hook asks for something first, or does without the tool.
_CONTROL_FLOW = ("ApprovalRequired", "CallDeferred", "SkipToolExecution")

# Images and other files. No text can replace them.
_FILES = ("BinaryContent", "FileUrl", "UploadedFile")

# Exceptions that carry the message to the model. The tool or the tool manager raises them.
_OWN = ("ModelRetry", "ToolFailed")
_ANSWERS = {"ToolRetryError": "tool_retry", "ToolFailedError": "tool_failed"}


def _validated(invocation: Invocation) -> Any:
    return invocation.arg(0, "validated")


def _call(invocation: Invocation) -> ToolCall:
    validated = _validated(invocation)
    call, context = validated.call, validated.ctx
    return ToolCall(
        name=call.tool_name,
        arguments={} if is_empty(call.args) else call.args,
        call_id=call.tool_call_id,
        agent=getattr(context.agent, "name", None),
        execution=text(context.conversation_id) or context.run_id,
    )


def _result(value: Any) -> ToolResult:
    """Read a result: bare, or in the framework's envelope. Its metadata stay with the messages."""
    structured = None
    if is_named(value, "ToolReturn"):
        known = fields(value)
        value, structured = known["return_value"], known.get("metadata")
    return ToolResult("" if value is None else value, structured)


def _is_refusal(error: BaseException) -> bool:
    """Return True for an exception of the validators. It has no cause, unlike the exception for a tool's own retry.

    The answer to a tool that the model made up is of the same class.
    """
    if not is_named(error, "ToolRetryError") or cause_of(error) is not None:
        return False
    return not (text(_told(error)) or "").startswith("Unknown tool name")


def _answer(error: BaseException) -> str | None:
    return next((part for name, part in _ANSWERS.items() if is_named(error, name)), None)


def _told(error: BaseException) -> Any:
    """Read the model's message of a tool's exception that requests a retry or reports a failure."""
    part = _answer(error)
    return None if part is None else getattr(error, part).content


def _replace(value: Any, replacement: Replacement, _: Invocation) -> Any:
    """Return a replacement for a tool's result. In the envelope, only the text is for the model."""
    result = value.return_value if is_named(value, "ToolReturn") else value
    if any(is_named(item, *_FILES) for item in (result, *listed(result))):
        return LEFT_ALONE
    return replacement.text if result is value else dataclasses.replace(value, return_value=replacement.text)


def _replace_told(error: Any, replacement: Replacement, _: Invocation) -> Any:
    """Put a replacement into an exception. If hooks return another value, that value is the result."""
    part = _answer(error)
    if part is None:
        return LEFT_ALONE
    getattr(error, part).content = replacement.text
    return error


def _inject(invocation: Invocation, values: dict[str, Any]) -> None:
    """Add arguments after the validation, to a copy of its result."""
    validated = _validated(invocation)
    arguments = {**validated.validated_args, **values}
    invocation.put(0, "validated", dataclasses.replace(validated, validated_args=arguments))


def _parameters(invocation: Invocation) -> Any:
    return properties(_validated(invocation).tool.tool_def.parameters_json_schema)


def _validated_arguments(invocation: Invocation) -> Any:
    """Return the validated arguments; where the only one is an object of all that the model sends, its fields too."""
    made = _validated(invocation).validated_args
    is_one = len(made) == 1 and not set(made) & set(_parameters(invocation))
    return {**fields(next(iter(made.values()))), **made} if is_one else made


_is_control_flow = raises(*_CONTROL_FLOW)
raw_execute = ToolReader(
    _call,
    _result,
    is_control_flow=_is_control_flow,
    replace=_replace,
    parameters=_parameters,
    inject=_inject,
    is_relayed=True,
    validated=_validated_arguments,
)
execute_tool_call = ToolReader(
    _call,
    _result,
    raw_execute,
    station=HANDED_BACK,
    is_control_flow=_is_control_flow,
    is_refusal=_is_refusal,
    failure_text=_told,
    replace=_replace_told,
    parameters=_parameters,
    is_relayed=True,
)


def _activity_call(invocation: Invocation) -> ToolCall | None:
    """Read a call in an activity of Temporal; return None elsewhere, where the tool manager's functions enclose it."""
    context = invocation.arg(2, "ctx")
    if not is_named(context, "TemporalRunContext"):
        return None
    known = fields(context)
    return ToolCall(
        name=invocation.arg(0, "name"),
        arguments=invocation.arg(1, "tool_args"),
        call_id=known["tool_call_id"],
        agent=getattr(known["agent"], "name", None),
        execution=text(known.get("conversation_id")) or known["run_id"],
    )


def _activity_replace(value: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Return a replacement; of an exception the framework sends the message to the workflow."""
    if not is_named(value, *_OWN):
        return _replace(value, replacement, invocation)
    value.message = replacement.text
    return value


activity = ToolReader(
    _activity_call,
    _result,
    is_control_flow=_is_control_flow,
    failure_text=message_of(*_OWN),
    replace=_activity_replace,
    parameters=lambda invocation: properties(invocation.arg(3, "tool").tool_def.parameters_json_schema),
    inject=inject_into(1, "tool_args"),
)


def _agent_run(invocation: Invocation) -> AgentRun:
    """Read a run. Instrumented agents open the span."""
    agent = invocation.instance
    conversation = text(invocation.kwargs.get("conversation_id"))
    instrumented = (getattr(agent, "instrument", None), getattr(type(agent), "_instrument_default", None))
    traces = any(one is not None and one is not False for one in instrumented)
    answered = fields(invocation.kwargs.get("deferred_tool_results"))
    resumed = next(iter({**fields(answered.get("approvals")), **fields(answered.get("calls"))}), None)
    return AgentRun(text(getattr(agent, "name", None)), conversation, traces, resumes=text(resumed))


def _pauses(run: Any) -> str | None:
    """Return the id of a call that waits for an approval or for a result from outside; None for another result."""
    deferred = fields(getattr(getattr(run, "result", None), "output", None))
    waiting = [*listed(deferred.get("approvals")), *listed(deferred.get("calls"))]
    return text(fields(waiting[0]).get("tool_call_id")) if waiting else None


agent_run = RunReader(_agent_run, pauses=_pauses)
