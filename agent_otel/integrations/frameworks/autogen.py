"""AutoGen.

Produced is read at a tool's own ``run`` or ``run_stream``, within the framework's span of the tool, and handed back at
``AssistantAgent._execute_tool_call``, behind the conversion of exceptions into text. A tool that runs without an
assistant has its call's id from ``BaseTool.run_json``, which validates the arguments as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core import handler
from agent_otel.core.plain import fields, is_named, is_raised_within, listed, text
from agent_otel.core.types import (
    HANDED_BACK,
    LEFT_ALONE,
    NOT_HERE,
    PRODUCED,
    AgentRun,
    RunReader,
    ToolCall,
    ToolReader,
    ToolResult,
)
from agent_otel.integrations.hooks import Family, Hook, Within
from agent_otel.integrations.registry.entries import Candidate, Integration, Wrap
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.core.types import Invocation, Replacement

ENTRY = Integration(
    "autogen",
    distribution="autogen-core",
    minimum="0.7.5",
    tested="0.7.5",
    uncovered="what a `StreamTool` or a tool of an `McpWorkbench` produces (what an `AssistantAgent` hands back is "
    "measured)",
    packages=("autogen_core", "autogen_agentchat"),
    sites=(
        Candidate(
            "autogen_core.tools._base", Wrap("BaseTool.__init__", "tools"), Wrap("BaseTool.run_json", "validating")
        ),
        Candidate("autogen_agentchat.agents._assistant_agent", Wrap("AssistantAgent._execute_tool_call", "execute")),
        Candidate(
            "autogen_agentchat.agents._base_chat_agent",
            Wrap("BaseChatAgent.run", "agent_run"),
            Wrap("BaseChatAgent.run_stream", "agent_run"),
        ),
        Candidate(
            "autogen_agentchat.teams._group_chat._base_group_chat",
            Wrap("BaseGroupChat.run", "team_run"),
            Wrap("BaseGroupChat.run_stream", "team_run"),
        ),
    ),
)

_call_id: Within[str] = Within("agent_otel_autogen_call_id")


def _run_call(invocation: Invocation) -> ToolCall:
    return ToolCall(invocation.instance.name, fields(invocation.arg(0, "args")), _call_id.get())


def _execute_call(invocation: Invocation) -> ToolCall:
    call = invocation.arg(0, "tool_call")
    return ToolCall(call.name, call.arguments, call.id, invocation.arg(3, "agent_name"))


def _result(value: Any) -> ToolResult | None:
    """Read a value, or an item of a stream; an agent behind the tool streams messages before their list."""
    if "source" in fields(value):
        return None
    if is_named(value, "TaskResult"):
        messages = listed(value.messages)
        value = fields(messages[-1]).get("content") if messages else ""
    return ToolResult(value)


def _handed_back(pair: Any) -> ToolResult:
    result = pair[1]
    is_error = result.is_error is True
    return ToolResult(result.content, error_type=TOOL_ERROR if is_error else None, raised=is_error)


def _replace(_: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Return a replacement for a value of which the framework makes a text; a program that calls a tool computes."""
    if not handler.is_made_by_an_agent():
        return NOT_HERE
    tool = invocation.instance
    is_declared = hasattr(type(tool), "run_stream") and tool.return_type() is not str
    return LEFT_ALONE if is_declared else replacement.text


def _replace_handed_back(pair: Any, replacement: Replacement, _: Invocation) -> Any:
    """Put a replacement into a copy of the result, where it is the text about an exception."""
    if pair is None or pair[1].is_error is not True:
        return LEFT_ALONE
    return pair[0], pair[1].model_copy(update={"content": replacement.text})


def _inject(invocation: Invocation, values: dict[str, Any]) -> bool:
    """Put arguments behind the validation, into a copy of what it returned."""
    invocation.put(0, "args", invocation.arg(0, "args").model_copy(update=values))
    return True


def _parameters(invocation: Invocation) -> Iterable[str]:
    return tuple(fields(invocation.arg(0, "args")))


def _is_refusal(error: BaseException) -> bool:
    return is_named(error, "ValidationError") and is_raised_within(error, "autogen_core")


run = ToolReader(
    PRODUCED,
    _run_call,
    _result,
    is_refusal=_is_refusal,
    events=True,
    replace=_replace,
    parameters=_parameters,
    inject=_inject,
)
execute = ToolReader(HANDED_BACK, _execute_call, _handed_back, run, replace=_replace_handed_back)


def _methods(tool: Any) -> Iterable[tuple[type, str, ToolReader]]:
    yield type(tool), "run", run
    if hasattr(type(tool), "run_stream"):
        yield type(tool), "run_stream", run


def _validates(invocation: Invocation) -> Any:
    return invocation.arg(2, "call_id")


def _validated(_: Invocation, __: Any, error: BaseException | None) -> None:
    """Record that the framework has refused the arguments, before it makes a text of that."""
    if error is not None and _is_refusal(error):
        handler.handler_raised(error, run)


tools = Family(_methods)
validating = Hook(_validates, _validated, within=_call_id)


def _agent_run(invocation: Invocation) -> AgentRun:
    """Read an agent's run; the framework opens a span for each itself."""
    return AgentRun(text(invocation.instance.name), traces=True)


def _team_run(invocation: Invocation) -> AgentRun:
    return AgentRun(workflow=text(invocation.instance.name) or "")


agent_run = RunReader(_agent_run)
team_run = RunReader(_team_run)
