"""Temporal: steps where the activity worker runs a task, workflows where their worker hands a completion to the core.

All bytes are read between the SDK's Python side and its core, after the user's payload codec: there the payloads are
those that the server's limit counts. Nothing runs in workflow code; an activation that replays is passed over.

The server, or the core before it, refuses payloads above a limit without an error to the Python side. So the adapter
counts a payload above the limit that the worker got from the server as refused; before 1.22 it uses Temporal's default.
From 1.23 to 1.31 the SDK's Python side refuses, with the size in its message.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agent_otel.core import handler as observer
from agent_otel.core import payload_cap, step_handler
from agent_otel.core.types import Invocation, Payload, Step, StepOutcome, StepReader
from agent_otel.integrations.hooks import Flag, Hook, after, on_return
from agent_otel.integrations.readers import remember
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.semconv import HISTORY, INPUT, OUTPUT

if TYPE_CHECKING:
    from collections.abc import Iterable


ENTRY = Integration(
    "temporal",
    distribution="temporalio",
    minimum="1.20",
    tested="1.20, 1.28 and 1.35, the real server",
    uncovered="tool calls in workflow code, which replays; signals, updates, failures and heartbeats below the limit; "
    "queries and memos; results that another process reports",
    sites=(
        Candidate(
            "temporalio.worker._activity",
            activity="_ActivityWorker._handle_start_activity_task",
            handler="_ActivityInboundImpl.execute_activity",
        ),
        Candidate(
            "temporalio.worker._workflow",
            activating="_WorkflowWorker._handle_activation",
            workflow_worker="_WorkflowWorker.__init__",
            workflow_code="_RunningWorkflow.activate",
        ),
        # The encoded payloads that both send to the SDK's core.
        Candidate(
            "temporalio.bridge.worker",
            completing_activity="Worker.complete_activity_task",
            beating="Worker.record_activity_heartbeat",
            completing_workflow="Worker.complete_workflow_activation",
            validated="Worker.validate",
            encoded="encode_completion",
        ),
    ),
)

_TOO_LARGE = "PayloadsTooLarge"
_SAID_TOO_LARGE = re.compile(r"\[TMPRL1103\].*payloads.*Size: (\d+) bytes, Limit: (\d+) bytes")
# Each task of a worker is an asyncio task of its own, and so are these.
_activation: ContextVar[Any] = ContextVar("agent_otel_temporal_activation", default=None)
_completed: ContextVar[tuple[Any, int] | None] = ContextVar("agent_otel_temporal_completed", default=None)


def _step(invocation: Invocation) -> Step:
    start = invocation.arg(1, "start")
    run_id = start.workflow_execution.run_id or getattr(start, "run_id", None)
    return Step(RUNTIME, start.activity_type, start.workflow_type or None, run_id or None, start.attempt)


def _input(invocation: Invocation) -> Payload | None:
    start = invocation.arg(1, "start")
    return payload_of(INPUT, start.input, again=start.attempt > 1)  # the history has it once


@Hook
def completing_activity(invocation: Invocation) -> None:
    _completed.set((invocation.arg(0, "comp"), limit_of(invocation.instance)))


@Hook
def beating(invocation: Invocation) -> None:
    """Report the details of a heartbeat that the core refuses; it fails the activity then."""
    step = step_handler.current_step()
    carried = payload_of(OUTPUT, invocation.arg(0, "comp").details)
    refused = refusal_of(carried, limit_of(invocation.instance))
    if step is not None and carried is not None and refused is not None:
        _report(step, carried._replace(kind="heartbeat"), refused)


def _outcome(invocation: Invocation, result: Any) -> StepOutcome | None:
    completion, limit = _completed.get() or (None, 0)
    if completion is None or completion.task_token != invocation.arg(0, "task_token"):
        return None
    status = completion.result.WhichOneof("status")
    if status == "completed":
        carried = payload_of(OUTPUT, (completion.result.completed.result,))
        refused = refusal_of(carried, limit)
        return StepOutcome(carried, _TOO_LARGE if refused else None, refused)
    if status == "cancelled":
        return StepOutcome(error_type="CancelledError")
    return _failed(completion.result.failed.failure, limit) if status == "failed" else None


def _failed(failure: Any, limit: int) -> StepOutcome:
    """Read a failure; of one above the limit the server keeps nothing but that, and does not retry."""
    said = _SAID_TOO_LARGE.search(failure.message)
    if said is not None:
        return StepOutcome(Payload(OUTPUT, field_bytes(int(said[1]))), _TOO_LARGE, failure.message)
    error_type = failure.application_failure_info.type or "ApplicationError"
    carried = Payload(OUTPUT, failure.ByteSize())
    refused = refusal_of(carried, limit)
    return StepOutcome(error_type=error_type) if refused is None else StepOutcome(carried, error_type, refused)


@Hook
def activating(invocation: Invocation) -> None:
    """Read an activation before payloads are decoded, and before workflow code runs."""
    activation = invocation.arg(0, "act")
    _activation.set(activation)
    for job in activation.jobs:
        if job.HasField("initialize_workflow"):
            started = job.initialize_workflow
            run = run_of(activation.run_id, started.workflow_type)
            if not activation.is_replaying:
                begin(activation.run_id, run)
                _report(_of(activation, run), payload_of(INPUT, started.arguments, again=run.again(INPUT)))
        elif job.HasField("remove_from_cache"):
            evicted(activation.run_id, job.remove_from_cache.reason)
        elif not activation.is_replaying:
            begin(activation.run_id, run_of(activation.run_id))


def _of(activation: Any, run: Run) -> Step:
    return Step(RUNTIME, workflow=run.workflow, execution=activation.run_id)


def _report(step: Step, carried: Payload | None, refused: str | None = None) -> None:
    if carried is not None:
        step_handler.payload(step, carried, refused=refused)


completing_workflow = Hook(lambda invocation: _read_commands(invocation.arg(0, "comp"), limit_of(invocation.instance)))


@after
def encoded(invocation: Invocation, value: Any, error: Any) -> None:
    """Read the commands that the SDK's Python side refused as too large; it sends a completion without commands."""
    said = _SAID_TOO_LARGE.search(str(error)) if error is not None else None
    if said is not None:
        _read_commands(invocation.arg(0, "completion"), int(said[2]))


