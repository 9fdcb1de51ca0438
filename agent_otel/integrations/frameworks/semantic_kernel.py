"""Semantic Kernel.

Produced is read at ``_invoke_internal`` of a kernel function, within the framework's own span and inside function
filters; handed back at ``Kernel.invoke_function_call``, behind all filters and the conversion of exceptions into text.
Neither returns the result: the first leaves it in its context, the second in the chat history.
"""

from __future__ import annotations

import copy
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agent_otel._internal import errors
from agent_otel._internal.failures import is_raised_within, text_of
from agent_otel._internal.object_kinds import fields, is_named, listed, text
from agent_otel.core import execution_context, handler
from agent_otel.core.types import HANDED_BACK, LEFT_ALONE, AgentRun, RunReader, ToolCall, ToolReader, ToolResult
from agent_otel.integrations import wrap
from agent_otel.integrations.hooks import Hook, Passing
from agent_otel.integrations.readers import for_agents
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.core.execution_context import Run
    from agent_otel.core.types import Invocation, Replacement

ENTRY = Integration(
    "semantic-kernel",
    minimum="1.45",
    tested="1.45; its agents do not run on Python 3.14",
    uncovered="`invoke_stream` of a function that the program calls; runs of other agents than `ChatCompletionAgent` "
    "and of orchestrations (their calls are measured); on the framework's own span, the size handed back",
    sites=(
        Candidate(
            "semantic_kernel.functions.kernel_function_from_method",
            function="KernelFunctionFromMethod._invoke_internal",
        ),
        Candidate(
            "semantic_kernel.functions.kernel_function_from_prompt",
            function="KernelFunctionFromPrompt._invoke_internal",
        ),
        Candidate("semantic_kernel.kernel", function_call="Kernel.invoke_function_call"),
        Candidate(
            "semantic_kernel.agents.chat_completion.chat_completion_agent",
            agent_run="ChatCompletionAgent.get_response ChatCompletionAgent.invoke ChatCompletionAgent.invoke_stream",
            preparing="ChatCompletionAgent._prepare_agent_chat_history",
        ),
    ),
)

# Begin the framework's texts about an exception of a function, and about one that the model may not call.
_FAILED = "An error occurred while invoking the function "
_UNKNOWN = "The tool call with name "
#: The id of the result of a call that has none.
_NO_ID = "unknown"
_DIAGNOSTICS = "semantic_kernel.utils.telemetry.agent_diagnostics.decorators"

#: The agent's name, and the outermost run in which it runs.
_agent: ContextVar[tuple[str | None, Run | None]] = ContextVar("agent_otel_semantic_kernel_agent", default=(None, None))


# Keep the agent's name; each function call runs in a task with a copy of this context.
preparing = Hook(lambda invocation: _agent.set((text(invocation.instance.name), execution_context.open_run())))


def _call(invocation: Invocation) -> ToolCall | None:
    """Read a function that the program calls itself; one that is a prompt is a tool only where a model calls it."""
    function, context = invocation.instance, invocation.arg(0, "context")
    if is_named(function, "KernelFunctionFromPrompt"):
        return None
    return ToolCall(function.fully_qualified_name, fields(context.arguments))


def _function_call(invocation: Invocation) -> ToolCall | None:
    """Read a call of the model's; a function that the kernel does not have is none."""
    asked = invocation.arg(0, "function_call")
    plugin_name, function_name = text(asked.plugin_name), text(asked.function_name) or ""
    for name, plugin in fields(invocation.instance.plugins).items():
        function = fields(plugin.functions).get(function_name) if plugin_name in (None, name) else None
        if function is not None:
            tool = function.fully_qualified_name
            # The second is an item's at OpenAI's Responses; without any, the call is still a model's.
            call_id = text(asked.call_id) or text(asked.id) or tool
            agent, run = _agent.get()
            return ToolCall(tool, asked.arguments, call_id, None if run is not None and run.is_over else agent)
    return None


def _produced(result: Any) -> ToolResult:
    value: Any = getattr(result, "value", None)
    if is_named(value, "ChatMessageContent"):
        value = value.content
    return ToolResult("" if value is None else value)


def _handed_back(content: Any) -> ToolResult | None:
    """Read the content that the chat history has got; its text alone shows that the function was not called."""
    if content is None:
        return None
    value = content.result
    said = text(value) or ""
    if is_named(content.inner_content, "FunctionResult"):
        return ToolResult(value, error_type=TOOL_ERROR if said.startswith(_FAILED) else None)
    return ToolResult(value, error_type=TOOL_ERROR, raised=True, is_refused=not said.startswith(_UNKNOWN))


