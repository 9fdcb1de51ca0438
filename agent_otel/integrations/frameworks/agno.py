"""Agno.

Produced is read at ``FunctionCall._execute`` and ``_aexecute``, in older versions at ``execute`` and ``aexecute``. A
generator tool has produced nothing by then: its call ends where the framework has drained it and makes a message of all
its items. Exceptions become a status; the exception itself is available where the framework logs it.
"""

from __future__ import annotations

import json
import sys
from contextvars import ContextVar
from typing import Any

from agent_otel._internal import collected
from agent_otel._internal.errors import guarded
from agent_otel._internal.failures import traceback_of
from agent_otel._internal.object_kinds import fields, is_empty, is_named, is_text, listed, number, properties, text
from agent_otel.core import execution_context, handler
from agent_otel.core.types import AgentRun, Invocation, Replacement, RunReader, ToolCall, ToolReader, ToolResult
from agent_otel.integrations import payloads
from agent_otel.integrations.hooks import AroundVisit, Door, Hook, Injecting, on_return
from agent_otel.integrations.readers import raises, raises_within
from agent_otel.integrations.registry import Candidate, Integration, Site
from agent_otel.semconv import TOOL_ERROR

_FUNCTION = "agno.tools.function"
_BESIDE = {"logged": "log_exception", "building": "FunctionCall._build_entrypoint_args"}
# The functions behind a run and behind its continuation, inside of the methods that other instrumentations wrap.
_BEHIND = "run_dispatch arun_dispatch continue_run_dispatch acontinue_run_dispatch"
_SINCE = "3.1"

# Agno: sessions that ``SqliteDb`` and ``AsyncSqliteDb`` keep. Each run is a row that is appended, and the next run of
# its session begins with all of them. The bytes are those of the JSON texts that the database gets.


def _database(module: str, name: str) -> Site:
    rows = {"rows": "_get_session_run_rows", "runs": "_get_session_runs_data"}
    methods = {"saved": "upsert_run", "read": "get_session", **rows}
    readers = {reader: f"{name}.{method}" for reader, method in methods.items()}
    return Site(Candidate(f"agno.db.sqlite.{module}", **readers), minimum=_SINCE)


ENTRY = Integration(
    "agno",
    minimum="2.3",
    tested="2.3 and 3.1",
    uncovered="the state of a session; databases other than `SqliteDb` and `AsyncSqliteDb`, and databases before 3.1",
    sites=(
        # OpenTelemetry's instrumentor leaves `execute` alone where another package has wrapped it.
        Site(
            Candidate(_FUNCTION, execute="FunctionCall._execute FunctionCall._aexecute", **_BESIDE),
            Candidate(_FUNCTION, execute="FunctionCall.execute FunctionCall.aexecute", **_BESIDE),
        ),
        Site(
            Candidate("agno.agent._run", dispatched=_BEHIND), Candidate("agno.agent.agent", run="Agent.run Agent.arun")
        ),
        Site(Candidate("agno.team._run", dispatched=_BEHIND), Candidate("agno.team.team", run="Team.run Team.arun")),
        Site(Candidate("agno.db.utils", encoded="json_serializer"), minimum=_SINCE),
        _database("sqlite", "SqliteDb"),
        _database("async_sqlite", "AsyncSqliteDb"),
        Site(Candidate("agno.utils.message", reformatted="reformat_tool_call_ids"), minimum="2.6"),
        # The items of generator tools.
        Candidate("agno.models.base", message="Model.create_function_call_result"),
    ),
)


class _Failed(Exception):  # noqa: N818 - not raised: it stands for one that the framework has swallowed
    """The failure of a generator."""

    _gen_ai_error_type = TOOL_ERROR


# Names of classes; the second two are this package's own around a generator of the program.
_GENERATORS = ("generator", "async_generator", "MeasuredGenerator", "MeasuredAsyncGenerator")
# Begins what the framework makes of an MCP server's answer about an error.
_MCP_ERROR = "Error from MCP tool '"
# Begin the names of the framework's methods that call hooks.
_HOOKS = ("_handle_pre_hook", "_handle_post_hook")

# Calls whose generators are being drained, by the identity of the call, which has no hash.
_drained: dict[int, handler.StreamVisit] = {}
#: The exception that the framework has logged last, until its call begins or ends.
_logged: ContextVar[BaseException | None] = ContextVar("agent_otel_agno_logged", default=None)


