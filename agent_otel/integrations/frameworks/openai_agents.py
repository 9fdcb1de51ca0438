"""OpenAI's Agents SDK, whose function for one tool call has had four forms.

From 0.12 on there are two functions to wrap: produced is read where the SDK invokes the tool, handed back at
``_run_single_tool``, after output guardrails. Before that the call is a closure, and ``on_invoke_tool`` itself cannot
be wrapped because tools are compared by identity; but each call runs in a task of its own, and two functions that
can be wrapped stand right before and after the handler, the tool guardrails. So there a call begins before the input
guardrails, is produced when the output guardrails get it, and is handed back when its task is done. The SDK turns
exceptions into text for the model; which exception it was is read on the way to that text.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
import sys
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from agent_otel._internal import errors
from agent_otel.core import handler
from agent_otel.core.plain import fields, is_named, properties, text, text_of
from agent_otel.core.types import HANDED_BACK, LEFT_ALONE, PRODUCED, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.frameworks.openai_agents_actions import ACTIONS
from agent_otel.integrations.frameworks.openai_agents_runs import RUNS
from agent_otel.integrations.hooks import Hook, Passing
from agent_otel.integrations.reader_functions import cause_behind
from agent_otel.integrations.registry.entries import Candidate, Integration, Site, Wrap
from agent_otel.integrations.runtimes.openai_agents_sessions import SESSIONS
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_otel.core.types import Invocation, Replacement

ENTRY = Integration(
    "openai-agents",
    distribution="openai-agents",
    minimum="0.7",
    tested="0.7 to 0.24; sessions: SQLite, a real Redis, FerretDB for MongoDB, a stand-in for Dapr's sidecar",
    uncovered="handoffs; of shells what the cut that the model asks for leaves out; the ceiling and the claim check on "
    "shells, patches, computers and custom tools; these four before 0.8; sessions that the provider keeps, "
    "`SQLiteSession` before 0.15 and `AsyncSQLiteSession` before 0.20",
    sites=(
        Site(
            Candidate(  # 0.19 and later
                "agents.run_internal.tool_execution",
                Wrap("_invoke_function_tool_with_metadata", "invoke"),
                Wrap("_FunctionToolBatchExecutor._run_single_tool", "single_tool"),
            ),
            Candidate(  # 0.12 to 0.18
                "agents.run_internal.tool_execution",
                Wrap("invoke_function_tool", "invoke"),
                Wrap("_FunctionToolBatchExecutor._run_single_tool", "single_tool"),
            ),
            Candidate(  # 0.8 to 0.11: a closure in execute_function_tool_calls
                "agents.run_internal.tool_execution",
                Wrap("_execute_tool_input_guardrails", "calling"),
                Wrap("_execute_tool_output_guardrails", "returned"),
            ),
            Candidate(  # up to 0.7: a closure in RunImpl.execute_function_tool_calls
                "agents._run_impl",
                Wrap("RunImpl._execute_input_guardrails", "calling"),
                Wrap("RunImpl._execute_output_guardrails", "returned"),
            ),
        ),
        RUNS,
        Site(
            Candidate(
                "agents.tool",
                Wrap("maybe_invoke_function_tool_failure_error_function", "swallowed"),
                Wrap("default_tool_timeout_error_message", "timed_out"),
            ),
            Candidate("agents.tool", Wrap("_extract_tool_argument_json_error", "swallowed")),  # up to 0.11
        ),
        Site(
            Candidate("agents.realtime.session", Wrap("invoke_function_tool", "invoke")),
            adapter="frameworks.openai_agents_live",
            minimum="0.9",
        ),
        ACTIONS,
        *SESSIONS,
    ),
)


def _call(tool: Any, arguments: Any, call_id: str | None, agent: Any, config: Any) -> ToolCall:
    return ToolCall(
        name=tool.name,
        arguments=arguments,
        call_id=call_id,
        agent=getattr(agent, "name", None),
        execution=getattr(config, "group_id", None),
    )


def _context_call(tool: Any, context: Any, agent: Any = None) -> ToolCall:
    return _call(
        tool,
        context.tool_arguments,
        context.tool_call_id,
        getattr(context, "agent", None) if agent is None else agent,
        getattr(context, "run_config", None),
    )


def _invoke_call(invocation: Invocation) -> ToolCall:
    return _context_call(invocation.kwargs["function_tool"], invocation.kwargs["context"])


def _single_call(invocation: Invocation) -> ToolCall:
    executor = invocation.instance
    call = invocation.kwargs["tool_call"]
    # An agent prepared for a run is a copy; the public one is what the program named.
    public = getattr(executor, "public_agent", None)
    agent = getattr(executor, "agent", None) if public is None else public
    return _call(invocation.kwargs["func_tool"], call.arguments, call.call_id, agent, executor.config)


def _guarded_call(invocation: Invocation) -> ToolCall:
    return _context_call(invocation.kwargs["func_tool"], invocation.kwargs["tool_context"], invocation.kwargs["agent"])


def _text(output: Any) -> Any:
    """Return a single text output of the SDK (an object or a dictionary) as a list of one block, others unchanged."""
    if type(output) is dict:
        return [output] if text(fields(output).get("type")) == "text" else output
    return [output] if is_named(output, "ToolOutputText") else output


def _result(output: Any) -> ToolResult:
    """Read a handler's output; since 0.19 it comes with a mark where the SDK has made it out of an exception."""
    if not is_named(output, "_FunctionToolInvocationResult"):
        return ToolResult(_text(output))
    if output.is_sdk_generated_error:
        return ToolResult(output.output, error_type=TOOL_ERROR, raised=True)
    return ToolResult(_text(output.output))


