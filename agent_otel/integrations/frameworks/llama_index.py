"""LlamaIndex: agents, workflows of agents, and tools that workflows of the program call themselves.

Produced is read at ``_call_tool`` of both classes of agents, handed back at their step ``call_tool``, which knows the
call's id. What ``_call_tool`` returns has the tool's exception, and the output from before a callback. A tool that
an agent calls is part of that call. A workflow of agents passes no agent's name to its tools.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from agent_otel._internal.errors import ours
from agent_otel._internal.object_kinds import fields, is_named, is_text, listed, text
from agent_otel.core import handler
from agent_otel.core.types import HANDED_BACK, LEFT_ALONE, AgentRun, RunReader, ToolCall, ToolReader, ToolResult
from agent_otel.integrations import payloads
from agent_otel.integrations.hooks import Hook, on_return
from agent_otel.integrations.readers import call_at, inject_into, raises, raises_within
from agent_otel.integrations.registry import Candidate, Integration, Site
from agent_otel.semconv import HISTORY, STATE, TOOL_ERROR

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from agent_otel.core.types import Invocation, Replacement


ENTRY = Integration(
    "llama-index",
    distribution="llama-index-core",
    minimum="0.14",
    tested="0.14.25",
    uncovered="the agent's name on calls in a workflow of agents; functions in the code of a `CodeActAgent` (part of "
    "the call of `execute`); query engines that another engine routes a question to; a tool of your own class that "
    "the program calls",
    packages=("llama_index.core",),
    sites=(
        Candidate(
            "llama_index.core.agent.workflow.base_agent",
            inner="BaseWorkflowAgent._call_tool",
            outer="BaseWorkflowAgent.call_tool",
        ),
        Candidate(
            "llama_index.core.agent.workflow.multi_agent_workflow",
            inner="AgentWorkflow._call_tool",
            outer="AgentWorkflow.call_tool",
        ),
        Candidate("llama_index.core.tools.function_tool", tool="FunctionTool.call FunctionTool.acall"),
        *(
            Candidate(f"llama_index.core.tools.{module}", tool=f"{kind}.call {kind}.acall")
            for module, kind in (
                ("query_engine", "QueryEngineTool"),
                ("retriever_tool", "RetrieverTool"),
                ("ondemand_loader_tool", "OnDemandLoaderTool"),
            )
        ),
        Candidate("llama_index.core.tools.query_plan", tool="QueryPlanTool.__call__"),
        # The tools that the program passes to a model with the question (``predict_and_call``).
        Candidate("llama_index.core.tools.calling", selected="call_tool_with_selection acall_tool_with_selection"),
        Candidate("llama_index.core.workflow.workflow", run="Workflow.run"),  # that of an agent passes it
        # Its span of a tool is within the function that opens this package's, and has the tool's name at its end.
        Site(
            Candidate(
                "openinference.instrumentation.llama_index._handler",
                started="_SpanHandler.new_span",
                ending="_SpanHandler.prepare_to_exit_span",
                failing="_SpanHandler.prepare_to_drop_span",
            ),
            beside=("openinference.instrumentation.llama_index",),
        ),
        Candidate("workflows.context.context", saved="Context.to_dict", restored="Context.from_dict"),
    ),
)

#: Agents that write results into texts for the model.
_IN_TEXT = ("ReActAgent", "CodeActAgent")


def _inner_call(invocation: Invocation) -> ToolCall:
    metadata = invocation.arg(1, "tool").metadata
    return ToolCall(metadata.name, invocation.arg(2, "tool_input"), agent=getattr(invocation.instance, "name", None))


def _outer_call(invocation: Invocation) -> ToolCall:
    workflow, event = invocation.instance, invocation.arg(1, "ev")
    agents = fields(getattr(workflow, "agents", None)).values() or (workflow,)
    # The id is one of the framework's own then, as where it takes the tool's name: no request contains it.
    call_id = event.tool_name if all(is_named(agent, *_IN_TEXT) for agent in agents) else event.tool_id
    return ToolCall(event.tool_name, event.tool_kwargs, call_id, getattr(workflow, "name", None))


def _tool_call(invocation: Invocation) -> ToolCall:
    metadata = invocation.instance.metadata
    context = text(getattr(invocation.instance, "ctx_param_name", None))
    named = {name: value for name, value in invocation.kwargs.items() if name != context}
    return ToolCall(metadata.name, {**dict(zip(_properties(metadata), invocation.args, strict=False)), **named})


def _properties(metadata: Any) -> tuple[str, ...]:
    return tuple(fields(getattr(metadata.fn_schema, "model_fields", None)))


def produced(output: Any) -> ToolResult:
    """Read an output: the text that the tool returned, or what the framework makes of it; or the tool's exception."""
    error = getattr(output, "exception", None)
    if error is not None:
        handler.handler_raised(error, inner)
        return ToolResult(_content(output), raised=True)
    raw = output.raw_output
    return ToolResult(raw if is_text(raw) else _content(output), error_type=_flag(output))


def _handed_back(event: Any) -> ToolResult:
    output = event.tool_output
    return ToolResult(_content(output), error_type=_flag(output))


