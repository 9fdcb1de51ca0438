"""CAMEL.

Produced is read at both functions that call a tool, and at the one that an async step calls past the tool of an MCP
server. Handed back is read where an agent puts the result in its memory, behind its own limit. Four functions of the
agent know the call's id: for steps and for streams, sync and async.
"""

from __future__ import annotations

import contextvars
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from agent_otel._internal.failures import context_of, is_raised_within, text_of
from agent_otel._internal.object_kinds import fields, is_named, properties, text
from agent_otel.core import handler, switches
from agent_otel.core.types import HANDED_BACK, LEFT_ALONE, RunReader, ToolCall, ToolReader, ToolResult
from agent_otel.integrations import wrap
from agent_otel.integrations.hooks import Hook, on_return
from agent_otel.integrations.readers import for_agents, inject_by_name, nothing, run_named
from agent_otel.integrations.registry import Candidate, Integration

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation, Replacement

ENTRY = Integration(
    "camel",
    distribution="camel-ai",
    minimum="0.2.90",
    tested="0.2.90, beside MCP's SDK 1",
    uncovered="the run, in a sync stream; tools that the program executes (`external_tools`); in an async step, a "
    "remedy of an exception's text; code of an `EmbodiedAgent`",
    sites=(
        Candidate(
            "camel.toolkits.function_tool",
            tool="FunctionTool.__call__ FunctionTool.async_call",
            making="FunctionTool.__init__",
        ),
        # Async steps run sync tools in these threads.
        Candidate("camel.toolkits.function_tool", submitting="_SYNC_TOOL_EXECUTOR.submit"),
        Candidate(
            "camel.agents.chat_agent",
            execute="ChatAgent._execute_tool ChatAgent._aexecute_tool",
            execute_streamed="ChatAgent._execute_tool_from_stream_data ChatAgent._aexecute_tool_from_stream_data",
            remembering="ChatAgent.update_memory",
            agent_run="ChatAgent._step_impl ChatAgent._astep_non_streaming_task ChatAgent._stream ChatAgent._astream",
        ),
    ),
)


def _schema(invocation: Invocation) -> dict[str, Any]:
    return fields(fields(invocation.instance.openai_tool_schema).get("function"))


def _asked(agent: Any, name: Any, arguments: Any, call_id: Any) -> ToolCall | None:
    """Return a call of the model's; a tool that the agent does not have is none."""
    if text(name) not in fields(agent._internal_tools):
        return None
    return ToolCall(name, arguments, call_id, text(agent.role_name))


def _execute_call(invocation: Invocation) -> ToolCall | None:
    request = invocation.arg(0, "tool_call_request")
    return _asked(invocation.instance, request.tool_name, request.args, request.tool_call_id)


def _streamed_call(invocation: Invocation) -> ToolCall | None:
    data = fields(invocation.arg(0, "tool_call_data"))
    function = fields(data.get("function"))
    return _asked(invocation.instance, function.get("name"), function.get("arguments"), data.get("id"))


def _result(value: Any) -> ToolResult:
    """Read the result of a tool, or its kept part: for an exception in a stream, Python's text of a dictionary."""
    known = value if type(value) is dict else {}
    if len(known) == 1 and (error := text(known.get("error"))) is not None:
        value = str({"error": error})
    return ToolResult(value.text if is_named(value, "ToolResult") else value)


@Hook
def remembering(invocation: Invocation) -> None:
    message = invocation.arg(0, "message")
    if is_named(message, "FunctionCallingMessage") and message.tool_call_id is not None:
        handler.handing_back(ToolResult("[MASKED]") if message.mask_output is True else _result(message.result))


def _cause(error: BaseException) -> BaseException:
    """Return the tool's own exception; the framework raises another one with the arguments in its text."""
    own = context_of(error) if is_named(error, "ValueError") and is_raised_within(error, "camel") else None
    return own if own is not None and text_of(error, 30).startswith("Execution of function") else error


def _is_refusal(error: BaseException) -> bool:
    cause = _cause(error)
    if is_named(cause, "ValueError") and text_of(cause, 30).startswith("Argument coercion"):
        return True
    return is_named(cause, "TypeError") and is_raised_within(cause, "camel")


@for_agents
def _replace(value: Any, replacement: Replacement, _: Invocation) -> Any:
    """Return a replacement for a text."""
    return LEFT_ALONE if is_named(value, "ToolResult") else replacement.text


tool = ToolReader(
    lambda invocation: ToolCall(text(_schema(invocation).get("name")) or "", invocation.kwargs),
    _result,
    is_refusal=_is_refusal,
    cause=_cause,
    replace=_replace,
    parameters=lambda invocation: properties(_schema(invocation).get("parameters")),
    inject=inject_by_name,
)


@on_return
def making(invocation: Invocation, _: Any) -> None:
    """Put the reader around the function that the toolkits leave at the one of a tool, which cannot be awaited."""
    given: Any = getattr(invocation.instance, "func", None)
    later = vars(given).get("async_call") if type(given) is FunctionType else None
    if type(later) is FunctionType:

        async def call(_: Any, **arguments: Any) -> Any:
            return await later(**arguments)

        given.async_call = wrap.around(MethodType(call, invocation.instance), tool)


# The record of a call has the result before the limit; `remembering` reads the result that the agent keeps.
execute = ToolReader(_execute_call, nothing, tool, station=HANDED_BACK)
execute_streamed = execute._replace(call=_streamed_call)


@Hook
def submitting(invocation: Invocation) -> None:
    """Pass the context on, so that the tool's own spans and references to stored results belong to the run."""
    if switches.enabled:
        invocation.args = (contextvars.copy_context().run, *invocation.args)


agent_run = RunReader(run_named("role_name", "agent_id"))