def _is_refusal(error: BaseException) -> bool:
    is_refused = is_named(error, "FunctionExecutionException") and is_raised_within(error, "semantic_kernel")
    return is_refused and text_of(error, 10).startswith("Parameter")


@for_agents
def _replace(result: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Return a result with a replacement."""
    if result is None:
        made = sys.modules["semantic_kernel.functions.function_result"].FunctionResult
        return made(function=invocation.instance.metadata, value=replacement.text)
    if any(is_named(item, "ImageContent", "BinaryContent") for item in (result.value, *listed(result.value))):
        return LEFT_ALONE
    return result.model_copy(update={"value": replacement.text})


def _replace_handed_back(content: Any, replacement: Replacement, _: Invocation) -> Any:
    """Put a replacement into the content, where it is the text about an exception."""
    if content is None or not (text(content.result) or "").startswith(_FAILED):
        return LEFT_ALONE
    content.result = replacement.text
    return content


def _inject(invocation: Invocation, values: dict[str, Any]) -> None:
    """Put arguments into a copy of the context, from which `_result_left` takes the result."""
    context = invocation.arg(0, "context")
    arguments = copy.copy(context.arguments)
    arguments.update(values)
    invocation.put(0, "context", context.model_copy(update={"arguments": arguments}))


_function = ToolReader(
    _call,
    _produced,
    is_refusal=_is_refusal,
    replace=_replace,
    parameters=lambda invocation: tuple(parameter.name for parameter in listed(invocation.instance.parameters)),
    inject=_inject,
)
_outer = ToolReader(_function_call, _handed_back, _function, station=HANDED_BACK, replace=_replace_handed_back)


def _leaving(reader: ToolReader, left: Callable[[Invocation, Invocation], Any]) -> Passing:
    """Measure an async function that leaves its result in an object and returns something else.

    ``left`` returns that result; it gets the call as the framework has made it, and the one that a policy has changed.
    """

    async def run(wrapped: Any, invocation: Invocation) -> Any:
        result = value = None

        async def invoke(*args: Any, **kwargs: Any) -> Any:
            nonlocal result, value
            value = await wrapped(*args, **kwargs)
            with errors.reported("left_result"):
                result = left(invocation, type(invocation)(None, args, kwargs))
            return result

        measured = wrap.wrapper_for(reader, invoke)
        remedied = await measured(invoke, invocation.instance, invocation.args, dict(invocation.kwargs))
        if remedied is not result and reader is _function:
            invocation.arg(0, "context").result = remedied
        return value

    return Passing(run)


def _result_left(given: Invocation, called: Invocation) -> Any:
    """Return the result that a function has left in its context, and put it there without injected arguments."""
    context, used = given.arg(0, "context"), called.arg(0, "context")
    result = used.result
    if used is not context:
        metadata, hidden = fields(getattr(result, "metadata", None)), handler.injected() or {}
        if metadata.get("arguments") is used.arguments:
            shown = {
                name: value for name, value in fields(metadata.get("used_arguments")).items() if name not in hidden
            }
            metadata = {**metadata, "arguments": context.arguments, "used_arguments": shown}
            result = result.model_copy(update={"metadata": metadata})
        context.result = result
    return result


def _content_left(given: Invocation, _: Invocation) -> Any:
    """Return the last content of the chat history if it is the call's; a replacement has been put into it there."""
    items = listed(given.arg(1, "chat_history").messages[-1].items)
    content: Any = items[0] if items else None
    call_id = text(given.arg(0, "function_call").id) or _NO_ID
    return content if is_named(content, "FunctionResultContent") and text(content.id) == call_id else None


function = _leaving(_function, _result_left)
function_call = _leaving(_outer, _content_left)


@RunReader
def agent_run(invocation: Invocation) -> AgentRun:
    agent, settings = invocation.instance, sys.modules[_DIAGNOSTICS].MODEL_DIAGNOSTICS_SETTINGS
    is_traced = settings.enable_otel_diagnostics is True or settings.enable_otel_diagnostics_sensitive is True
    return AgentRun(text(agent.name), text(getattr(invocation.kwargs.get("thread"), "id", None)), traces=is_traced)
