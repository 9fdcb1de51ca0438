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
import inspect
import json
import sys
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import wrapt

from agent_otel._internal import errors
from agent_otel._internal.failures import text_of
from agent_otel._internal.object_kinds import fields, is_named, listed, modules_of, properties, text
from agent_otel.core import handler
from agent_otel.core.types import (
    HANDED_BACK,
    LEFT_ALONE,
    AgentRun,
    Invocation,
    Replacement,
    RunReader,
    ToolCall,
    ToolReader,
    ToolResult,
)
from agent_otel.integrations import payloads
from agent_otel.integrations.hooks import Hook, Passing, revising
from agent_otel.integrations.readers import cause_behind
from agent_otel.integrations.registry import Candidate, Integration, Site
from agent_otel.semconv import STATE, TOOL_ERROR

if TYPE_CHECKING:
    from collections.abc import Generator


_MODULE = "agents.run_internal.tool_actions"
_SHARED = "ShellAction.execute LocalShellAction.execute ApplyPatchAction.execute ComputerAction.execute"

# OpenAI's Agents SDK: sessions, which keep a conversation's items in a database. A session appends the items of each
# turn, and a run begins with all items of the session. Each append is a payload of the direction ``state``, and what
# a run begins with one of the direction ``history``. The bytes are those of the items' texts, as the database has
# them.. On Dapr a session is one value, which each append writes whole. On MongoDB an append is one document from
# version 0.20 on, whose cap it meets; before it is one for each item.


def _session(module: str, name: str, minimum: str = "", **methods: str) -> Site:
    functions = {reader: f"{name}.{method}" for reader, method in methods.items()}
    return Site(Candidate(module, **functions), minimum=minimum)


_MEMORY = "agents.extensions.memory"
_SQLITE = {"inserted": "_insert_items", "connected": "_get_connection", "read": "get_items"}
_ASYNC_SQLITE = {"inserted": "_insert_items", "connected_async": "_get_connection", "read": "get_items"}
_ENCODING = {
    "added": "add_items",
    "read": "get_items",
    "serialized": "_serialize_item",
    "deserialized": "_deserialize_item",
}

ENTRY = Integration(
    "openai-agents",
    minimum="0.7",
    tested="0.7 to 0.24; sessions: SQLite, Redis, FerretDB, a stand-in for Dapr",
    uncovered="handoffs; the part of a shell's output that the model asks to cut; the ceiling and the claim check on "
    "shells, patches, computers and custom tools; these four before 0.8; sessions that the provider keeps, "
    "`SQLiteSession` before 0.15 and `AsyncSQLiteSession` before 0.20",
    sites=(
        Site(
            Candidate(  # 0.19 and later
                "agents.run_internal.tool_execution",
                invoke="_invoke_function_tool_with_metadata",
                single_tool="_FunctionToolBatchExecutor._run_single_tool",
            ),
            Candidate(  # 0.12 to 0.18
                "agents.run_internal.tool_execution",
                invoke="invoke_function_tool",
                single_tool="_FunctionToolBatchExecutor._run_single_tool",
            ),
            Candidate(  # 0.8 to 0.11: a closure in execute_function_tool_calls
                "agents.run_internal.tool_execution",
                calling="_execute_tool_input_guardrails",
                returned="_execute_tool_output_guardrails",
            ),
            Candidate(  # up to 0.7: a closure in RunImpl.execute_function_tool_calls
                "agents._run_impl",
                calling="RunImpl._execute_input_guardrails",
                returned="RunImpl._execute_output_guardrails",
            ),
        ),
        Candidate("agents.run", run="AgentRunner.run AgentRunner.run_sync AgentRunner.run_streamed"),
        Site(
            Candidate(
                "agents.tool",
                swallowed="maybe_invoke_function_tool_failure_error_function",
                timed_out="default_tool_timeout_error_message",
            ),
            Candidate("agents.tool", swallowed="_extract_tool_argument_json_error"),  # up to 0.11
        ),
        Site(Candidate("agents.realtime.session", live_invoke="invoke_function_tool"), minimum="0.9"),
        Site(
            Candidate(  # the newer one
                _MODULE, action=f"CustomToolAction.execute {_SHARED}", failing="format_shell_error"
            ),
            Candidate(_MODULE, action=_SHARED, failing="format_shell_error"),
            minimum="0.8",
        ),
        _session("agents.memory.sqlite_session", "SQLiteSession", "0.15", **_SQLITE),
        _session(f"{_MEMORY}.advanced_sqlite_session", "AdvancedSQLiteSession", "0.15", read="get_items"),
        _session(f"{_MEMORY}.async_sqlite_session", "AsyncSQLiteSession", "0.20", **_ASYNC_SQLITE),
        _session(f"{_MEMORY}.sqlalchemy_session", "SQLAlchemySession", **_ENCODING),
        _session(f"{_MEMORY}.redis_session", "RedisSession", **_ENCODING),
        _session(f"{_MEMORY}.mongodb_session", "MongoDBSession", "0.15", **_ENCODING),
        _session(
            f"{_MEMORY}.dapr_session", "DaprSession", rewritten="add_items", read="get_items", loaded="_decode_messages"
        ),
    ),
)


