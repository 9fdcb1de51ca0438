"""AutoGen.

Produced is read at a tool's own ``run`` or ``run_stream``, within the framework's span of the tool. In an assistant's
workbench without such tools, as of an MCP server, it is read at ``call_tool``. Handed back is read at
``AssistantAgent._execute_tool_call``, after the conversion of exceptions into text. A tool that runs without an
assistant has its call's id from ``BaseTool.run_json``, which validates the arguments as well.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from agent_otel._internal.object_kinds import fields, is_named, is_text, listed, text
from agent_otel.core import handler
from agent_otel.core.types import HANDED_BACK, LEFT_ALONE, AgentRun, RunReader, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.hooks import Family, Hook, Within
from agent_otel.integrations.readers import for_agents, raises_within, run_named
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.core.types import Invocation, Replacement

ENTRY = Integration(
    "autogen",
    distribution="autogen-core",
    minimum="0.7.5",
    tested="0.7.5",
    uncovered="code of a `CodeExecutorAgent`; actions of `MultimodalWebSurfer` and `FileSurfer`, which have no tools",
    packages=("autogen_core", "autogen_agentchat"),
    sites=(
        Candidate("autogen_core.tools._base", tools="BaseTool.__init__", validating="BaseTool.run_json"),
        Candidate(
            "autogen_agentchat.agents._assistant_agent",
            execute="AssistantAgent._execute_tool_call",
            workbenches="AssistantAgent.__init__",
        ),
        Candidate("autogen_agentchat.agents._base_chat_agent", agent_run="BaseChatAgent.run BaseChatAgent.run_stream"),
        Candidate(
            "autogen_agentchat.teams._group_chat._base_group_chat",
            team_run="BaseGroupChat.run BaseGroupChat.run_stream",
        ),
    ),
)

#: Digits of a turn's number; providers give longer ids.
_LONGEST_NUMBER = 5
_call_id: Within[str] = Within("agent_otel_autogen_call_id")


def _is_workbench(invocation: Invocation) -> bool:
    return is_named(invocation.instance, "Workbench")


def _run_call(invocation: Invocation) -> ToolCall | None:
    """Read a call of a tool. An assistant or an MCP session calls the tool of a workbench."""
    if _is_workbench(invocation):
        return None
    return ToolCall(invocation.instance.name, fields(invocation.arg(0, "args")), _call_id.get())


def _execute_call(invocation: Invocation) -> ToolCall:
    """Read a call of the model's; where Ollama gives no ids, the framework gives all of a turn the turn's number."""
    call = invocation.arg(0, "tool_call")
    given = text(call.id) or ""
    is_number = given.isdecimal() and len(given) <= _LONGEST_NUMBER
    return ToolCall(call.name, call.arguments, call.name if is_number else call.id, invocation.arg(3, "agent_name"))


def _result(value: Any) -> ToolResult | None:
    """Read a value, or an item of a stream. An agent that is a tool streams messages before their list."""
    if "source" in fields(value):
        return None
    if is_named(value, "TaskResult"):
        messages = listed(value.messages)
        value = fields(messages[-1]).get("content") if messages else ""
    if is_named(value, "ToolResult"):  # of a workbench
        parts = [fields(part)["content"] for part in listed(value.result)]
        whole = "\n".join(parts) if all(map(is_text, parts)) else parts
        return ToolResult(whole, error_type=TOOL_ERROR if value.is_error is True else None)
    return ToolResult(value)


def _handed_back(pair: Any) -> ToolResult:
    result = pair[1]
    is_error = result.is_error is True
    return ToolResult(result.content, error_type=TOOL_ERROR if is_error else None, raised=is_error)


@for_agents
def _replace(value: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Return a replacement for a value that the framework makes a text."""
    if _is_workbench(invocation):
        return _replace_of_workbench(value, replacement, invocation)
    tool = invocation.instance
    if is_named(tool, "McpToolAdapter"):  # its text is one of contents
        return [sys.modules["mcp.types"].TextContent(type="text", text=replacement.text)]
    is_declared = hasattr(type(tool), "run_stream") and tool.return_type() is not str
    return LEFT_ALONE if is_declared else replacement.text


def _replace_of_workbench(value: Any, replacement: Replacement, invocation: Invocation) -> Any:
    tools = sys.modules["autogen_core.tools"]
    if value is not None and not all(is_named(part, "TextResultContent") for part in listed(value.result)):
        return LEFT_ALONE
    content = [tools.TextResultContent(content=replacement.text)]
    is_error = replacement.is_error or (value is not None and value.is_error)
    return tools.ToolResult(name=invocation.arg(0, "name"), result=content, is_error=is_error)


def _replace_handed_back(pair: Any, replacement: Replacement, _: Invocation) -> Any:
    """Put a replacement into a copy of the result, where it is the text about an exception."""
    if pair is None or pair[1].is_error is not True:
        return LEFT_ALONE
    return pair[0], pair[1].model_copy(update={"content": replacement.text})


def _inject(invocation: Invocation, values: dict[str, Any]) -> None:
    """Add arguments after the validation, to a copy of its result, or to a workbench's arguments."""
    if _is_workbench(invocation):
        invocation.put(1, "arguments", {**fields(invocation.arg(1, "arguments")), **values})
    else:
        invocation.put(0, "args", invocation.arg(0, "args").model_copy(update=values))


def _parameters(invocation: Invocation) -> Any:
    given = invocation.arg(1, "arguments") if _is_workbench(invocation) else invocation.arg(0, "args")
    return tuple(fields(given))


_is_refusal = raises_within("autogen_core", "ValidationError")
run = ToolReader(
    _run_call, _result, is_refusal=_is_refusal, events=True, replace=_replace, parameters=_parameters, inject=_inject
)
execute = ToolReader(_execute_call, _handed_back, run, station=HANDED_BACK, replace=_replace_handed_back)


@Family
def tools(tool: Any) -> Iterable[tuple[type, str, ToolReader]]:
    yield type(tool), "run", run
    if hasattr(type(tool), "run_stream"):
        yield type(tool), "run_stream", run


@Family
def workbenches(agent: Any) -> Iterable[tuple[type, str, ToolReader]]:
    """Yield the functions of an assistant's workbenches that do not call a tool's own."""
    for workbench in listed(fields(agent).get("_workbench")):
        if not is_named(workbench, "StaticWorkbench"):
            yield type(workbench), "call_tool", run


def _validated(_: Invocation, __: Any, error: BaseException | None) -> None:
    """Record that the framework has refused the arguments, before it makes a text of that."""
    if error is not None and _is_refusal(error):
        handler.handler_raised(error, run)


validating = Hook(lambda invocation: invocation.arg(2, "call_id"), _validated, within=_call_id)


agent_run = RunReader(run_named(traces=True))


team_run = RunReader(lambda invocation: AgentRun(workflow=text(invocation.instance.name) or ""))