def _read_commands(completion: Any, limit: int) -> None:
    activation = _activation.get()
    if activation is None or activation.is_replaying or completion.run_id != activation.run_id:
        return
    if not completion.successful.commands:  # as that of an eviction
        return
    run = run_of(activation.run_id)
    scheduled, ends, is_refused = None, False, False
    for command in completion.successful.commands:
        variant = command.WhichOneof("variant")
        sent = getattr(command, variant)
        seq = getattr(sent, "seq", 0)
        carried = sent_by(variant, sent)
        refused = refusal_of(carried, limit)
        if carried is not None and (refused is not None or variant == RESULT):
            step = _of(activation, run)._replace(activity=getattr(sent, "activity_type", None))
            _report(step, carried._replace(again=run.again(variant, seq, carried.bytes)), refused)
        ends, is_refused = ends or variant in ENDS, is_refused or refused is not None
        name = getattr(sent, "activity_type", None) or getattr(sent, "workflow_type", None)
        if name and seq > run.last.get(variant, 0):
            run.last[variant] = seq
            scheduled = scheduled or name
    run.is_over = ends and not is_refused
    history_bytes = activation.history_size_bytes
    if scheduled is not None and history_bytes > run.last.get(HISTORY, 0):  # local activities add nothing to it yet
        run.last[HISTORY] = history_bytes
        _report(_of(activation, run), Payload(HISTORY, history_bytes, kind=scheduled))


@on_return
def validated(invocation: Invocation, value: Any) -> None:
    """Keep the limit of a namespace, which the server has told a worker, also as the cap of its payloads."""
    limit = getattr(getattr(value, "limits", None), "blob_size_limit_error", 0)
    if limit > 0:
        _limits[invocation.instance] = limit
        for boundary in _BOUNDARIES:
            payload_cap.discover(RUNTIME, boundary, limit)


@Hook
def workflow_worker(invocation: Invocation) -> None:
    """Exclude this package from the sandbox's reloading: loaded again for each run it would measure nothing."""
    modules = getattr(getattr(invocation.kwargs["workflow_runner"], "restrictions", None), "passthrough_modules", None)
    if type(modules) is set:
        modules.add("agent_otel")


activity = StepReader(_step, _input, _outcome, opened_by_handler=True)
handler = Hook(lambda _: step_handler.step_started())
# Workflow code runs again whenever it is replayed, and the tools in it, too.
workflow_code = Hook(within=Flag(observer.muted))

RUNTIME = "temporal"
_BOUNDARIES = ("activity_input", "activity_output", "workflow_input", "workflow_output")
_DEFAULT_LIMIT_BYTES = 2 * 1024 * 1024

