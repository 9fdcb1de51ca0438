"""Google's Agent Development Kit.

Produced is read where it calls a tool, handed back where it makes an event of the result, after callbacks and plugins.
With Gemini its ids of calls are its own: they never reach the model, which knows a result by its tool's name.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
from typing import TYPE_CHECKING, Any

from agent_otel._internal.object_kinds import fields, is_dict, is_named, listed, sole, text
from agent_otel.core import handler
from agent_otel.core.types import (
    HANDED_BACK,
    LEFT_ALONE,
    AgentRun,
    Invocation,
    ModelReader,
    ModelRequest,
    Replacement,
    RunReader,
    ToolCall,
    ToolReader,
    ToolResult,
)
from agent_otel.integrations import payloads
from agent_otel.integrations.hooks import Family, Hook, Passing
from agent_otel.integrations.readers import inject_into, nothing, raises
from agent_otel.integrations.registry import Candidate, Integration, Site
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from collections.abc import Iterator


def _service(module: str, name: str, **more: str) -> Site:
    functions = {"appended": f"{name}.append_event", "read": f"{name}.get_session", **more}
    return Site(Candidate(f"google.adk.sessions.{module}", **functions), minimum="2.10")


ENTRY = Integration(
    "google-adk",
    minimum="1.15",
    tested="1.15 and 2.13, with Gemini",
    uncovered="tools that Gemini runs; tools that are nodes of workflows before 2.13; in live runs, the sizes handed "
    "back and streamed; tools of `AntigravityAgent`; the state in `SqliteSessionService`; sessions in PostgreSQL's "
    "columns of JSON",
    packages=("google.adk",),
    sites=(
        Site(
            Candidate(  # 2.10 and later
                "google.adk.flows.llm_flows.tools._caller",
                call_tool="_call_tool_async",
                prepared_call="_execute_single_prepared_call",
                building="_build_response_event",
            ),
            Candidate(
                "google.adk.flows.llm_flows.functions",
                call_tool="__call_tool_async",
                single_call="_execute_single_function_call_async",
                building="__build_response_event",
            ),
        ),
        # Live runs: a pool of threads has a function of its own. The others are the same under the names by which they
        # were imported; they are wrapped by now, unless activation was late.
        Site(
            Candidate(  # 2.10 and later
                "google.adk.flows.llm_flows.tools._live_caller",
                call_tool="_call_tool_in_thread_pool _call_tool_async",
                live="_process_function_live_helper",
                prepared_call="_execute_single_prepared_call",
            ),
            Candidate("google.adk.flows.llm_flows.functions", call_tool="_call_tool_in_thread_pool"),
            Candidate("google.adk.flows.llm_flows.functions", call_tool="__call_tool_live"),  # the oldest ones
        ),
        # A tool that is a node of a workflow, which no model has asked for.
        Site(
            Candidate("google.adk.workflow._tool_node", tool_node="_ToolNode._run_tool_with_plugin_callbacks"),
            minimum="2.13",
        ),
        # The code of a model's answer.
        Candidate("google.adk.code_executors.base_code_executor", executors="BaseCodeExecutor.__init__"),
        Candidate("google.adk.runners", agent_run="Runner.run_async"),
        # The answers of error callbacks, for remedies.
        Site(
            Candidate("google.adk.flows.llm_flows.tools._error_handler", answering="run_on_tool_error_callbacks"),
            minimum="2.10",
        ),
        # The agent of the request that the provider's SDK sends.
        Candidate("google.adk.flows.llm_flows.base_llm_flow", request="BaseLlmFlow._call_llm_async"),
        _service("database_session_service", "DatabaseSessionService"),
        _service(
            "sqlite_session_service",
            "SqliteSessionService",
            bound="Event.model_dump_json",
            validated="Event.model_validate_json",
        ),
        _service("vertex_ai_session_service", "VertexAiSessionService"),
        Site(
            Candidate("google.genai._api_client", requested="BaseApiClient._async_request_once"),
            minimum="2.10",
            beside=("google.adk.utils.vertex_ai_utils",),  # which that service imports
        ),
        Site(
            Candidate(
                "google.adk.sessions.schemas.shared",
                bound="DynamicJSON.process_bind_param",
                result="DynamicJSON.process_result_value",
            ),
            minimum="2.10",
        ),
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
    """Read the result of a node's tool; None if the tool asks a human instead."""
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
    """Return a replacement for a tool's result, as an object if callbacks would get one."""
    members = (value, *listed(value), *(fields(value).values() if is_dict(value) else ()))
    if any(is_named(member, "Part", "FunctionResponse") for member in members):
        return LEFT_ALONE  # media
    return {"result": replacement.text} if is_dict(value) else replacement.text


@Passing
async def answering(wrapped: Any, invocation: Invocation) -> Any:
    """Cut the answer of callbacks; without an answer the program gets the exception."""
    answer = await wrapped(*invocation.args, **invocation.kwargs)
    return await handler.aremedied(_error_answer, answer, invocation)


@Hook
def building(invocation: Invocation) -> None:
    actions = invocation.arg(2, "tool_context").actions
    if not (actions.requested_tool_confirmations or actions.requested_auth_configs):  # it asks a human instead
        handler.handing_back(_produced(invocation.arg(1, "function_result")))


@Hook
def live(invocation: Invocation) -> None:
    """Put off the call of a tool that streams: another task runs and measures it."""
    if inspect.isasyncgenfunction(getattr(invocation.arg(0, "tool"), "func", None)):
        handler.handler_deferred()


