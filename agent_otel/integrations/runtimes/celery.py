"""Celery: a task between its own signals, its arguments where the worker decodes them, its result where it is encoded.

The functions that a worker hands to its pool travel to other processes by name and must stay what they are, so that
what surrounds a task is its public signals. An execution is what grew out of one task: ``root_id``, named after that
task where its worker has seen it. A retry is a new message; one that is delivered again is the same payload.

Sizes are the serialised arguments and the result's record, before base64 and headers. A broker that refuses a message
does so in the process that sends it. Backends with a document or rows of their own (SQL databases, MongoDB, Cassandra)
do not encode a record, and what ``task_always_eager`` runs in place is not serialised: such results are not measured.
"""

from __future__ import annotations

import re
import sys
import threading
from typing import Any
from weakref import WeakKeyDictionary

from opentelemetry import trace

from agent_otel._internal import errors
from agent_otel._internal.object_kinds import class_of, fields, is_dict, is_named, listed, text
from agent_otel.core import handler, step_handler
from agent_otel.core.durable_runs import durable_runs
from agent_otel.core.types import Invocation, Payload, Step, StepOutcome
from agent_otel.integrations.hooks import Hook, on_return
from agent_otel.integrations.payloads import carried
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.semconv import INPUT, OUTPUT

ENTRY = Integration(
    "celery",
    minimum="5.3",
    tested="5.7, memory broker",
    uncovered="results in SQL databases, MongoDB and Cassandra, and results of `task_always_eager`",
    sites=(
        Candidate("celery.app.trace", tracer="build_tracer"),
        Candidate("celery.loaders.base", starting="BaseLoader.on_task_init"),
        Candidate("celery.backends.base", encoded="Backend.encode"),
        # The library under it, with its messages; they are passed over unless they are Celery's.
        Candidate("kombu.serialization", decoded="loads"),
        Candidate("kombu.messaging", encoded="Producer._prepare", published="Producer._publish"),
    ),
)

_RUNTIME = "celery"
_SUCCESS = "SUCCESS"
_FAILED = ("FAILURE", "RETRY", "REJECTED")
# SQS, RabbitMQ, Redis.
_TOO_LARGE = re.compile(r"must be shorter than \d+ bytes|larger than configured max size|invalid bulk length")
#: The header of a message that carries the first span of the run, as a traceparent.
_FIRST_SPAN = "agent_otel_run"
_INSTRUMENTATION = "opentelemetry.instrumentation.celery"

_connected = threading.Lock()
_transports: WeakKeyDictionary[Any, str | None] = WeakKeyDictionary()


class _Run:
    """A task while it runs."""

    __slots__ = ("outcome", "task_id", "visit")

    def __init__(self, task_id: str, visit: Any) -> None:
        self.task_id = task_id
        self.visit = visit
        self.outcome: Payload | None = None


class _Thread(threading.local):
    """The tasks that run in a thread, one within the other, and the arguments that were decoded last."""

    def __init__(self) -> None:
        self.runs: list[_Run] = []
        self.decoded: tuple[int, Payload] | None = None


_thread = _Thread()


def _step(task: Any) -> Step:
    request = task.request
    root_id = request.root_id or request.id
    workflow = task.name if root_id == request.id else None
    if task.app not in _transports:  # the kind of the application's broker, in its words; this opens no connection
        _transports[task.app] = task.app.connection_for_read().get_transport_cls().driver_type
    return Step(_RUNTIME, task.name, workflow, root_id, (request.retries or 0) + 1, variant=_transports[task.app])


def _input(request: Any) -> Payload | None:
    """Return this task's input if the arguments that this thread decoded are the same object."""
    decoded, _thread.decoded = _thread.decoded, None
    if decoded is None or decoded[0] != id(request.args):
        return None
    return decoded[1]._replace(again=bool((request.delivery_info or {}).get("redelivered")))