#: Commands that end a run.
ENDS = frozenset(f"{end}_workflow_execution" for end in ("cancel", "complete", "continue_as_new", "fail"))
#: The command with a workflow's result, which arrives nowhere else.
RESULT = "complete_workflow_execution"
# The field with the payloads of each command that is counted where it arrives, or at the sender if it is refused.
_SENT_ON = {
    "schedule_activity": "arguments",
    "start_child_workflow_execution": "input",
    "continue_as_new_workflow_execution": "arguments",
    "signal_external_workflow_execution": "args",
}

_limits: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

# Bytes of Temporal's payloads, and the limit that the server of a worker has for them.


def limit_of(worker: Any) -> int:
    """Return the limit in bytes that a worker got from its server, or Temporal's default."""
    return _limits.get(worker, _DEFAULT_LIMIT_BYTES)


def field_bytes(size: int) -> int:
    """Return the bytes of a protobuf field with so many bytes in it: tag, length in seven bits a byte, and those."""
    return 1 + max(1, (size.bit_length() + 6) // 7) + size


def payload_of(direction: str, payloads: Iterable[Any], *, again: bool = False) -> Payload | None:
    """Weigh a ``Payloads`` message without building one; the largest JSON text stands for what is inside.

    protobuf's own ByteSize serialises.
    """
    total, text = 0, b""
    for payload in payloads:
        data = payload.data
        size = field_bytes(len(data)) if data else 0
        for key, value in payload.metadata.items():
            size += field_bytes(field_bytes(len(key.encode())) + field_bytes(len(value)))
            if value.startswith(b"json/") and key == "encoding" and len(data) > len(text):
                text = data
        for stored in getattr(payload, "external_payloads", ()):
            size += field_bytes(stored.ByteSize())
        total += field_bytes(size)
    return Payload(direction, total, text or None, again=again) if total else None


def sent_by(variant: str, sent: Any) -> Payload | None:
    """Return the payload of a command that the server may refuse; None for another command."""
    if variant in _SENT_ON:
        return payload_of(INPUT, getattr(sent, _SENT_ON[variant]))
    if variant == RESULT and sent.HasField("result"):
        return payload_of(OUTPUT, (sent.result,))
    if variant == "schedule_nexus_operation":
        return payload_of(INPUT, (sent.input,))
    if variant == "update_response" and sent.HasField("completed"):
        carried = payload_of(OUTPUT, (sent.completed,))
        return carried and carried._replace(kind=variant)
    if variant == "fail_workflow_execution":
        return Payload(OUTPUT, sent.failure.ByteSize(), kind=variant)
    return None


def refusal_of(payload: Payload | None, limit: int) -> str | None:
    """Return the error message for a payload above the limit."""
    if payload is None or payload.bytes <= limit:
        return None
    return f"{payload.bytes} bytes exceed the limit of {limit}"


# Reasons for an eviction behind a run's last command: CACHE_FULL, of a worker that keeps no run, and
# WORKFLOW_EXECUTION_ENDING. Behind another one, the server has not taken the command.
_DONE = (1, 10)
_RUNS = 4096

# Runs of Temporal's workflows in this process, from the first activation that is no replay to the last command.


class Run:
    """The state of a workflow's run: its type, the counted payloads, the last number of each kind of command.

    A workflow task that failed is done again, and is no replay then. ``has_begun`` is false while this process has only
    replayed the run, as for a query of a run that has ended. ``is_over`` is true behind the run's last command.
    """

    __slots__ = ("counted", "has_begun", "is_over", "last", "workflow")

    def __init__(self, workflow: str | None) -> None:
        self.workflow = workflow
        self.counted: set[tuple[Any, ...]] = set()
        self.last: dict[str, int] = {}
        self.has_begun = self.is_over = False

    def again(self, *what: Any) -> bool:
        """Return True if this has been counted; mark it as counted."""
        known = what in self.counted
        self.counted.add(what)
        return known


_runs: OrderedDict[str, Run] = OrderedDict()


def run_of(run_id: str, workflow: str | None = None) -> Run:
    """Return the run with this id; above the limit the first run is dropped."""
    run = _runs.get(run_id)
    if run is None:
        run = Run(workflow)
        remember(_runs, run_id, run, _RUNS)
    return run


def begin(run_id: str, run: Run) -> None:
    """Report a run that begins, or goes on, in this process."""
    run.is_over = False
    if not run.has_begun and run.workflow is not None:
        run.has_begun = True
        step_handler.execution_began(run_id, run.workflow)


def evicted(run_id: str, reason: int) -> None:
    """Report the end of a run that has sent its last command; one that was replayed to its end leaves nothing."""
    run = _runs.get(run_id)
    if run is None or reason not in _DONE:
        return
    if run.is_over:
        step_handler.execution_ended(run_id)
    if run.is_over or not run.has_begun:
        del _runs[run_id]
