"""AgentScope.

Produced is read at ``Toolkit.call_tool``, whose last event has the whole result and the text that it makes of an
exception; handed back where the agent saves a result in its context, behind middleware and its own limit of 50,000
tokens. Both are generators within ``Agent._execute_tool_call``.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from agent_otel._internal.errors import attempt
from agent_otel._internal.object_kinds import fields, is_dict, is_named, listed, text
from agent_otel.core import handler
from agent_otel.core.types import HANDED_BACK, LEFT_ALONE, AgentRun, RunReader, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.hooks import Hook, after
from agent_otel.integrations.readers import call_at, nothing
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation, Replacement

ENTRY = Integration(
    "agentscope",
    minimum="2.0.10",
    tested="2.0.10",
    uncovered="tools that the program executes (`is_external_tool`); realtime agents and agents over A2A; the "
    "exception's class of a tool that raises in a generator; `agentscope` 1",
    sites=(
        Candidate("agentscope.tool._toolkit", tool="Toolkit.call_tool"),
        Candidate("agentscope.tool._adapters", calling="FunctionTool.call MCPTool.call"),
        Candidate(
            "agentscope.agent._agent",
            execute="Agent._execute_tool_call",
            saving="Agent._save_to_context",
            agent_run="Agent.reply Agent.reply_stream",
        ),
    ),
)

_FAILED = ("error", "denied", "interrupted")
# Begin the framework's texts about arguments that it has refused.
_REFUSED = ("Input validation failed", "Failed to parse")
# Events at which a reply ends until the program answers them.
_PAUSES = ("RequireUserConfirmEvent", "RequireExternalExecutionEvent")


_call = call_at(0, "tool_call", "name", "input", "id")


def _execute_call(invocation: Invocation) -> ToolCall:
    agent = invocation.instance
    return _call(invocation)._replace(agent=text(agent.name), execution=text(getattr(agent.state, "session_id", None)))


def _result(event: Any) -> ToolResult | None:
    """Read the last event, which has the whole result, at once: the agent saves the result while it is current."""
    if not is_named(event, "ToolResponse"):
        return None
    result = ToolResult(_content(event.content), error_type=_flag(event))
    if handler.result_remedies() is None:
        handler.handler_returned(result)
    return result


def _content(content: Any) -> Any:
    """Return the texts as blocks that count as text, or all blocks where one is an image or another file."""
    blocks = listed(content)
    if any(not is_named(block, "TextBlock") for block in blocks):
        return content
    return [{"type": "text", "text": block.text} for block in blocks]


def _flag(result: Any) -> str | None:
    return TOOL_ERROR if text(result.state) in _FAILED else None


@Hook
def saving(invocation: Invocation) -> None:
    for block in listed(invocation.arg(0, "blocks")):
        if is_named(block, "ToolResultBlock"):
            said = text(block.output)  # a text alone is the framework's own, about a call that it does not make
            value = _content(block.output) if said is None else said
            is_refused = (said or "").startswith(_REFUSED)
            handler.handing_back(ToolResult(value, None, _flag(block), said is not None, is_refused))


@after
def calling(_: Invocation, __: Any, error: BaseException | None) -> None:
    """Record a tool's exception, before the framework makes a text of it."""
    if error is not None:
        handler.handler_raised(error, tool)


def _replace(event: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Put a replacement into the last event, which the framework has made."""
    blocks = sys.modules["agentscope.message"].TextBlock(text=replacement.text)
    if event is None:
        made = sys.modules["agentscope.tool"].ToolResponse
        return made(content=[blocks], id=invocation.arg(0, "tool_call").id, state="error")
    if any(not is_named(block, "TextBlock") for block in listed(event.content)):
        return LEFT_ALONE
    event.content = [blocks]
    return event


def _arguments(invocation: Invocation) -> dict[str, Any]:
    """Return the arguments; none where the framework has to mend the model's text first."""
    arguments = attempt(json.loads, text(invocation.arg(0, "tool_call").input) or "")
    return arguments if is_dict(arguments) else {}


def _inject(invocation: Invocation, values: dict[str, Any]) -> None:
    """Put arguments into a copy of the call, which stays in the agent's context as it is."""
    arguments = json.dumps({**_arguments(invocation), **values}, ensure_ascii=False)
    invocation.put(0, "tool_call", invocation.arg(0, "tool_call").model_copy(update={"input": arguments}))


tool = ToolReader(
    _call,
    _result,
    events=True,
    replace=_replace,
    parameters=lambda invocation: tuple(_arguments(invocation)),
    inject=_inject,
)
# `saving` reads the result that the agent keeps.
execute = ToolReader(_execute_call, nothing, tool, station=HANDED_BACK, events=True)


def _run(invocation: Invocation) -> AgentRun:
    agent = invocation.instance
    is_traced = any(is_named(each, "TracingMiddleware") for each in listed(fields(agent).get("_reply_middlewares")))
    return AgentRun(text(agent.name), text(getattr(agent.state, "session_id", None)), traces=is_traced)


agent_run = RunReader(_run, pauses=lambda item: is_named(item, *_PAUSES))
