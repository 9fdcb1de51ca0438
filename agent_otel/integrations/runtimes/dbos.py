"""DBOS: the texts that it writes into its system database, and the steps that produce them.

DBOS runs a step inside ``Immediate._intercept`` or, when it is asynchronous, ``Pending._wrap``. These receive neither
the step's name nor its workflow's; both are in the context that DBOS makes current there. Only the answer of the
database shows if a step runs or has its result already. Inputs of steps are not stored.

By default the text is a pickle in base64, in which nothing can be read; a step's result is at hand beside it.
"""

from __future__ import annotations

import sys
import threading
from typing import Any
from weakref import WeakKeyDictionary

from agent_otel.core import execution_context, handler, step_handler
from agent_otel.core.types import Invocation, Payload, Step, StepOutcome, StepReader
from agent_otel.integrations.hooks import Hook, after, on_return
from agent_otel.integrations.readers import nothing
from agent_otel.integrations.registry import Candidate, Integration, Site
from agent_otel.semconv import INPUT, OUTPUT

_DATABASE = {
    "recorded": "SystemDatabase.record_operation_result",
    "asked": "SystemDatabase.check_operation_execution",
    "ended": "SystemDatabase.update_workflow_outcome",
}
ENTRY = Integration(
    "dbos",
    minimum="2.0",
    tested="2.0 and 3.4, SQLite",
    uncovered="inputs of steps, which are not stored; results of other workflows, messages and events that are read",
    sites=(
        Site(
            Candidate(  # 3.1 and later
                "dbos._sys_db", **_DATABASE, started="SystemDatabase.init_workflow SystemDatabase.init_child_workflow"
            ),
            Candidate("dbos._sys_db", **_DATABASE, started="SystemDatabase.init_workflow"),
        ),
        Candidate("dbos._outcome", step="Immediate._intercept", asynchronous_step="Pending._wrap"),
        Candidate("dbos._context", tried="EnterDBOSStepRetry.__enter__"),
        # The names of steps, and the workflows that are not new.
        Site(
            Candidate(  # 3.0 and later
                "dbos._core", entered="EnterDBOSStepCtx.__enter__", dequeued="execute_dequeued_workflow"
            ),
            Candidate("dbos._core", entered="EnterDBOSStepCtx.__enter__", resumes="execute_workflow_by_id"),
            Candidate(  # up to 2.9
                "dbos._core", entered="EnterDBOSStep.__enter__", resumes="execute_workflow_by_id"
            ),
        ),
    ),
)

_RUNTIME = "dbos"
_DONE = ("SUCCESS", "ERROR")
# Error messages of SQLite, psycopg and PostgreSQL for a text that is too long for them.
_TOO_LONG = ("string or blob too big", "requested length too large", "invalid memory alloc request size")


class _Running:
    """The step that a context of DBOS's is in, and what it has written. Operations of DBOS's own are not watched."""

    __slots__ = ("carried", "name", "refused", "step_id", "thread_id", "watched")

    def __init__(self, name: str, step_id: int) -> None:
        self.name = name
        self.step_id = step_id
        self.thread_id = threading.get_ident()
        self.carried: Payload | None = None
        self.refused: str | None = None
        self.watched = False


_running: WeakKeyDictionary[Any, _Running] = WeakKeyDictionary()
# Workflows that are run again or taken from a queue: in version 2 their row is written once more.
_resumed: set[str] = set()
# Which database a process uses is seen when it begins a workflow, and needed where only the step is known.
_known: dict[str, str] = {}


def _context() -> Any:
    module = sys.modules.get("dbos._context")
    return None if module is None else module.get_local_dbos_context()


# The workflow that runs here, for agents in its own code: their requests are steps, their tools may be none.
execution_context.workflows.append(lambda: getattr(_context(), "workflow_id", None) or None)


def _current() -> _Running | None:
    context = _context()
    return _running.get(context) if context is not None and context.is_step() else None


@on_return
def entered(invocation: Invocation, context: Any) -> None:
    _running[context] = _Running(invocation.instance.attributes["name"], context.function_id)


def _step(_: Invocation) -> Step | None:
    running = _current()
    if running is None:
        return None
    running.watched = True
    return Step(_RUNTIME, running.name, execution=_context().workflow_id, variant=_known.get("variant"))