def _call(invocation: Invocation) -> ToolCall:
    _logged.set(None)
    call = invocation.instance
    function = call.function
    agent = function._team if function._agent is None else function._agent
    # The framework makes one up where the program names none.
    session = execution_context.outside_of_runs(getattr(function._run_context, "session_id", None))
    arguments = {} if is_empty(call.arguments) else call.arguments
    above = number(fields(fields(agent).get("_result_store")).get("threshold_chars")) or 0  # a text has no fewer bytes
    return ToolCall(function.name, arguments, call.call_id, getattr(agent, "name", None), session, offloads_above=above)


def _result(outcome: Any) -> ToolResult | None:
    """Read the end of a call, or the items of a generator; before version 3 a cancelled call has no outcome."""
    logged = _logged.get()
    _logged.set(None)
    if outcome is None or is_text(outcome):
        return None if outcome is None else ToolResult(outcome)
    if text(outcome.status) == "failure":
        if logged is not None:
            handler.handler_raised(logged, _execute)
        return ToolResult(outcome.error, error_type=TOOL_ERROR, raised=True)
    value = outcome.result
    if not is_named(value, "ToolResult"):
        return ToolResult(value)
    content = fields(value).get("content")
    return ToolResult(content, error_type=TOOL_ERROR if (text(content) or "").startswith(_MCP_ERROR) else None)


