"""Google's Agent Development Kit.

Produced is read where it calls a tool, handed back where it makes an event of the result, after callbacks and plugins.
With Gemini its ids of calls are its own: they never reach the model, which knows a result by its tool's name.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from agent_otel.core import handler
from agent_otel.core.plain import fields, is_dict, is_named, listed, sole, text
from agent_otel.core.types import (
    HANDED_BACK,
    LEFT_ALONE,
    PRODUCED,
    AgentRun,
    RunReader,
    ToolCall,
    ToolReader,
    ToolResult,
)
from agent_otel.integrations.hooks import Hook, Passing
from agent_otel.integrations.reader_functions import inject_into, raises
from agent_otel.integrations.registry.entries import Candidate, Integration, Site, Wrap
from agent_otel.integrations.runtimes.google_adk_sessions import SESSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_otel.core.types import Invocation, Replacement

ENTRY = Integration(
    "google-adk",
    distribution="google-adk",
    minimum="1.15",
    tested="1.15 and 2.13, with Gemini",
    uncovered="tools that Gemini runs; tools that are nodes of workflows before 2.13; in live runs, what is handed "
    "back, and what a tool streams; tools of `AntigravityAgent`, which another SDK runs; the state in "
    "`SqliteSessionService`; sessions in PostgreSQL's columns of JSON",
    packages=("google.adk",),
    sites=(
        Site(
            Candidate(  # 2.10 and later
                "google.adk.flows.llm_flows.tools._caller",
                Wrap("_call_tool_async", "call_tool"),
                Wrap("_execute_single_prepared_call", "prepared_call"),
                Wrap("_build_response_event", "building"),
            ),
            Candidate(
                "google.adk.flows.llm_flows.functions",
                Wrap("__call_tool_async", "call_tool"),
                Wrap("_execute_single_function_call_async", "single_call"),
                Wrap("__build_response_event", "building"),
            ),
        ),
        # Live runs: a pool of threads has a function of its own. The others are the same under the names by which they
        # were imported; they are wrapped by now, unless activation was late.
        Site(
            Candidate(  # 2.10 and later
                "google.adk.flows.llm_flows.tools._live_caller",
                Wrap("_call_tool_in_thread_pool", "call_tool"),
                Wrap("_process_function_live_helper", "live"),
                Wrap("_call_tool_async", "call_tool"),
                Wrap("_execute_single_prepared_call", "prepared_call"),
            ),
            Candidate("google.adk.flows.llm_flows.functions", Wrap("_call_tool_in_thread_pool", "call_tool")),
            Candidate("google.adk.flows.llm_flows.functions", Wrap("__call_tool_live", "call_tool")),  # the oldest ones
        ),
        # A tool that is a node of a workflow, which no model has asked for.
        Site(
            Candidate("google.adk.workflow._tool_node", Wrap("_ToolNode._run_tool_with_plugin_callbacks", "tool_node")),
            minimum="2.13",
        ),
        # The code of a model's answer.
        Site(
            Candidate("google.adk.code_executors.base_code_executor", Wrap("BaseCodeExecutor.__init__", "executors")),
            adapter="frameworks.google_adk_code",
        ),
        Candidate("google.adk.runners", Wrap("Runner.run_async", "agent_run")),
        # The answers of error callbacks, for remedies.
        Site(
            Candidate(
                "google.adk.flows.llm_flows.tools._error_handler", Wrap("run_on_tool_error_callbacks", "answering")
            ),
            minimum="2.10",
        ),
        # The agent of the request that the provider's SDK sends.
        Site(
            Candidate("google.adk.flows.llm_flows.base_llm_flow", Wrap("BaseLlmFlow._call_llm_async", "request")),
            adapter="model_sdks.google_adk",
        ),
        *SESSIONS,
    ),
)

# Emits gen_ai.execute_tool.duration itself, where there is a MeterProvider.
_ALSO_TIMED_BY = ("google.adk.telemetry._metrics:_tool_execution_duration",)

# Its answer to a call without all mandatory arguments.
_MISSING = "failed as the following mandatory input parameters are not present:"


def _call(tool: Any, arguments: Any, context: Any) -> ToolCall:
    session = getattr(context, "session", None) or context._invocation_context.session  # before 1.16
    return ToolCall(tool.name, arguments, context.function_call_id, context.agent_name, session.id)


def _tool_call(invocation: Invocation) -> ToolCall:
    return _call(invocation.arg(0, "tool"), invocation.arg(1, "args"), invocation.arg(2, "tool_context"))


def _node_call(invocation: Invocation) -> ToolCall:
    context, tool = invocation.kwargs["ctx"], invocation.instance.tool
    return ToolCall(tool.name, invocation.kwargs["args"], context.function_call_id, execution=context.session.id)


def _node_result(value: Any) -> ToolResult | None:
    """Read what a node's tool returns; None where it asks a human instead."""
    if is_named(value, "RequestInput", "_AuthPending"):
        handler.handler_deferred()
        return None
    return _produced(value)