def _content(output: Any) -> Any:
    """Return the text for the model, or the blocks where one is an image or another file."""
    return output.blocks if any(not is_named(block, "TextBlock") for block in listed(output.blocks)) else output.content


def _flag(output: Any) -> str | None:
    """Return the type of a flagged error; that of an MCP server's answer is only in the answer."""
    raw = output.raw_output
    answer = fields(raw) if is_named(raw, "CallToolResult") else {}
    is_error = output.is_error is True or answer.get("isError", answer.get("is_error")) is True
    return TOOL_ERROR if is_error else None


def _replace(output: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Put a replacement into a copy of the output, because a tool may keep the object that it returns."""
    if output is None:
        made = sys.modules["llama_index.core.tools.types"].ToolOutput
        name, given = invocation.arg(1, "tool").metadata.name, invocation.arg(2, "tool_input")
        return made(name, replacement.text, None, given, replacement.text, replacement.is_error)
    if any(not is_named(block, "TextBlock") for block in listed(output.blocks)):
        return LEFT_ALONE
    changed = output.model_copy()
    changed.content = changed.raw_output = replacement.text
    changed.is_error = changed.is_error or replacement.is_error
    return changed


_is_refusal = raises_within("llama_index", "TypeError")
_is_control_flow = raises("WaitingForEvent")  # by which a tool waits; behind it the step runs again
inner = ToolReader(
    _inner_call,
    produced,
    opened_by="llama-index",
    is_control_flow=_is_control_flow,
    is_refusal=_is_refusal,
    replace=_replace,
    parameters=lambda invocation: _properties(invocation.arg(1, "tool").metadata),
    inject=inject_into(2, "tool_input"),
    also_timed_by=("opentelemetry.instrumentation.genai.llama_index:LlamaIndexInstrumentor",),
)
outer = ToolReader(_outer_call, _handed_back, inner, station=HANDED_BACK, is_control_flow=_is_control_flow)
tool = ToolReader(
    _tool_call, produced, opened_by="llama-index", is_control_flow=_is_control_flow, is_refusal=_is_refusal
)
selected = tool._replace(call=call_at(0, "tool_call", "tool_name", "tool_kwargs", "tool_id"))


def _run(invocation: Invocation) -> AgentRun:
    """Read a run: of an agent, of several that begins with one of them, or of a workflow of the program's own."""
    workflow = invocation.instance
    if is_named(workflow, "BaseWorkflowAgent", "AgentWorkflow"):
        return AgentRun(name_of(workflow))
    return AgentRun(workflow=type(workflow).__name__)


#: Make a span of each run.
_ALSO_TRACED_BY = (
    "openinference.instrumentation.llama_index:LlamaIndexInstrumentor",
    "opentelemetry.instrumentation.llamaindex:LlamaIndexInstrumentor",
)
# Where the handler is not the task of the run itself, it has one.
run = RunReader(_run, lambda running: getattr(running, "_result_task", running), also_traced_by=_ALSO_TRACED_BY)

# LlamaIndex beside OpenInference, whose span of a tool is open while the tool runs, and gets the numbers. The hooks
# hold that span for the call, and read the result before it ends.


def _is_of_a_tool(invocation: Invocation) -> bool:
    return is_named(invocation.arg(2, "instance"), "BaseTool")


def _open_span(invocation: Invocation) -> Span | None:
    """Return the open span of a tool, None for what is none."""
    if not _is_of_a_tool(invocation):
        return None
    return getattr(invocation.instance.open_spans.get(invocation.arg(0, "id_")), "_otel_span", None)


@on_return
def started(invocation: Invocation, value: Any) -> None:
    span = getattr(value, "_otel_span", None)
    if span is not None and _is_of_a_tool(invocation):
        handler.span_started(span)


@Hook
def ending(invocation: Invocation) -> None:
    span = _open_span(invocation)
    if span is not None:
        handler.span_finishing(produced, invocation.arg(3, "result"), span)


@Hook
def failing(invocation: Invocation) -> None:
    span = _open_span(invocation)
    if span is not None:
        handler.span_failing(invocation.arg(3, "err"), inner, span)


# LlamaIndex: contexts of workflows that a program saves and restores. ``Context.to_dict`` returns all that a workflow
# carries, and ``from_dict`` begins with it. The framework stores nothing itself: the bytes are those of the
# dictionary as JSON.


def name_of(workflow: Any) -> str | None:
    """Return the name of an agent, or of the first one of several; None for a workflow of the program's own."""
    if is_named(workflow, "BaseWorkflowAgent", "AgentWorkflow"):
        return text(getattr(workflow, "root_agent", None)) or text(getattr(workflow, "name", None))
    return None


@on_return
def saved(invocation: Invocation, saved: Any) -> None:
    _report(invocation.instance._face._workflow, STATE, saved)


@on_return
def restored(invocation: Invocation, _: Any) -> None:
    _report(invocation.arg(0, "workflow"), HISTORY, invocation.arg(1, "data"))


def _report(workflow: Any, direction: str, value: Any) -> None:
    try:
        size = len(json.dumps(value))
    except ours(TypeError, ValueError):
        return  # a serializer of the program's own, which makes no JSON
    name = name_of(workflow) or type(workflow).__name__
    payloads.report("llama-index", None, direction, size, value, agent=name)
