"""smolagents: agents that call tools, and agents that write code which calls tools.

Produced is read at ``Tool.__call__``. Handed back is read at ``ToolCallingAgent.execute_tool_call``. An agent that
writes code hands nothing back: the model gets the truncated output that the code prints. Neither kind of agent passes
the call's id to the tool. No request contains the id, because results become text. If an agent manages another agent,
the managed agent is a tool of its manager.
"""

from __future__ import annotations

import contextvars
import functools
from typing import TYPE_CHECKING, Any

from agent_otel._internal.failures import cause_of, is_raised_within
from agent_otel._internal.object_kinds import fields, is_dict, is_named, is_text, text
from agent_otel.core import switches
from agent_otel.core.types import HANDED_BACK, LEFT_ALONE, NOT_HERE, RunReader, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.hooks import revising
from agent_otel.integrations.readers import message_of, run_named
from agent_otel.integrations.registry import Candidate, Integration

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.core.types import Invocation, Replacement

ENTRY = Integration(
    "smolagents",
    minimum="1.24",
    tested="1.24 and 1.26",
    uncovered="tools in the code of a remote executor (E2B, Docker, Modal, Blaxel)",
    sites=(
        Candidate("smolagents.agents", execute="ToolCallingAgent.execute_tool_call", managed="MultiStepAgent.__call__"),
        Candidate("smolagents.agents", agent_run="MultiStepAgent.run"),
        Candidate("smolagents.tools", tool="Tool.__call__ PipelineTool.__call__"),
        # A CodeAgent's code runs in a thread that ``timeout`` starts.
        Candidate("smolagents.local_python_executor", in_thread="timeout"),
    ),
)

# The tool that the model calls to give its final answer.
_ANSWER = "final_answer"


def _tool_call(invocation: Invocation) -> ToolCall | None:
    tool = invocation.instance
    if text(tool.name) == _ANSWER:
        return None
    return ToolCall(tool.name, {**dict(zip(tool.inputs, invocation.args, strict=False)), **_named(invocation)})


def _agent_call(invocation: Invocation) -> ToolCall | None:
    agent = invocation.instance
    name = invocation.arg(0, "tool_name")
    arguments = invocation.arg(1, "arguments")
    if (plain := text(name)) == _ANSWER or plain in agent.managed_agents:
        return None
    return ToolCall(name, arguments, agent=agent.name)


def _result(value: Any) -> ToolResult:
    """Read a result. The framework may return a text in its own class."""
    return ToolResult(text(value) if is_text(value) else value)


def _replace(value: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Return a replacement for a tool's result to an agent that calls tools. Other callers compute with results."""
    if invocation.kwargs.get("sanitize_inputs_outputs") is not True:
        return NOT_HERE
    return LEFT_ALONE if is_named(value, "AgentImage", "AgentAudio") else replacement.text


def _replace_told(error: Any, replacement: Replacement, _: Invocation) -> Any:
    """Put a replacement into the framework's own exception."""
    if not is_named(error, "AgentError"):
        return LEFT_ALONE
    error.message = replacement.text
    error.args = (replacement.text,)
    return error


def _inject(invocation: Invocation, values: dict[str, Any]) -> None:
    """Put arguments into the call in the call's form: a single dictionary, by position or by name."""
    if len(invocation.args) == 1 and is_dict(invocation.args[0]) and not _named(invocation):
        invocation.args = ({**fields(invocation.args[0]), **values},)
        return
    names = list(invocation.instance.inputs)
    for name, value in values.items():
        invocation.put(names.index(name) if name in names else len(invocation.args), name, value)


def _named(invocation: Invocation) -> dict[str, Any]:
    return {name: value for name, value in invocation.kwargs.items() if name != "sanitize_inputs_outputs"}


def _is_refusal(error: BaseException) -> bool:
    cause = cause_of(error)
    return is_named(error, "AgentToolCallError") and cause is not None and is_raised_within(cause, "smolagents")


tool = ToolReader(
    _tool_call,
    _result,
    replace=_replace,
    parameters=lambda invocation: tuple(fields(invocation.instance.inputs)),
    inject=_inject,
)
execute = ToolReader(
    _agent_call,
    _result,
    tool,
    station=HANDED_BACK,
    is_refusal=_is_refusal,
    failure_text=message_of("AgentError"),
    replace=_replace_told,
)
managed = ToolReader(
    lambda invocation: ToolCall(invocation.instance.name, {"task": invocation.arg(0, "task")}, is_agent=True), _result
)


@revising
def in_thread(_: Invocation, decorate: Any) -> Any:
    """Pass the context on to the thread of the decorated function, so that tool calls there belong to the run."""
    return functools.partial(_decorate_in_context, decorate) if switches.enabled else decorate


def _decorate_in_context(decorate: Callable[..., Any], function: Callable[..., Any]) -> Any:
    here = contextvars.copy_context()

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return here.copy().run(function, *args, **kwargs)

    return decorate(run)


agent_run = RunReader(run_named())
