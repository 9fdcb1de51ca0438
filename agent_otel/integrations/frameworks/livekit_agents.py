"""LiveKit Agents, in speech and in text.

Produced is read where a session's executor runs a tool. The text for the model, made later, is read in the request.
"""

from __future__ import annotations

from typing import Any

from agent_otel._internal import signatures
from agent_otel._internal.object_kinds import fields, is_named, is_text, listed, properties, text
from agent_otel.core import handler
from agent_otel.core.types import LEFT_ALONE, Invocation, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.readers import inject_into, raises
from agent_otel.integrations.registry import Candidate, Integration

ENTRY = Integration(
    "livekit-agents",
    minimum="1.8",
    tested="1.8, sessions in text",
    uncovered="the return value after `ctx.update()`, which is measured instead; tools of a `ToolProxyToolset` (part "
    "of the call of `call_tool`)",
    packages=("livekit.agents",),
    sites=(
        Candidate("livekit.agents.voice.tool_executor", execute="_ToolExecutor.execute"),
        # The function by which a loop of the program's own makes a call, where it is defined and where it is public:
        # one of the two is wrapped already when it gets its second name, unless that was before the package began.
        Candidate("livekit.agents.llm.utils", executed="execute_function_call"),
        Candidate("livekit.agents.llm", executed="execute_function_call"),
    ),
)

_INVALID = "Error parsing arguments for "
_DATA = (dict, list, tuple, int, float, bool)


def _call(invocation: Invocation) -> ToolCall:
    context = invocation.kwargs["run_ctx"]
    call = context.function_call
    agent = text(getattr(getattr(context.session, "current_agent", None), "id", None))
    return ToolCall(call.name, invocation.kwargs["raw_arguments"], call.call_id, agent)


def _result(value: Any) -> ToolResult:
    """Read a result; agents in it are handovers, of which the model gets nothing."""
    value = fields(value)["output"] if is_named(value, "ToolResult") else value
    items = [item for item in listed(value) if not is_named(item, "Agent")]
    if len(items) < len(listed(value)):
        value = items[0] if len(items) == 1 else items or None
    return ToolResult("" if value is None or is_named(value, "Agent") else value)


def _executed_call(invocation: Invocation) -> ToolCall | None:
    """Read a call of a loop of the program's own; None if the model made up the tool."""
    call = invocation.arg(0, "tool_call")
    name = text(call.name)
    known = fields(invocation.arg(1, "tool_ctx").function_tools)
    return ToolCall(name, call.arguments, call.call_id) if name is not None and name in known else None


def _executed(answer: Any) -> ToolResult:
    if answer.raw_exception is None:
        return _result(answer.raw_output)
    handler.handler_raised(answer.raw_exception, executed)
    return ToolResult(getattr(answer.fnc_call_out, "output", None), raised=True)


def _parameters(invocation: Invocation) -> Any:
    tool = invocation.kwargs["tool"]
    schema = fields(getattr(tool.info, "raw_schema", None))
    return properties(schema.get("parameters")) if schema else signatures.parameter_names(tool)


_is_control_flow = raises("StopResponse")
execute = ToolReader(
    _call,
    _result,
    is_control_flow=_is_control_flow,
    is_refusal=lambda error: (
        is_named(error, "ToolError") and (text(getattr(error, "message", None)) or "").startswith(_INVALID)
    ),
    replace=lambda value, replacement, _: (
        replacement.text if value is None or is_text(value) or type(value) in _DATA else LEFT_ALONE
    ),
    parameters=_parameters,
    inject=inject_into(0, "raw_arguments"),  # by name alone
    also_timed_by=("livekit.agents.telemetry.otel_metrics:_genai_execute_tool_duration",),
)
executed = ToolReader(_executed_call, _executed, is_control_flow=_is_control_flow)