def _prepared_call(invocation: Invocation) -> ToolCall | None:
    """Read a call that is about to be made; None if the model made up the tool."""
    prepared = invocation.arg(1, "prepared_call")
    if prepared.tool_lookup_error is not None:
        return None
    return _call(prepared.tool, prepared.function_args, prepared.tool_context)


def _single_call(invocation: Invocation) -> ToolCall | None:
    """Read the same up to 2.8, where nothing is prepared."""
    context, call = invocation.arg(0, "invocation_context"), invocation.arg(1, "function_call")
    if text(call.name) not in invocation.arg(2, "tools_dict"):
        return None
    return ToolCall(call.name, call.args, call.id, invocation.arg(3, "agent").name, context.session.id)


def _produced(value: Any) -> ToolResult:
    """Read a result without the object with one key that Gemini requires around it."""
    refusal = text(sole("error", value))
    return ToolResult(sole("result", value), is_refused=refusal is not None and _MISSING in refusal)


def _replace(value: Any, replacement: Replacement, _: Invocation) -> Any:
    """Return a replacement for what a tool returns, as an object where callbacks would get one."""
    members = (value, *listed(value), *(fields(value).values() if is_dict(value) else ()))
    if any(is_named(member, "Part", "FunctionResponse") for member in members):
        return LEFT_ALONE  # media
    return {"result": replacement.text} if is_dict(value) else replacement.text


def _parameters(invocation: Invocation) -> Iterable[str]:
    return tuple(fields(invocation.arg(1, "args")))


def _replace_answer(_: Any, replacement: Replacement, __: Invocation) -> dict[str, Any]:
    """Return a replacement for what a callback answers in place of an exception."""
    return {"error": replacement.text}


def _answer(value: Any) -> ToolResult | None:
    return None if value is None else ToolResult(value)


async def _answering(wrapped: Callable[..., Any], invocation: Invocation) -> Any:
    """Cut what callbacks answer; without an answer the exception goes on to the program."""
    answer = await wrapped(*invocation.args, **invocation.kwargs)
    return await handler.aremedied(_error_answer, answer, invocation)


def _no_result(_: Any) -> None:
    """Return None for the result of the outer function: by then the kit's span has ended."""


def _building(invocation: Invocation) -> None:
    actions = invocation.arg(2, "tool_context").actions
    if not (actions.requested_tool_confirmations or actions.requested_auth_configs):  # it asks a human instead
        handler.handing_back(_produced(invocation.arg(1, "function_result")))


def _live(invocation: Invocation) -> None:
    """Put off the call of a tool that streams: it runs in a task of its own, where it is measured."""
    if inspect.isasyncgenfunction(getattr(invocation.arg(0, "tool"), "func", None)):
        handler.handler_deferred()


_is_control_flow = raises("NodeInterruptedError")  # by which a workflow waits for a human
call_tool = ToolReader(
    PRODUCED,
    _tool_call,
    _produced,
    is_control_flow=_is_control_flow,
    also_timed_by=_ALSO_TIMED_BY,
    replace=_replace,
    parameters=_parameters,
    inject=inject_into(1, "args"),  # the kit's own spans and callbacks have the model's
)
tool_node = ToolReader(PRODUCED, _node_call, _node_result, is_control_flow=_is_control_flow, replace=_replace)
_error_answer = ToolReader(HANDED_BACK, _tool_call, _answer, replace=_replace_answer)
prepared_call = ToolReader(
    HANDED_BACK,
    _prepared_call,
    _no_result,
    call_tool,
    is_control_flow=_is_control_flow,
)
single_call = prepared_call._replace(call=_single_call)
building = Hook(_building)
live = Hook(_live)
answering = Passing(_answering)


def _run(invocation: Invocation) -> AgentRun:
    """Read a run; the framework opens a span for each itself."""
    agent = fields(fields(invocation.instance).get("agent"))
    return AgentRun(text(agent.get("name")), text(invocation.kwargs.get("session_id")), traces=True)


agent_run = RunReader(_run)
