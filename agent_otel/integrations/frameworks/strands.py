"""Strands Agents.

Both functions are generators of events, of which the last result is the tool's. Produced is read at ``_run_tool``,
handed back at ``ToolExecutor._stream``, behind middleware and the hooks after a call; the framework's own span of the
tool is open in between. Until 1.61 only the second function exists, within that span; there produced is read where it
passes the result to the hooks. An exception of a tool becomes text for the model, and the event carries both.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agent_otel._internal.object_kinds import fields, is_empty, is_named, listed, number, text
from agent_otel.core import execution_context, handler
from agent_otel.core.types import HANDED_BACK, LEFT_ALONE, AgentRun, RunReader, ToolCall, ToolReader, ToolResult
from agent_otel.integrations import payloads
from agent_otel.integrations.hooks import Hook, on_return
from agent_otel.integrations.readers import raises, refused_within, run_named
from agent_otel.integrations.registry import Candidate, Integration, Site
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_otel.core.types import Invocation, Replacement


ENTRY = Integration(
    "strands",
    distribution="strands-agents",
    minimum="1.30",
    tested="1.30, 1.61 and 1.62",
    uncovered="runs of bidirectional agents (their calls are measured); before 1.62, results of background tools",
    sites=(
        Site(
            Candidate(  # 1.62
                "strands.tools.executors._executor", run_tool="_run_tool", stream="ToolExecutor._stream"
            ),
            Candidate(
                "strands.tools.executors._executor",
                stream_alone="ToolExecutor._stream",
                returned="AfterToolCallEvent.__init__",
            ),
        ),
        # A call in another task, which may begin within the call that starts it and end after that call.
        Site(
            Candidate("strands.tools.executors._executor", background="ToolExecutor._execute_background"),
            minimum="1.62",
        ),
        Candidate("strands.agent.agent", agent_run="Agent.stream_async"),  # all ways to run an agent pass it
        # Several agents: their runs belong to the run of the graph or the swarm.
        Candidate("strands.multiagent.graph", team_run="Graph.stream_async"),
        Candidate("strands.multiagent.swarm", team_run="Swarm.stream_async"),
        Candidate(
            "strands.session.repository_session_manager",
            appended="RepositorySessionManager.append_message",
            read="RepositorySessionManager.initialize",
        ),
        Candidate(
            "strands.session.file_session_manager",
            written="FileSessionManager._write_file FileSessionManager._read_file",
        ),
        Candidate(
            "strands.session.s3_session_manager",
            put="S3SessionManager._write_s3_object",
            messages="S3SessionManager.list_messages",
        ),
    ),
)


_TOKEN_CHARACTERS = 4


def _call(agent: Any, use: Mapping[str, Any]) -> ToolCall:
    known = fields(use)
    return ToolCall(
        name=known["name"],
        arguments=known.get("input"),
        call_id=known.get("toolUseId"),
        agent=getattr(agent, "name", None),
        execution=execution_context.outside_of_runs(getattr(agent, "session_id", None)),  # the agent makes it up
    )


def _run_call(invocation: Invocation) -> ToolCall:
    context = invocation.arg(0, "ctx")
    return _call(context.agent, context.tool_use)


def _dispatched(agent: Any, use: Mapping[str, Any]) -> ToolCall:
    """Read a call, and the limit of the ``ContextOffloader`` among the agent's plugins."""
    plugins = fields(fields(fields(agent).get("_plugin_registry")).get("_plugins")).values()
    limits = [number(fields(plugin).get("_max_result_tokens")) for plugin in plugins]
    return _call(agent, use)._replace(offloads_above=_TOKEN_CHARACTERS * min(filter(None, limits), default=0))


def _stream_call(invocation: Invocation) -> ToolCall:
    return _dispatched(invocation.arg(0, "agent"), invocation.arg(1, "tool_use"))


def _result(event: Any) -> ToolResult | None:
    """Read an event: a result, with its exception if it has one, or None if it only reports that a task was begun."""
    if not is_named(event, "ToolResultEvent") or getattr(event, "_backgrounded", False):
        return None
    return _read(event.tool_result, getattr(event, "exception", None))


def _read(result: Mapping[str, Any], error: BaseException | None) -> ToolResult:
    known = fields(result)
    content = known.get("content", known)  # a tool with an object of its own may leave it out
    if error is not None:
        handler.handler_raised(error, run_tool)
        return ToolResult(content, raised=True)
    return ToolResult(content, error_type=TOOL_ERROR if text(known.get("status")) == "error" else None)