@errors.guarded("celery.prerun")
def _prerun(task_id: str, task: Any, **_: Any) -> None:
    """Begin; other receivers of the signal may open a span after this. Celery fails a task without a request."""
    if task.request is None:
        return
    step = _step(task)
    if step.execution is not None:
        durable_runs.carried(step.execution, task.request.get(_FIRST_SPAN))
    visit = step_handler.begin_step(step, _input(task.request), opened_by_handler=True)
    if visit is not None and step.workflow is not None and step.execution is not None:
        handler.execution_named(step.execution, step.workflow)
    _thread.runs.append(_Run(task_id, visit))


@errors.guarded("celery.postrun")
def _postrun(task_id: str, retval: Any, state: str, **_: Any) -> None:
    """End, before any other receiver does."""
    runs = _thread.runs
    if not runs or runs[-1].task_id != task_id:
        return
    run = runs.pop()
    if run.visit is not None:
        failed = _error_class(retval) if state in _FAILED else None
        run.visit.finish(StepOutcome(run.outcome, failed))


def _error_class(retval: Any) -> str | None:
    """Return the class of the exception that a task ended with; of a retry, that of the one it was made for."""
    cause = getattr(retval, "exc", None) if is_named(retval, "Retry") else None
    error = retval if cause is None else cause
    return class_of(error) if issubclass(type(error), BaseException) else None


@Hook
def tracer(_: Invocation) -> None:
    """Listen from the first task on that this process can run."""
    if _connected.acquire(blocking=False):
        signals = sys.modules["celery.signals"]
        signals.task_prerun.connect(_prerun, weak=False)
        signals.task_postrun.connect(_postrun, weak=False)
        receivers = signals.task_postrun.receivers
        receivers.insert(0, receivers.pop())


@Hook
def starting(_: Invocation) -> None:
    """Begin the step; OpenTelemetry's instrumentation, already called, sets its span's action only at its end."""
    span: Any = trace.get_current_span()
    scope = getattr(span, "instrumentation_scope", None)
    if scope is not None and scope.name == _INSTRUMENTATION and span.name.startswith("run/"):
        span.set_attribute("celery.action", "run")
    step_handler.step_started()


@on_return
def decoded(invocation: Invocation, value: Any) -> None:
    """Keep the arguments of a task, (args, kwargs, embed), between the decoding of its message and its start."""
    parts = listed(value)
    if len(parts) == 3 and is_dict(parts[2]):  # noqa: PLR2004 - they are
        _thread.decoded = id(parts[0]), carried(INPUT, invocation.arg(0, "data"))


@on_return
def encoded(invocation: Invocation, value: Any) -> None:
    """Keep the encoded record of the running task if it succeeded, for a backend or in a message."""
    given = invocation.args[0] if invocation.args else next(iter(invocation.kwargs.values()), None)
    runs = _thread.runs
    record = fields(given) if runs and is_dict(given) else {}
    if text(record.get("status")) == _SUCCESS and text(record.get("task_id")) == runs[-1].task_id:
        runs[-1].outcome = carried(OUTPUT, value[0] if type(value) is tuple else value)


def _publishing(invocation: Invocation) -> bool:
    """Add the run's first span to a message of one of its tasks, for the process that gets it."""
    headers: Any = invocation.args[4] if len(invocation.args) > 4 else None  # noqa: PLR2004 - the fifth
    root_id = text(fields(headers).get("root_id")) if is_dict(headers) else None
    first = None if root_id is None else durable_runs.carrier(root_id)
    if first is not None:
        headers[_FIRST_SPAN] = first
    return True


def _published(invocation: Invocation, value: Any, error: Any) -> None:
    """Report a message that the broker refused as too large; it arrives nowhere, so it is counted here."""
    if error is None or not _TOO_LARGE.search(str(error)):
        return
    body, _priority, _content_type, _encoding, headers = invocation.args[:5]
    root_id, name = headers.get("root_id"), headers["task"]
    workflow = name if root_id == headers["id"] else None
    transport = invocation.instance.connection.transport.driver_type
    step = Step(_RUNTIME, name, workflow, root_id, (headers.get("retries") or 0) + 1, variant=transport)
    step_handler.payload(step, carried(INPUT, body), None, str(error))


published = Hook(_publishing, _published)