@Hook
def tried(invocation: Invocation) -> None:
    """Name the attempt, which DBOS counts from 0, where it retries a step: all of them are one step."""
    running, attempt = _current(), invocation.instance.current_attempt
    if attempt and running is not None and running.watched:
        step_handler.step_retried(attempt + 1)


def _outcome(_: Invocation, result: Any) -> StepOutcome | None:
    carried, _refused = _taken()
    if carried is None:
        return None
    return StepOutcome(carried if carried.data is not None else carried._replace(value=result))


def _failed(error: BaseException) -> StepOutcome | None:
    carried, refused = _taken()
    return StepOutcome(carried, refused=refused) if refused else None


def _taken() -> tuple[Payload | None, str | None]:
    """Remove and return the step's payload and its refusal: a context may outlive its step, a payload must not."""
    running = _current()
    if running is None:
        return None, None
    written = running.carried, running.refused
    running.carried = running.refused = None
    return written


@on_return
def asked(_: Invocation, recorded: Any) -> None:
    """Begin a step that has no result yet; an asynchronous step asks the database from another thread."""
    running = _current()
    if recorded is None and running is not None and running.thread_id == threading.get_ident():
        step_handler.step_started()


@after
def recorded(invocation: Invocation, _: Any, error: Any) -> None:
    """Read the result of a step, or of an operation of DBOS's own that it records like one."""
    result = invocation.arg(0, "result")
    refused = _refusal(error)
    if result["output"] is None or (error is not None and refused is None):
        return
    carried = _carried(OUTPUT, result["output"])
    running = _current()
    if running is not None and running.watched and running.step_id == result["function_id"]:
        running.carried, running.refused = carried, refused
        return
    variant = _variant(invocation.instance)
    step = Step(_RUNTIME, result["function_name"], execution=result["workflow_uuid"], variant=variant)
    step_handler.payload(step, carried, refused=refused)


@after
def started(invocation: Invocation, result: Any, error: Any) -> None:
    """Report the input of a workflow whose row was written, unless it is resumed or has ended."""
    status, refused = invocation.arg(0, "status"), _refusal(error)
    if error is not None and refused is None:
        return
    workflow_id = status["workflow_uuid"]
    step_handler.execution_began(workflow_id, status["name"])
    variant = _variant(invocation.instance)
    if workflow_id in _resumed:
        _resumed.discard(workflow_id)
    elif error is not None or not (result[0] in _DONE or result[-1] is False):
        step = Step(_RUNTIME, None, status["name"], workflow_id, variant=variant)
        step_handler.payload(step, _carried(INPUT, status["inputs"]), refused=refused)


@Hook
def dequeued(invocation: Invocation) -> None:
    _variant(invocation.arg(0, "dbos")._sys_db)
    status = invocation.arg(1, "status")
    step_handler.execution_began(status["workflow_uuid"], status["name"])


resumes = Hook(lambda invocation: _resumed.add(invocation.arg(1, "workflow_id")))


@after
def ended(invocation: Invocation, written: Any, error: Any) -> None:
    """Report the outcome of a workflow after it was written, unless another process has the workflow now."""
    text, refused = invocation.kwargs.get("output"), _refusal(error)
    if written is False or (error is not None and refused is None):
        return
    workflow_id = invocation.arg(0, "workflow_id")
    if text is None:
        step_handler.execution_ended(workflow_id)
        return
    step = Step(_RUNTIME, execution=workflow_id, variant=_variant(invocation.instance))
    step_handler.payload(step, _carried(OUTPUT, text), refused=refused)
    if refused is None:
        step_handler.execution_ended(workflow_id)


def _carried(direction: str, text: str) -> Payload:
    """Text that is JSON can be read; base64 never begins like that."""
    return Payload(direction, handler.text_bytes(text), text if text[:1] in ("{", "[", '"') else None)


def _refusal(error: BaseException | None) -> str | None:
    """Return the database's message if a text was too long for it; SQLAlchemy's own message repeats the text."""
    said = str(getattr(error, "orig", ""))
    return said if any(words in said for words in _TOO_LONG) else None


def _variant(database: Any) -> str:
    found = "sqlite" if database.engine.dialect.name == "sqlite" else "postgres"
    _known["variant"] = found
    return found


# DBOS stores the results of steps, not their inputs.
asynchronous_step = StepReader(_step, nothing, _outcome, _failed)
step = asynchronous_step._replace(opened_by_handler=True)