_is_control_flow = raises("NodeInterruptedError")  # by which a workflow waits for a human
call_tool = ToolReader(
    _tool_call,
    _produced,
    is_control_flow=_is_control_flow,
    also_timed_by=_ALSO_TIMED_BY,
    replace=_replace,
    parameters=lambda invocation: tuple(fields(invocation.arg(1, "args"))),
    inject=inject_into(1, "args"),  # the kit's own spans and callbacks have the model's
)
tool_node = ToolReader(_node_call, _node_result, is_control_flow=_is_control_flow, replace=_replace)
_error_answer = ToolReader(
    _tool_call,
    lambda value: None if value is None else ToolResult(value),
    station=HANDED_BACK,
    replace=lambda _, replacement, __: {"error": replacement.text},
)
# When the outer function returns, the kit's span has ended: `building` reads the result.
prepared_call = ToolReader(_prepared_call, nothing, call_tool, station=HANDED_BACK, is_control_flow=_is_control_flow)
single_call = prepared_call._replace(call=_single_call)


@RunReader
def agent_run(invocation: Invocation) -> AgentRun:
    """Read a run; the framework opens a span for each itself."""
    agent = fields(fields(invocation.instance).get("agent"))
    return AgentRun(text(agent.get("name")), text(invocation.kwargs.get("session_id")), traces=True)


# Google's Agent Development Kit: the code in a model's answer, which a code executor of the agent runs. The model
# calls no tool for it; each run is a call of ``execute_code``. The executors are classes that a program may write
# itself. What Gemini runs (``BuiltInCodeExecutor``) passes none of them.


def _code_call(invocation: Invocation) -> ToolCall:
    context, given = invocation.arg(0, "invocation_context"), invocation.arg(1, "code_execution_input")
    return ToolCall("execute_code", {"code": given.code}, agent=context.agent.name, execution=context.session.id)


def _result(value: Any) -> ToolResult:
    """Read the output of the code; if there are errors, the model gets only these."""
    known = fields(value)
    if text(known.get("stderr")):
        return ToolResult(known["stderr"], error_type=TOOL_ERROR)
    return ToolResult(known.get("stdout"))


def _code_replace(value: Any, replacement: Replacement, _: Invocation) -> Any:
    """Put a replacement into a result; a skipped run has none."""
    if value is None:
        made = sys.modules["google.adk.code_executors.code_execution_utils"].CodeExecutionResult
        return made(stderr=replacement.text)
    return dataclasses.replace(value, **{"stderr" if text(fields(value).get("stderr")) else "stdout": replacement.text})


@Family
def executors(executor: Any) -> Iterator[tuple[type, str, ToolReader]]:
    yield type(executor), "execute_code", run


run = ToolReader(_code_call, _result, replace=_code_replace)

# Google's Agent Development Kit: add the agent and session to the request that the provider's SDK sends.


def _request(invocation: Invocation) -> ModelRequest:
    context = invocation.arg(0, "invocation_context")
    return ModelRequest((), agent=context.agent.name, execution=context.session.id)


request = ModelReader(_request, outermost=True)

_RUNTIME = "google-adk"

# Google's Agent Development Kit: sessions in databases and on Vertex AI. Each event is appended, with the state that
# it changes, and a run begins with all events of its session. The bytes are those of the JSON texts that the database
# gets; PostgreSQL's columns of JSON are none. ``SqliteSessionService`` merges changes of the state inside of SQL:
# they do not count. The bytes on Vertex AI are those of the bodies of requests and responses.


@payloads.writing
def appended(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    session, event = invocation.arg(0, "session"), invocation.arg(1, "event")
    payloads.transferred(_RUNTIME, invocation, text(session.id), _parts(event), error=error)


@payloads.reading
def read(invocation: Invocation, session: Any, error: BaseException | None) -> None:
    """Report the session at the start of a run; a partial read does not count as a payload."""
    events = listed(getattr(session, "events", None))
    if error is None and events and not invocation.arg(3, "config") and payloads.in_run():
        value = [part for event in events for part in _parts(event)]
        payloads.transferred(_RUNTIME, invocation, text(session.id), value)


def _parts(event: Any) -> list[Any]:
    """Return the parts of an event's content, as the fields that its texts and results are found by."""
    return [_part(part) for part in listed(getattr(event.content, "parts", None))]


def _part(part: Any) -> Any:
    answer = getattr(part, "function_response", None)
    if answer is None:
        return fields(part)
    return {"name": answer.name, "tool_call_id": answer.id, "response": answer.response}


def _sent(invocation: Invocation) -> payloads.Transfer | None:
    """Take the size of an event's body, again when it is sent again; google-genai makes its text with these options."""
    transfer = payloads.open_transfer.get()
    if transfer is not None and not transfer.is_read:
        data = fields(invocation.arg(0, "http_request")).get("data")
        if data:
            payloads.add(data if type(data) is bytes else json.dumps(data), is_whole=True)
    return transfer


def _answered(_: Invocation, response: Any, error: BaseException | None) -> None:
    if error is None and payloads.is_reading():
        for body in listed(getattr(response, "response_stream", None)):
            payloads.add(body, is_read=True)


bound = payloads.added
result = payloads.adding(0, "value")
validated = payloads.adding(0, "json_data")
requested = Hook(_sent, _answered)
