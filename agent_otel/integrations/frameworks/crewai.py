"""CrewAI, on both its ways.

Where the model can call tools, produced is read at the tool's ``run`` and handed back where the executor has formatted
the result and hooks have seen it; what it then puts into a file instead of the request shows at the model. Where an
agent reads its actions in the model's text, produced is read at the structured tool's ``invoke``, handed back at
``ToolUsage.use``, which tries a failed call again. What a tool raises becomes text for the model on both.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from agent_otel._internal.object_kinds import fields, identity, is_dict, is_empty, is_named, is_text, listed, text
from agent_otel.core import execution_context, handler
from agent_otel.core.types import HANDED_BACK, LEFT_ALONE, AgentRun, RunReader, ToolCall, ToolReader, ToolResult
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.readers import for_agents, inject_by_name, refused_within, replace_by_text, run_named
from agent_otel.integrations.registry import Candidate, Integration, Site
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation, Replacement

_CALL = "AgentExecutor._execute_single_native_tool_call"  # in another package up to 1.15.25
ENTRY = Integration(
    "crewai",
    minimum="1.15",
    tested="1.15.0 and 1.15.30",
    uncovered="the crew of a call in a step of a plan; functions that a model of LiteLLM calls (`available_functions`)",
    sites=(
        Site(
            Candidate("crewai.agents.agent_executor", native=_CALL),
            Candidate("crewai.experimental.agent_executor", native=_CALL),
        ),
        Candidate("crewai.agents.step_executor", step="execute_single_native_tool_call"),
        Candidate("crewai.tools.base_tool", run="Tool.run BaseTool.run Tool.arun BaseTool.arun"),
        # Where the model writes its tool calls as text.
        Candidate("crewai.tools.tool_usage", use="ToolUsage.use ToolUsage.ause"),
        Candidate("crewai.tools.structured_tool", invoke="CrewStructuredTool.invoke CrewStructuredTool.ainvoke"),
        # Functions that a program passes to the model itself, which calls them.
        Candidate(
            "crewai.llms.base_llm", function="BaseLLM._handle_tool_execution", failing="BaseLLM._emit_call_failed_event"
        ),
        Candidate("crewai.crew", crew_run="Crew.kickoff Crew.akickoff"),
        Candidate("crewai.flow.runtime", flow_run="Flow.kickoff Flow.kickoff_async"),
        Candidate("crewai.agent.core", agent_run="Agent.kickoff Agent.akickoff"),
    ),
)


def _asked(invocation: Invocation, agent: Any, crew: Any, task: Any) -> ToolCall | None:
    """Read a call as the model's provider has it, the way the framework does."""
    info = sys.modules["crewai.utilities.agent_utils"].extract_tool_call_info(invocation.arg(0, "tool_call"))
    if info is None:
        return None
    call_id, name, arguments = info
    execution = identity(getattr(crew, "id", None)) or identity(getattr(task, "id", None))
    role = getattr(agent, "role", None)
    return ToolCall(name, arguments, call_id, role, execution_context.outside_of_runs(execution))


def _function_call(invocation: Invocation) -> ToolCall | None:
    """Read a call of a function that the program passes to the model; None where there is no such function."""
    name, agent = text(invocation.arg(0, "function_name")), invocation.kwargs.get("from_agent")
    if name is None or name not in fields(invocation.arg(2, "available_functions")):
        return None
    return ToolCall(name, invocation.arg(1, "function_args"), agent=getattr(agent, "role", None))


@Hook
def failing(_: Invocation) -> None:
    error, where = sys.exc_info()[1:]  # a function's, or that of a failed request, which a tool's own code may make
    if error is not None and where is not None and where.tb_frame.f_code.co_name == "_handle_tool_execution":
        handler.handler_raised(error, function)


def _text_call(invocation: Invocation) -> ToolCall | None:
    calling = invocation.arg(0, "calling")
    name = getattr(calling, "tool_name", None)  # an error has none
    # No id of the crew: the request that contains this result as text does not contain that id.
    if name is None:
        return None
    arguments = {} if is_empty(calling.arguments) else calling.arguments
    return ToolCall(name, arguments, agent=getattr(invocation.instance.agent, "role", None))