def _replace(outcome: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Put a replacement into the end of a call, and where the framework reads the text about an exception."""
    call = invocation.instance
    if outcome is None:
        outcome = sys.modules["agno.tools.function"].FunctionExecutionResult
        if not replacement.is_error:
            call.result = replacement.text
            return outcome(status="success", result=replacement.text)
        call.error = replacement.text
        return outcome(status="failure", error=call.error)
    if text(outcome.status) == "failure":
        outcome.error = call.error = replacement.text
        return outcome
    value = outcome.result
    is_envelope = is_named(value, "ToolResult")
    result = value.model_copy(update={"content": replacement.text}) if is_envelope else replacement.text
    outcome.result = call.result = result
    return outcome


def _inject(invocation: Invocation, values: dict[str, Any]) -> None:
    """Leave the values to `_build`, because messages and events show the call's arguments; drop the model's own."""
    call = invocation.instance
    if not is_empty(call.arguments):
        call.arguments = {name: value for name, value in call.arguments.items() if name not in values}


@Injecting
def building(wrapped: Any, invocation: Invocation) -> Any:
    return {**wrapped(*invocation.args, **invocation.kwargs), **(handler.injected() or {})}


_execute = ToolReader(
    _call,
    _result,
    is_control_flow=raises("StopAgentRun"),
    is_refusal=raises_within("agno", "ValidationError"),
    replace=_replace,
    parameters=lambda invocation: properties(invocation.instance.function.parameters),
    inject=_inject,
    also_timed_by=("opentelemetry.instrumentation.genai.agno:AgnoInstrumentor",),
)


class _Visit(AroundVisit):
    """A call while its function runs; that of a generator goes on until the framework has drained it."""

    __slots__ = ("_call",)

    def __init__(self, call: Any, visit: handler.Visit | handler.Unrecorded) -> None:
        super().__init__(visit)
        self._call = call

    def returned(self, outcome: Any) -> None:
        if not self._begins_to_drain(outcome):
            self._visit.returned(outcome)

    def remedied(self, outcome: Any, invocation: Invocation) -> Any:
        return outcome if self._begins_to_drain(outcome) else self._visit.remedied(outcome, invocation)

    async def aremedied(self, outcome: Any, invocation: Invocation) -> Any:
        return outcome if self._begins_to_drain(outcome) else await self._visit.aremedied(outcome, invocation)

    @guarded("agno.outcome")
    def _begins_to_drain(self, outcome: Any) -> bool:
        """Return True if a generator is to be drained: the call is left here, and ends where that is done."""
        is_drained = isinstance(self._visit, handler.Visit) and is_named(getattr(outcome, "result", None), *_GENERATORS)
        if is_drained:
            self._visit.goes_on = True
            _drained[id(self._call)] = handler.as_stream(self._visit)
            collected.at_end_of(self._call, _abandon, id(self._call))
        return is_drained


@Door
def execute(invocation: Invocation) -> _Visit | None:
    visit = handler.enter_tool(_execute, invocation)
    return None if visit is None else _Visit(invocation.instance, visit)


@Hook
def logged(invocation: Invocation) -> None:
    error = invocation.arg(0, "msg")
    if issubclass(type(error), BaseException) and not _is_of_a_hook(error):
        _logged.set(error)


def _is_of_a_hook(error: Any) -> bool:
    """Return True for an exception that a hook before or after the call raised: then the call goes on."""
    caught = traceback_of(error)
    return caught is not None and caught.tb_frame.f_code.co_name.startswith(_HOOKS)


def _abandon(key: int) -> None:
    visit = _drained.pop(key, None)
    if visit is not None:
        collected.run(visit.abandon)


@Hook
def message(invocation: Invocation) -> None:
    visit = _drained.pop(id(invocation.arg(0, "function_call")), None)
    if visit is None:
        return
    succeeded = invocation.arg(1, "success")
    if succeeded:
        visit.item(invocation.arg(2, "output"))
    visit.leave(StopIteration() if succeeded else _Failed())


# Ids of agno's tool calls in model requests. The framework keeps the id of the item where OpenAI's Responses go by
# the id of the call, and writes other ids for a provider that does not take those of the model which asked for the
# calls.


@on_return
def reformatted(invocation: Invocation, sent: Any) -> None:
    goes_by_call = text(invocation.arg(1, "provider")) == "openai_responses"
    for kept, written in zip(listed(invocation.arg(0, "messages")), listed(sent), strict=False):
        for call, renamed in zip(_calls(kept), _calls(written), strict=False):
            sent_id = text(renamed.get("call_id")) if goes_by_call else None
            handler.call_renamed(call.get("id"), sent_id or renamed.get("id"))


def _calls(message: Any) -> list[dict[str, Any]]:
    return [fields(call) for call in listed(fields(message).get("tool_calls"))]


# Make a span of each run.
_ALSO_TRACED_BY = (
    "openinference.instrumentation.agno:AgnoInstrumentor",
    "opentelemetry.instrumentation.agno:AgnoInstrumentor",
    "opentelemetry.instrumentation.genai.agno:AgnoInstrumentor",
)

# Runs of agno's agents and teams, and where its tool calls are read.


def _dispatched(invocation: Invocation) -> AgentRun:
    agent = invocation.arg(0, "agent")
    found = _of(invocation.kwargs.get("team") if agent is None else agent, invocation)
    known = fields(invocation.arg(1, "run_response"))  # of a run that was paused, else an input
    resumed = text(known.get("run_id")) or text(invocation.kwargs.get("run_id"))
    return found._replace(resumes=resumed, conversation=found.conversation or text(known.get("session_id")))


def _pauses(value: Any) -> str | None:
    """Return the id of a run that waits for a confirmation, an input, or a call outside of it."""
    known = fields(value)
    is_paused = text(known.get("status")) == "PAUSED" or text(known.get("event")) in {"RunPaused", "TeamRunPaused"}
    return text(known.get("run_id")) if is_paused else None


def _of(agent: Any, invocation: Invocation) -> AgentRun:
    session = text(invocation.kwargs.get("session_id")) or text(getattr(agent, "session_id", None))
    return AgentRun(text(getattr(agent, "name", None)), session)


run = RunReader(lambda invocation: _of(invocation.instance, invocation), pauses=_pauses, also_traced_by=_ALSO_TRACED_BY)
dispatched = RunReader(_dispatched, pauses=_pauses, also_traced_by=_ALSO_TRACED_BY)

_RUNTIME = "agno"


@payloads.writing
def saved(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    run, session = invocation.arg(0, "run"), text(invocation.arg(1, "session_id"))
    payloads.transferred(_RUNTIME, invocation, session, [_parts(run)], error=error)


@payloads.reading
def read(invocation: Invocation, session: Any, error: BaseException | None) -> None:
    """Report the session that a run begins with; a read of a part of it is no payload."""
    if error is None and invocation.arg(4, "runs_limit") is None and payloads.in_run():
        value = [_parts(run) for run in listed(getattr(session, "runs", None))]
        payloads.transferred(_RUNTIME, invocation, text(invocation.arg(0, "session_id")), value)


def _parts(run: Any) -> dict[str, Any]:
    """Return the parts of a run that hold results; all its fields are more paths than are counted by name."""
    known = fields(run)
    return {name: known.get(name) for name in ("messages", "tools", "content")}


@on_return
def rows(_: Invocation, rows: Any) -> None:
    for _, data in listed(rows):
        payloads.add(data, is_read=True)


@on_return
def runs(_: Invocation, runs: Any) -> None:
    """Add the bytes of runs that come from `json.loads`, and were written as `json.dumps` writes by default."""
    for run in listed(runs) if payloads.is_reading() else ():
        payloads.add(json.dumps(run), is_read=True)


encoded = payloads.added
