"""Prefect: a task around its function, its result where a record of it is stored, a flow's parameters where it runs.

What a task returned is stored when its transaction ends, which is after the task and may be after others; a result
that is not to be persisted is never serialised. Parameters are Python's own references but for those of a flow, which
the server keeps as compact JSON: they are measured as such, and the server refuses them where a run is created.

An agent in a flow's own code may send its requests to the model in tasks: what it does in between is of the same run.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from agent_otel._internal import collected
from agent_otel._internal.object_kinds import class_of, identity, is_empty
from agent_otel.core import execution_context, handler, step_handler
from agent_otel.core.types import Invocation, Payload, Step, StepOutcome
from agent_otel.integrations.hooks import Hook, Within, after, on_return
from agent_otel.integrations.registry import Candidate, Integration
from agent_otel.semconv import INPUT, OUTPUT

ENTRY = Integration(
    "prefect",
    minimum="3.8",
    tested="3.8, its own server",
    uncovered="results that are not persisted; the parameters of tasks, which are references",
    sites=(
        Candidate("prefect.task_engine", task="SyncTaskRunEngine.call_task_fn AsyncTaskRunEngine.call_task_fn"),
        Candidate(
            "prefect.flow_engine",
            flow="FlowRunEngine.call_flow_fn AsyncFlowRunEngine.call_flow_fn",
            flow_success="FlowRunEngine.handle_success AsyncFlowRunEngine.handle_success",
        ),
        Candidate(
            "prefect.results",
            serialised="ResultRecord.serialize ResultRecord.serialize_result",
            storing="ResultStore._persist_result_record ResultStore._apersist_result_record",
        ),
        # The refusals of the server.
        Candidate(
            "prefect.client.orchestration._flow_runs.client",
            created="FlowRunClient.create_flow_run FlowRunAsyncClient.create_flow_run",
        ),
    ),
)

_RUNTIME = "prefect"
_TOO_LARGE = re.compile(r"Flow run parameters must be less than [\d,]+ bytes when serialized \(got ([\d,]+) bytes\)")
# The server repeats the request.
_SAID_CHARACTERS = 4096


class _Unstored:
    """A result on its way to its store: the step that returned it, or the flow, and the bytes when they are made."""

    __slots__ = ("carried", "step", "visit")

    def __init__(self, visit: Any = None, step: Step | None = None) -> None:
        self.visit = visit
        self.step = step
        self.carried: Payload | None = None

    def finish(self) -> None:
        if self.visit is not None:
            self.visit.finish(StepOutcome(self.carried))
        elif self.step is not None and self.carried is not None:
            step_handler.payload(self.step, self.carried)


def _wait_for(record: Any, unstored: _Unstored) -> None:
    """Keep a result until its record is stored; a transaction that is rolled back drops the record."""
    _unstored[id(record)] = unstored
    collected.at_end_of(record, _dropped, id(record))


def _dropped(record_id: int) -> None:
    unstored = _unstored.pop(record_id, None)
    if unstored is not None:
        collected.run(unstored.finish)


# By the id of the record.
_unstored: dict[int, _Unstored] = {}
_ending: Within[Step] = Within("agent_otel_prefect_flow")


def _calling(invocation: Invocation) -> Any:
    """Begin the step of a task run, unless its transaction is committed: the task does not run then."""
    engine = invocation.instance
    if invocation.arg(0, "transaction").is_committed():
        return None
    run = engine.task_run
    execution = identity(run.flow_run_id) or identity(run.id)
    return step_handler.begin_step(Step(_RUNTIME, engine.task.name, None, execution, max(run.run_count, 1)))


def _called(invocation: Invocation, value: Any, error: BaseException | None) -> None:
    """End a task that returned or raised; if its transaction stores the result, wait for the serialised bytes."""
    visit, transaction = invocation.state, invocation.arg(0, "transaction")
    visit.leave()
    record = getattr(transaction, "_staged_value", None)
    if error is None and record is not None and transaction.write_on_commit and transaction.key and transaction.store:
        _wait_for(record, _Unstored(visit))
        return
    visit.finish(error_type=None if error is None else class_of(error))


def _flow_run() -> str | None:
    """Return the id of the flow run that runs here."""
    module = sys.modules.get("prefect.context")
    context = None if module is None else module.FlowRunContext.get()
    run = None if context is None else context.flow_run
    return None if run is None else identity(run.id)


execution_context.workflows.append(_flow_run)


def _of(engine: Any) -> Step:
    return Step(_RUNTIME, None, engine.flow.name, identity(engine.flow_run.id), max(engine.flow_run.run_count, 1))


@Hook
def flow(invocation: Invocation) -> None:
    """Report the parameters of a flow's first run; later runs of it have the same ones."""
    engine = invocation.instance
    step = _of(engine)
    if step.execution is not None:
        handler.execution_named(step.execution, engine.flow.name)
    if step.attempt == 1 and not is_empty(engine.flow_run.parameters):
        step_handler.object_carried(step, INPUT, engine.flow_run.parameters)


@after
def created(invocation: Invocation, run: Any, error: Any) -> None:
    """Report that the server refused to create a run, with the size from its message."""
    said = _TOO_LARGE.search(str(error)[:_SAID_CHARACTERS]) if error is not None else None
    if said is None:
        return
    flow = invocation.arg(0, "flow")
    size = int(said[1].replace(",", ""))
    step = Step(_RUNTIME, workflow=getattr(flow, "name", None))
    step_handler.payload(step, Payload(INPUT, size, value=invocation.kwargs.get("parameters")), None, said[0])


def _storing(invocation: Invocation) -> Any:
    """Return the result to measure: a task's, or the flow's own if it is stored while the flow ends."""
    record = invocation.arg(0, "result_record")
    flow = _ending.get()
    if id(record) not in _unstored and flow is not None:
        _wait_for(record, _Unstored(step=flow))
    return _unstored.get(id(record))


def _stored(invocation: Invocation, value: Any, error: BaseException | None) -> None:
    unstored: _Unstored = invocation.state
    _unstored.pop(id(invocation.arg(0, "result_record")), None)
    unstored.finish()


@on_return
def serialised(invocation: Invocation, data: Any) -> None:
    """Keep the serialised bytes of the result, then of the record that contains it, if it is stored."""
    unstored = _unstored.get(id(invocation.instance))
    if unstored is not None:
        result = unstored.carried.data if unstored.carried is not None else data
        unstored.carried = Payload(OUTPUT, len(data), result)


task = Hook(_calling, _called)
flow_success = Hook(lambda invocation: _of(invocation.instance), within=_ending)
storing = Hook(_storing, _stored)