def _handed_back(output: Any) -> ToolResult | None:
    """Read the value that the loop gets; a FunctionToolResult may stand for an approval that is pending or refused."""
    if not is_named(output, "FunctionToolResult"):
        return ToolResult(_text(output))
    return None if output.output is None else ToolResult(output.output)


def _tool(invocation: Invocation) -> Any:
    named = invocation.kwargs
    return named["function_tool"] if "function_tool" in named else named["func_tool"]


def _replace(output: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Put a replacement into what the SDK gets of a handler; what a tool declares as its output must be that."""
    if getattr(_tool(invocation), "output_json_schema", None) is not None:
        return LEFT_ALONE
    if is_named(output, "_FunctionToolInvocationResult"):
        return dataclasses.replace(output, output=replacement.text)
    # A skipped tool's text takes the form of the function's result: since 0.19 an object of its own class.
    kind = getattr(sys.modules["agents.tool"], "_FunctionToolInvocationResult", None) if output is None else None
    return replacement.text if kind is None else kind(replacement.text)


def _inject(invocation: Invocation, values: dict[str, Any]) -> bool:
    """Put arguments into the JSON text that the tool gets; the context and the SDK's span keep the model's."""
    arguments = text(invocation.kwargs.get("arguments"))
    if arguments is None:
        return False
    given = json.loads(arguments) if arguments.strip() else {}
    invocation.kwargs = {**invocation.kwargs, "arguments": json.dumps({**given, **values})}
    return True


def _parameters(invocation: Invocation) -> Iterable[str]:
    return properties(_tool(invocation).params_json_schema)


def _is_refusal(error: BaseException) -> bool:
    return is_named(error, "ModelBehaviorError") and text_of(error, 40).startswith("Invalid JSON input for tool")


invoke = ToolReader(
    PRODUCED,
    _invoke_call,
    _result,
    is_refusal=_is_refusal,
    replace=_replace,
    parameters=_parameters,
    inject=_inject,
    also_timed_by=("opentelemetry.instrumentation.genai.openai_agents:OpenAIAgentsInstrumentor",),
)
single_tool = ToolReader(HANDED_BACK, _single_call, _handed_back, invoke)
_unguarded = invoke._replace(call=_guarded_call, inject=None)
_guarded = ToolReader(HANDED_BACK, _guarded_call, _handed_back, _unguarded)


def _timed_out(_: Invocation) -> None:
    if (error := sys.exc_info()[1]) is not None:
        handler.handler_raised(error, invoke)


async def _calling(wrapped: Callable[..., Any], invocation: Invocation) -> Any:
    """Begin a call before its input guardrails; the answer of a limit takes the place of their refusal."""
    visit = _enter(invocation)
    if visit is not None:
        await visit.atake_turn()
    answer = await handler.askipped(_unguarded, invocation)
    return await wrapped(*invocation.args, **invocation.kwargs) if answer is LEFT_ALONE else answer


@errors.guarded("openai_agents.enter")
def _enter(invocation: Invocation) -> handler.Visit | None:
    task = asyncio.current_task()
    before = copy_context()
    visit = handler.enter_tool(_guarded, invocation)
    if isinstance(visit, handler.Visit) and task is not None:
        visit.__enter__()
        handler.handler_started()
        task.add_done_callback(functools.partial(_done, visit), context=before)
        return visit
    return None


async def _returned(wrapped: Callable[..., Any], invocation: Invocation) -> Any:
    """Hand a result on to the output guardrails."""
    result = await handler.aremedied(_unguarded, invocation.kwargs["real_result"], invocation)
    handler.handler_left()
    return await wrapped(*invocation.args, **{**invocation.kwargs, "real_result": result})


_own = cause_behind("UserError")  # which the SDK makes of a tool's exception, and raises itself, too


@errors.guarded("openai_agents.done")
def _done(visit: handler.Visit, task: asyncio.Task[Any]) -> None:
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    if error is None:
        visit.returned(task.result())
        visit.__exit__(None, None, None)
    else:
        error = _own(error)
        visit.__exit__(type(error), error, None)


swallowed = Hook(lambda invocation: handler.handler_raised(invocation.arg(0, "error"), invoke))
timed_out = Hook(_timed_out)
calling = Passing(_calling)
returned = Passing(_returned)