def _replace(event: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Put a replacement into the event with a result, which the framework has made; the tool's own object stays."""
    status = {"status": "error"} if replacement.is_error else {}
    content = {"content": [{"text": replacement.text}]}
    if event is None:
        result = {"toolUseId": _run_call(invocation).call_id, **content, **status}
        return sys.modules["strands.types._events"].ToolResultEvent(result)
    known = fields(event.tool_result)
    if any(not {"text", "json"} & fields(block).keys() for block in listed(known.get("content"))):
        return LEFT_ALONE  # an image or a document
    event["tool_result"] = {**known, **content, **status}
    return event


def _inject(invocation: Invocation, values: dict[str, Any]) -> None:
    """Put arguments into a copy of the call, which stays in the messages as it is."""
    context = invocation.arg(0, "ctx")
    use = fields(context.tool_use)
    arguments = {**fields(use.get("input")), **values}
    invocation.put(0, "ctx", dataclasses.replace(context, tool_use={**use, "input": arguments}))


_is_control_flow = raises("InterruptException")
run_tool = ToolReader(
    _run_call,
    _result,
    is_control_flow=_is_control_flow,
    is_refusal=refused_within("strands", "ValidationError"),
    events=True,
    replace=_replace,
    parameters=lambda invocation: tuple(fields(_run_call(invocation).arguments)),
    inject=_inject,
)
stream = ToolReader(_stream_call, _result, run_tool, station=HANDED_BACK, is_control_flow=_is_control_flow, events=True)
background = stream._replace(
    call=lambda invocation: _dispatched(invocation.arg(0, "agent"), invocation.arg(2, "context").tool_use),
    result=lambda result: _read(result, None),
    events=False,
)


# The event of the hooks after the call that runs: the framework takes the model's result from it, after it has yielded.
_after: ContextVar[weakref.ref[Any] | None] = ContextVar("agent_otel_strands_after", default=None)


def _replace_alone(event: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Put a replacement into both events of a result; a skipped call has none, and its result is added here."""
    if event is None:
        use = fields(invocation.arg(1, "tool_use"))
        result = {"toolUseId": use.get("toolUseId"), "status": "error", "content": [{"text": replacement.text}]}
        invocation.arg(2, "tool_results").append(result)
        return sys.modules["strands.types._events"].ToolResultEvent(result)
    kept = _after.get()
    after = None if kept is None else kept()
    if after is None or after.result is not event.tool_result:
        return LEFT_ALONE
    changed = _replace(event, replacement, invocation)
    if changed is not LEFT_ALONE:
        after.result = changed.tool_result
    return changed


stream_alone = ToolReader(
    _stream_call,
    _result,
    station=HANDED_BACK,
    is_control_flow=_is_control_flow,
    events=True,
    replace=_replace_alone,
    parameters=lambda invocation: tuple(fields(_stream_call(invocation).arguments)),
    is_alone=True,
)


@Hook
def returned(invocation: Invocation) -> None:
    _after.set(weakref.ref(invocation.instance))
    if is_empty(invocation.kwargs.get("cancel_message")):
        handler.handler_entered()  # and has answered
        handler.handler_returned(_read(invocation.kwargs["result"], invocation.kwargs.get("exception")))


agent_run = RunReader(run_named(conversation="session_id", traces=True))
team_run = RunReader(lambda invocation: AgentRun(workflow=text(fields(invocation.instance).get("id")), traces=True))

_MESSAGE = "message_"

# Strands Agents: sessions that ``FileSessionManager`` and ``S3SessionManager`` keep. Each message of an agent is a
# file or an object of S3, and an agent begins with all of them. The bytes are those of the files and objects.


@payloads.writing
def appended(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    _report(invocation, invocation.arg(1, "agent"), [invocation.arg(0, "message")], error)


@payloads.reading
def read(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    agent = invocation.arg(0, "agent")
    _report(invocation, agent, listed(agent.messages), error)


def _report(invocation: Invocation, agent: Any, value: Any, error: BaseException | None) -> None:
    session, name = text(invocation.instance.session_id), text(getattr(agent, "name", None))
    payloads.transferred("strands", invocation, session, value, error=error, agent=name)


@on_return
def written(invocation: Invocation, _: Any) -> None:
    """Add the bytes of a message's file, which is written or read."""
    path, transfer = invocation.arg(0, "path"), payloads.open_transfer.get()
    if transfer is not None:
        transfer.bytes += os.path.getsize(path) if os.path.basename(path).startswith(_MESSAGE) else 0  # noqa: PTH119, PTH202 - a text


@on_return
def put(invocation: Invocation, _: Any) -> None:
    if invocation.arg(0, "key").rpartition("/")[2].startswith(_MESSAGE):
        payloads.add(_object(invocation.arg(1, "data")))


@on_return
def messages(_: Invocation, messages: Any) -> None:
    """Add the objects of messages; threads of the framework's own have read them."""
    for message in listed(messages) if payloads.is_reading() else ():
        payloads.add(_object(message.to_dict()), is_read=True)


def _object(message: Any) -> str:
    """Return the text of an object, as the framework writes it inside of the function that sends it."""
    return json.dumps(message, indent=2, ensure_ascii=False)
