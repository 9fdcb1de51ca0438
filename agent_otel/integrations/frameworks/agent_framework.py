"""Microsoft Agent Framework.

Produced is read at ``FunctionTool._invoke_function``, within the framework's own span of the tool. Handed back is read
at ``_auto_invoke_function``, after function middleware and the conversion of exceptions into text. Neither knows the
agent: its name is kept where a run is prepared, because each call runs in a task with a copy of that context.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_otel._internal import collected
from agent_otel._internal.object_kinds import is_named, listed, properties, text
from agent_otel.core import execution_context
from agent_otel.core.types import HANDED_BACK, LEFT_ALONE, AgentRun, RunReader, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.hooks import revising
from agent_otel.integrations.readers import held, inject_into, raises
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.integrations.wrap import closing
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation, Replacement, ResponseVisit

ENTRY = Integration(
    "agent-framework",
    distribution="agent-framework-core",
    minimum="1.8",
    tested="1.23",
    uncovered="tools that the provider runs; tools without a function; functions that a declarative workflow calls "
    "(`InvokeFunctionTool`)",
    sites=(
        Candidate(
            "agent_framework._tools", invoke="FunctionTool._invoke_function", auto_invoke="_auto_invoke_function"
        ),
        Candidate("agent_framework._agents", agent_run="Agent.run", naming="RawAgent.run"),
        Candidate("agent_framework._workflows._workflow", workflow_run="Workflow.run"),
    ),
)

# Begins the text for the model about arguments that the framework has refused.
_REFUSED = "Error: Argument parsing failed."

# The framework traces the runs of these classes.
_TRACED = ("AgentTelemetryLayer", "Workflow")

_agent: ContextVar[str | None] = ContextVar("agent_otel_agent_framework_agent", default=None)


async def _awaited(running: Any, name: str | None) -> Any:
    with held(_agent, name):
        return await running


@revising
def naming(invocation: Invocation, running: Any) -> Any:
    """Set the agent's name during a run, or during each step of its stream."""
    name = text(getattr(invocation.instance, "name", None))
    if is_named(running, "ResponseStream"):
        return running.with_pull_context_manager(partial(held, _agent, name))
    return closing(_awaited(running, name), running)


def _invoke_call(invocation: Invocation) -> ToolCall:
    arguments = invocation.arg(0, "call_kwargs")
    context = getattr(invocation.instance, "_context_parameter_name", None)
    shown = {name: value for name, value in arguments.items() if name != context} if context else arguments
    return ToolCall(invocation.instance.name, shown, agent=_agent.get())


def _auto_call(invocation: Invocation) -> ToolCall | None:
    """Read a call of the model's, or an approved one; the name of a hosted tool is in no map."""
    content = invocation.arg(0, "function_call_content")
    if text(content.type) != "function_call":
        content = content.function_call
    if content is None or text(content.name) not in invocation.kwargs["tool_map"]:
        return None
    session = getattr(invocation.kwargs.get("invocation_session"), "session_id", None)
    execution = execution_context.outside_of_runs(session)  # an agent that is a tool has another name
    return ToolCall(content.name, content.arguments, content.call_id, _agent.get(), execution)


def _result(value: Any) -> ToolResult:
    """Read a handler's value: any object, or contents in the framework's form."""
    if is_named(value, "Content"):
        value = [value]
    contents = [_blocks(item) for item in listed(value)]
    return ToolResult(contents if contents and None not in contents else "" if value is None else value)


def _blocks(content: Any) -> Any:
    """Return a content as a block of text, or as the dictionary that it makes of itself."""
    if not is_named(content, "Content"):
        return None
    return {"type": "text", "text": content.text} if text(content.type) == "text" else content.to_dict()


def _handed_back(content: Any) -> ToolResult | None:
    """Read the content of a result; a request for an approval is none."""
    if text(getattr(content, "type", None)) != "function_result":
        return None
    if content.exception is None:
        return _result(content.items)
    is_refused = (text(content.result) or "").startswith(_REFUSED)
    return ToolResult(content.result, error_type=TOOL_ERROR, raised=True, is_refused=is_refused)


def _replace(value: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Return a replacement for a handler's value; a parser of the program's expects the value itself."""
    if invocation.instance.result_parser is not None:
        return LEFT_ALONE
    items = [value] if is_named(value, "Content") else listed(value)
    if any(is_named(item, "Content") and text(item.type) != "text" for item in items):
        return LEFT_ALONE  # an image or another file
    return replacement.text


def _replace_handed_back(content: Any, replacement: Replacement, _: Invocation) -> Any:
    """Put a replacement into the content of a result, which the framework has made."""
    if text(getattr(content, "type", None)) != "function_result" or content.exception is None:
        return LEFT_ALONE
    content.result = replacement.text
    content.items = [type(content).from_text(replacement.text)]
    return content


# The tool or the middleware first needs an input of the user, or ends the loop with another result.
_is_control_flow = raises("UserInputRequiredException", "MiddlewareTermination")
invoke = ToolReader(
    _invoke_call,
    _result,
    is_control_flow=_is_control_flow,
    replace=_replace,
    parameters=lambda invocation: properties(invocation.instance.parameters()),
    inject=inject_into(0, "call_kwargs"),  # the validated arguments
)
auto_invoke = ToolReader(
    _auto_call,
    _handed_back,
    invoke,
    station=HANDED_BACK,
    is_control_flow=_is_control_flow,
    replace=_replace_handed_back,
)


def _traces(instance: Any) -> bool:
    """Return true when the framework opens a span for a run."""
    if not sys.modules["agent_framework.observability"].OBSERVABILITY_SETTINGS.ENABLED:
        return False
    return any(kind.__name__ in _TRACED for kind in type(instance).__mro__)


def _run(invocation: Invocation) -> AgentRun:
    agent = invocation.instance
    session = text(getattr(invocation.kwargs.get("session"), "session_id", None))
    return AgentRun(text(agent.name), session, _traces(agent))


def _workflow(invocation: Invocation) -> AgentRun:
    workflow = invocation.instance
    return AgentRun(workflow=text(workflow.name) or "", traces=_traces(workflow))


def _watch(value: Any, visit: ResponseVisit) -> bool:
    """Make a run current during each step of its stream."""
    if not is_named(value, "ResponseStream"):
        return False
    value.with_pull_context_manager(visit.step).with_cleanup_hook(visit.abandon)
    collected.at_end_of(value, collected.run, visit.abandon)
    return True


agent_run = RunReader(_run, watch=_watch)
workflow_run = RunReader(_workflow, watch=_watch)