def _result(value: Any) -> ToolResult:
    if is_named(value, "ToolFailure"):
        return ToolResult(fields(value)["message"], error_type=TOOL_ERROR)
    return ToolResult(value)


def _native_result(answer: Any) -> ToolResult:
    """Read what the executor keeps of a call: a dictionary, or an object with the same in it."""
    known = fields(answer)
    failed = known.get("tool_failure") is not None
    return ToolResult(known["result"], error_type=TOOL_ERROR if failed else None, raised=failed)


@for_agents
def _replace(value: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Return a replacement for the result of a tool.

    A tool that formats its results itself gets none but its own.
    """
    if is_named(value, "ToolFailure"):
        return value.model_copy(update={"message": replacement.text})
    formats = getattr(type(invocation.instance), "format_output_for_agent", None)
    is_default = getattr(formats, "__module__", "").startswith("crewai.")
    return replacement.text if value is None or is_text(value) or is_default else LEFT_ALONE


def _replace_answer(answer: Any, replacement: Replacement, _: Invocation) -> Any:
    """Put a replacement into what the executor keeps of a call that has failed, and into its account of the failure."""
    if not is_dict(answer):
        message = {**answer.tool_message, "content": replacement.text}
        return dataclasses.replace(answer, result=replacement.text, tool_message=message)
    failure = answer.get("tool_failure")
    if failure is not None:
        failure = failure.model_copy(update={"message": replacement.text})
    return {**answer, "result": replacement.text, "tool_failure": failure}


def _inject(invocation: Invocation, values: dict[str, Any]) -> bool:
    if invocation.args:  # the framework does not validate these, and their names are not available
        return False
    inject_by_name(invocation, values)
    return True


def _inject_input(invocation: Invocation, values: dict[str, Any]) -> None:
    given = invocation.arg(0, "input")
    arguments = json.loads(given) if is_text(given) else fields(given)
    invocation.put(0, "input", {**arguments, **values})


_whose = attrgetter("agent", "crew", "task")
run = ToolReader(
    lambda invocation: ToolCall(invocation.instance.name, dict(invocation.kwargs) or list(invocation.args)),
    _result,
    is_refusal=refused_within("crewai", "ValidationError"),
    replace=_replace,
    parameters=lambda call: tuple(fields(getattr(getattr(call.instance, "args_schema", None), "model_fields", None))),
    inject=_inject,
)
native = ToolReader(
    lambda call: _asked(call, *_whose(call.instance)), _native_result, run, station=HANDED_BACK, replace=_replace_answer
)
step = native._replace(call=lambda call: _asked(call, *map(call.kwargs.get, ("agent", "crew", "task"))))
invoke = run._replace(
    call=lambda invocation: ToolCall(invocation.instance.name, invocation.arg(0, "input")), inject=_inject_input
)
# None is the answer for a function that has raised.
function = ToolReader(_function_call, lambda value: None if value is None else ToolResult(value))
use = ToolReader(_text_call, _result, invoke, station=HANDED_BACK, replace=replace_by_text)


#: The name of a crew that the program gave none.
_UNNAMED = "crew"


@RunReader
def crew_run(invocation: Invocation) -> AgentRun | None:
    """Read a run of a crew; one that streams calls the same function again in a thread or task."""
    crew = invocation.instance
    name = text(getattr(crew, "name", None))
    first = next(iter(listed(fields(crew).get("agents"))), None)
    name = text(getattr(first, "role", None)) if name == _UNNAMED else name
    return None if getattr(crew, "stream", False) is True else AgentRun(name)


agent_run = RunReader(run_named("role"))


@RunReader
def flow_run(invocation: Invocation) -> AgentRun | None:
    """Read a run of a flow, whose crews run inside of it; one that streams calls the same function again."""
    flow = invocation.instance
    if getattr(flow, "stream", False) is True:
        return None
    return AgentRun(workflow=text(getattr(flow, "name", None)) or type(flow).__name__)