def _call(tool: Any, arguments: Any, call_id: str | None, agent: Any, config: Any) -> ToolCall:
    return ToolCall(tool.name, arguments, call_id, getattr(agent, "name", None), getattr(config, "group_id", None))


def _context_call(tool: Any, context: Any, agent: Any = None) -> ToolCall:
    agent = getattr(context, "agent", None) if agent is None else agent
    return _call(tool, context.tool_arguments, context.tool_call_id, agent, getattr(context, "run_config", None))


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


def _declares(invocation: Invocation) -> bool:
    """Return true for a tool that declares its output, which must be that."""
    return getattr(_tool(invocation), "output_json_schema", None) is not None


def _replace(output: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Put a replacement into what the SDK gets of a handler."""
    if _declares(invocation):
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


invoke = ToolReader(
    lambda invocation: _context_call(invocation.kwargs["function_tool"], invocation.kwargs["context"]),
    _result,
    is_refusal=lambda error: (
        is_named(error, "ModelBehaviorError") and text_of(error, 40).startswith("Invalid JSON input for tool")
    ),
    replace=_replace,
    parameters=lambda invocation: properties(_tool(invocation).params_json_schema),
    inject=_inject,
    also_timed_by=("opentelemetry.instrumentation.genai.openai_agents:OpenAIAgentsInstrumentor",),
)
single_tool = ToolReader(_single_call, _handed_back, invoke, station=HANDED_BACK)
_unguarded = invoke._replace(call=_guarded_call, inject=None)
_guarded = ToolReader(_guarded_call, _handed_back, _unguarded, station=HANDED_BACK)


@Hook
def timed_out(_: Invocation) -> None:
    if (error := sys.exc_info()[1]) is not None:
        handler.handler_raised(error, invoke)


@Passing
async def calling(wrapped: Any, invocation: Invocation) -> Any:
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


@Passing
async def returned(wrapped: Any, invocation: Invocation) -> Any:
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

#: The names of the tool in the SDK's records of a call, and of the arguments in the model's items.
_TOOLS = ("shell_tool", "local_shell_tool", "apply_patch_tool", "custom_tool", "computer_tool")
_FAILED = {"type": "exit", "exit_code": 1}
_ARGUMENTS = ("input", "action", "actions", "operation", "operations")

# OpenAI's Agents SDK: shells, patches, computers and custom tools, which it runs in functions of their own. The whole
# action is read where it returns its item: the approval of a human is part of it, and an item that waits for one is
# no result. Of a shell that is what is left after the cut that the model asks for. The SDK hands the item on before
# it returns it, so that no result is replaced; a call that a policy denies, or that is above a limit, gets an item of
# its own in place of it, as a call gets that a human rejects.


def _action_call(invocation: Invocation) -> ToolCall:
    named = invocation.kwargs
    call = fields(named.get("call") or named["action"])
    tool = next(call[name] for name in _TOOLS if name in call)
    item = fields(call["tool_call"])
    arguments = next((item[name] for name in _ARGUMENTS if item.get(name) is not None), None)
    return _call(tool, arguments, item.get("call_id"), named["agent"], named["config"])


def _action_result(item: Any) -> ToolResult | None:
    if not is_named(item, "ToolCallOutputItem"):
        handler.handler_deferred()
        return None
    return ToolResult(fields(item.raw_item).get("output", item.output))


def _action_replace(item: Any, replacement: Replacement, invocation: Invocation) -> Any:
    """Return the item of a call that was skipped; a computer's is a picture, which no text can replace."""
    if item is not None:
        return LEFT_ALONE
    call = fields(invocation.kwargs.get("call") or invocation.kwargs["action"])
    kind = next(name for name in _TOOLS if name in call).removesuffix("_tool")
    if kind == "computer":
        return LEFT_ALONE
    called, output = call["tool_call"], [{"stdout": "", "stderr": replacement.text, "outcome": _FAILED}]
    raw = {
        "type": "custom_tool_call_output" if kind == "custom" else f"{kind}_call_output",
        "call_id": fields(called).get("call_id"),
        "output": output if kind == "shell" else replacement.text,
        **({"status": "failed"} if kind == "apply_patch" else {}),
    }
    made = sys.modules["agents.items"].ToolCallOutputItem
    return made(agent=invocation.kwargs["agent"], output=replacement.text, raw_item=raw)


action = ToolReader(_action_call, _action_result, replace=_action_replace)
failing = Hook(lambda invocation: handler.handler_raised(invocation.arg(0, "error"), action))

# Realtime sessions of OpenAI's Agents SDK, which invoke tools under a name of their own and send plain outputs.


live_invoke = invoke._replace(
    replace=lambda _, replacement, invocation: LEFT_ALONE if _declares(invocation) else replacement.text
)

# Make a span of each trace of the SDK's own.
_ALSO_TRACED_BY = (
    "openinference.instrumentation.openai_agents:OpenAIAgentsInstrumentor",
    "opentelemetry.instrumentation.genai.openai_agents:OpenAIAgentsInstrumentor",
    "opentelemetry.instrumentation.openai_agents:OpenAIAgentsInstrumentor",
)

# Runs of OpenAI's Agents SDK.


def _run(invocation: Invocation) -> AgentRun:
    """Read a run's agent, and its group, session or conversation."""
    named = invocation.kwargs
    ids = (
        getattr(named.get("run_config"), "group_id", None),
        getattr(named.get("session"), "session_id", None),
        named.get("conversation_id"),
    )
    conversation = next(filter(None, map(text, ids)), None)
    state = fields(fields(invocation.arg(1, "input")).get("_current_step"))
    return AgentRun(getattr(invocation.arg(0, "starting_agent"), "name", None), conversation, resumes=_waiting(state))


def _waiting(result: dict[str, Any]) -> str | None:
    """Return the id of the first call that waits for an approval."""
    items = [fields(fields(item).get("raw_item")) for item in listed(result.get("interruptions"))]
    return text(items[0].get("call_id")) if items else None


run = RunReader(
    _run,
    # The task of a streamed run, which has another name up to 0.8.
    lambda result: getattr(result, "run_loop_task", None) or getattr(result, "_run_impl_task", None),
    pauses=lambda result: _waiting(fields(result)),
    also_traced_by=_ALSO_TRACED_BY,
)
_RUNTIME = "openai-agents"


def _report_added(session: Any, items: Any, size: int, error: BaseException | None) -> None:
    whose = text(session.session_id)
    variant = "mongodb" if f"{_MEMORY}.mongodb_session" in modules_of(session) else None
    payloads.report(_RUNTIME, whose, STATE, size, listed(items), variant=variant, error=error, is_appended=True)


@payloads.writing
def added(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    _report_added(invocation.instance, invocation.arg(0, "items"), invocation.state.bytes, error)


@payloads.reading
def read(invocation: Invocation, items: Any, error: BaseException | None) -> None:
    """Report the session that a run begins with; a read of a part of it is no payload."""
    session = invocation.instance
    own = getattr(session, "session_settings", None)  # from 0.9 on
    limits = (invocation.arg(0, "limit"), getattr(own, "limit", None))
    if error is None and limits == (None, None) and payloads.in_run():
        payloads.transferred(_RUNTIME, invocation, text(session.session_id), listed(items))


serialized = payloads.added
deserialized = payloads.adding(0, "item")
loaded = payloads.adding(0, "data")


@payloads.writing
def rewritten(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    session = text(invocation.instance.session_id)
    payloads.transferred(_RUNTIME, invocation, session, None, error=error, variant="dapr", is_appended=False)


@Hook
def saving(invocation: Invocation) -> None:
    """Take the size of a session's value, again when it is written again; another value has its metadata."""
    if (text(invocation.arg(1, "key")) or "").endswith(":messages"):
        payloads.add(invocation.arg(2, "value"), is_whole=True)


# OpenAI's Agents SDK: sessions in SQLite, whose rows are made inside of functions. The connection of a session shows
# the rows that the database gets and returns. ``AsyncSQLiteSession`` has the same functions as ``SQLiteSession``, which
# call aiosqlite.


class _Writing(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """The connection of one append; it adds up the texts of the rows."""

    _self_bytes = 0

    def executemany(self, *args: Any) -> Any:
        """Execute, or return what is awaited for it."""
        with errors.reported("session.rows"):
            self._self_bytes += sum(handler.text_bytes(row[-1]) for row in listed(args[1]))
        return self.__wrapped__.executemany(*args)


def _inserting(invocation: Invocation) -> _Writing:
    connection = _Writing(invocation.arg(0, "conn"))
    invocation.put(0, "conn", connection)
    return connection


def _inserted(invocation: Invocation, _: Any, error: BaseException | None) -> None:
    if not payloads.is_lost(error):
        _report_added(invocation.instance, invocation.arg(1, "items"), invocation.state._self_bytes, error)


inserted = Hook(_inserting, _inserted)


class _Reading(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """A connection, or a cursor of it, while a session's items are read; it adds up the rows' texts.

    Functions of aiosqlite return what is awaited or entered for a cursor.
    """

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        """Return a cursor that adds up its rows."""
        return _Reading(self.__wrapped__.cursor(*args, **kwargs))

    def execute(self, *args: Any) -> Any:
        """Execute; return a cursor that adds up its rows."""
        return _Reading(self.__wrapped__.execute(*args))

    def fetchall(self) -> Any:
        """Return all rows."""
        rows = self.__wrapped__.fetchall()
        return _counted_async(rows) if inspect.isawaitable(rows) else _counted(rows)

    def __await__(self) -> Generator[Any, Any, Any]:
        cursor = yield from self.__wrapped__.__await__()
        return _Reading(cursor)

    async def __aenter__(self) -> Any:
        return _Reading(await self.__wrapped__.__aenter__())

    async def __aexit__(self, *error: object) -> Any:
        return await self.__wrapped__.__aexit__(*error)


async def _counted_async(rows: Any) -> Any:
    return _counted(await rows)


def _counted(rows: Any) -> Any:
    with errors.reported("session.rows"):
        for row in listed(rows):
            payloads.add(row[0], is_read=True)
    return rows


connected = revising(lambda _, connection: _Reading(connection) if payloads.is_reading() else connection)


@Passing
async def connected_async(connect: Any, invocation: Invocation) -> Any:
    connection = await connect(*invocation.args, **invocation.kwargs)
    return _Reading(connection) if payloads.is_reading() else connection
