"""Microsoft's durabletask and Dapr Workflows, whose worker is a copy of it: one "task hub" protocol.

The worker has the encoded text in hand where it runs an activity and where it runs a workflow's turn. A workflow's
history comes with each of its turns, and the hub delivers a turn again when it did not accept the turn's outcome; so
the adapter keeps, for each run, how much of its history it has read: integers only.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from itertools import chain
from typing import TYPE_CHECKING, Any

from agent_otel._internal.object_kinds import modules_of
from agent_otel.core import handler, payload_cap, step_handler
from agent_otel.core.types import Invocation, Payload, Step, StepOutcome, StepReader
from agent_otel.integrations import wrap
from agent_otel.integrations.hooks import Flag, Hook, Within, after, on_return
from agent_otel.integrations.payloads import Recent, carried_or_none
from agent_otel.integrations.readers import remember
from agent_otel.integrations.registry import Candidate, Integration, Site
from agent_otel.semconv import HISTORY, INPUT, OUTPUT, STATE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


ENTRY = Integration(
    "durabletask",
    minimum="1.5",
    tested="1.5 to 1.12, its in-memory backend",
    uncovered="tool calls in an orchestrator's own code, which replays",
    sites=(
        Candidate(
            "durabletask.worker",
            activity="_ActivityExecutor.execute",
            requested="TaskHubGrpcWorker._execute_activity",
            orchestrator="_OrchestrationExecutor.execute",
            stub="stubs.TaskHubSidecarServiceStub.__init__",
            worker="TaskHubGrpcWorker.__init__",
            # Which durabletask-dapr has not: up to Dapr 1.17 a module of the same name.
            externalized="payload_helpers.externalize_payloads",
        ),
    ),
)
# Up to 1.18 the worker is in a distribution of its own, dapr-ext-workflow, of the same version.
DAPR_ENTRY = Integration(
    "dapr",
    minimum="1.18",
    tested="1.18 and 1.19, a simulated daprd",
    uncovered="tool calls in a workflow's own code, which replays",
    packages=("dapr.ext.workflow",),
    sites=(
        Candidate(
            "dapr.ext.workflow._durabletask.worker",
            dapr_activity="_ActivityExecutor.execute _ActivityExecutor.execute_async",
            dapr_workflow="_OrchestrationExecutor.execute",
            dapr_stub="stubs.TaskHubSidecarServiceStub.__init__",
        ),
        # Sessions of OpenAI's Agents SDK in Dapr's store of states.
        Site(
            Candidate("dapr.aio.clients.grpc.client", saving="DaprGrpcClientAsync.save_state"),
            adapter="frameworks.openai_agents",
        ),
    ),
)

_RUNTIME = "durabletask"
# Azure's hub, which Microsoft's worker for it is made for: its caps are a quarter of those of a hub of one's own.
_SCHEDULER, _SCHEDULERS_WORKER = "azure-durable-task-scheduler", "durabletask.azuremanaged."
_PAYLOADS = ("activity_input", "activity_output", "workflow_input", "workflow_output")
_MAX_RUNS = 10_000
_MAX_RESULTS = 1_000
_TOO_LARGE = "larger than max"
# Bytes of a message beside an activity's input: half a KiB from daprd to the scheduler, with short names.
_BESIDE_BYTES = 1024
_CONTINUED_AS_NEW = 2  # OrchestrationStatus
_STATUS = -1  # in the place of an action's number


class Run:
    """The progress of reading one run of a workflow; a run that continues as new has a new one."""

    __slots__ = ("committed", "history_bytes", "is_over", "seen", "unsendable", "was_told", "workflow")

    def __init__(self) -> None:
        #: Events that were history at the last turn; every turn adds to them.
        self.committed = -1
        #: True if it continues as new, or has ended and left no history that distinguishes it from a later run of its
        #: name.
        self.is_over = False
        #: Events measured so far, and what they came to.
        self.seen = 0
        self.history_bytes = 0
        #: Tasks whose input was counted where it was made, because it may be too large to arrive.
        self.unsendable: set[int] = set()
        #: True if the SDK was informed that the last turn was refused.
        self.was_told = False
        self.workflow: str | None = None


class TaskHub:
    """An SDK that speaks the protocol.

    ``ends`` names the action that ends a workflow, and its status; ``child`` the one that starts another workflow.
    ``first`` is where the instance's id stands among the arguments of the function that runs an activity.
    """

    def __init__(self, runtime: str, ends: tuple[str, str], child: str, first: int = 0) -> None:
        self._runtime = runtime
        self._child = child
        self._end, self._status = ends
        self._first = first
        #: True if all events of a workflow are sent together, each with its payload.
        self.sends_history = True
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._results: OrderedDict[tuple[str, int], Step] = OrderedDict()
        self._executed = Recent()

    def step(self, invocation: Invocation, run: str | None = None) -> Step:
        """Read which activity runs, and count how often this process has executed it.

        Dapr gives all attempts of an activity one id. Durable Task gives them the number of the task, which the next
        run of the same instance has again: where the hub does not name the ``run``, the attempt is not known.
        """
        instance_id, name, task_id = invocation.args[self._first : self._first + 3]
        task = (run, task_id) if run else invocation.arg(self._first + 4, "task_execution_id")
        attempt = self._executed.note((instance_id, task)) if task else 1
        return Step(self._runtime, name, execution=instance_id, attempt=attempt)

    def input(self, invocation: Invocation) -> Payload | None:
        """Read what it is given."""
        instance_id, _name, task_id, text = invocation.args[self._first : self._first + 4]
        run = self._runs.get(instance_id)
        return carried_or_none(INPUT, text, again=run is not None and task_id in run.unsendable)

    def output(self, invocation: Invocation, text: str | None) -> StepOutcome:
        """Read what it returns, and remember whose it is until it is sent."""
        instance_id, name, task_id = invocation.args[self._first : self._first + 3]
        step = Step(self._runtime, name, execution=instance_id)
        with self._lock:
            remember(self._results, (instance_id, task_id), step, _MAX_RESULTS)
        return StepOutcome(carried_or_none(OUTPUT, text))

    def turn(self, invocation: Invocation, result: Any, error: Any) -> None:
        """Read a turn of a workflow, unless it has been read before.

        The run's first event names the workflow and carries its input; it is new once, then part of every replay.
        """
        instance_id, old_events, new_events = invocation.args[:3]
        start = next((event for event in chain(old_events, new_events) if event.HasField("executionStarted")), None)
        if start is None:
            return
        run, actions = self._run(instance_id, len(old_events)), result.actions if error is None else ()
        if run.committed == len(old_events):
            if not run.was_told:
                self._not_taken(run, instance_id, new_events, actions)
            return
        run.committed = len(old_events)
        run.was_told = False
        started = start.executionStarted
        run.workflow = started.name
        step_handler.execution_began(instance_id, started.name, started.parentTraceContext.traceParent)
        if any(event.HasField("executionStarted") for event in new_events):
            self._report(instance_id, carried_or_none(INPUT, started.input.value))
        ending = self._ending(actions)
        if ending is not None:
            run.is_over = ending[0] == INPUT or not old_events
            self._report(instance_id, ending[1] if ending[0] == OUTPUT else None)
        for step, task_id, carried in self._scheduled(instance_id, actions):
            if step_handler.is_over_cap(step, carried._replace(bytes=carried.bytes + _BESIDE_BYTES)):
                run.unsendable.add(task_id)
                step_handler.payload(step, carried)
        if self.sends_history:
            self._read_history(run, instance_id, old_events, new_events, actions)
        if ending is not None and ending[0] == OUTPUT:
            step_handler.execution_ended(instance_id)

    def _not_taken(self, run: Run, instance_id: str, new: Iterable[Any], actions: Iterable[Any]) -> None:
        """Report the oversized payloads of a redelivered turn: the hub rejected them without an error.

        daprd shows the workflow the tasks that it tried to schedule; after it has lost them, the workflow schedules
        them again.
        """
        tried = {event.eventId: event.taskScheduled.name for event in new if event.HasField("taskScheduled")}
        asked = {action.id: action.scheduleTask.name for action in actions if action.HasField("scheduleTask")}
        for task_id, name in (tried | asked).items():
            if task_id in run.unsendable:
                step_handler.payload_refused(Step(self._runtime, name, execution=instance_id), INPUT)

    def _read_history(
        self, run: Run, instance_id: str, old: Sequence[Any], new: Sequence[Any], actions: Iterable[Any]
    ) -> None:
        """Measure the events that were not there at the last turn, each once."""
        run.history_bytes += sum(event.ByteSize() for event in chain(old[run.seen :], new))
        run.seen = len(old) + len(new)
        scheduled = (action.scheduleTask.name for action in actions if action.HasField("scheduleTask"))
        self._report(instance_id, Payload(HISTORY, run.history_bytes, kind=next(scheduled, "")))

    def _run(self, instance_id: str, committed: int) -> Run:
        with self._lock:
            run = self._runs.get(instance_id)
            if run is None or run.is_over or committed < run.committed:
                run = Run()
                remember(self._runs, instance_id, run, _MAX_RUNS)
            self._runs.move_to_end(instance_id)
            return run

    def _report(self, instance_id: str, carried: Payload | None, refused: str | None = None) -> None:
        if carried is not None:
            step_handler.payload(Step(self._runtime, execution=instance_id), carried, None, refused)

    def _ending(self, actions: Iterable[Any]) -> tuple[str, Payload | None] | None:
        """With what a workflow ends, if it does: its output, or the input with which it continues as new."""
        for action in actions:
            if action.HasField(self._end):
                end = getattr(action, self._end)
                direction = INPUT if getattr(end, self._status) == _CONTINUED_AS_NEW else OUTPUT
                return direction, carried_or_none(direction, end.result.value)
        return None

    def _scheduled(self, instance_id: str, actions: Iterable[Any]) -> Iterable[tuple[Step, int, Payload]]:
        for action in actions:
            if action.HasField("scheduleTask"):
                task = action.scheduleTask
                carried = carried_or_none(INPUT, task.input.value)
                if carried is not None:
                    yield Step(self._runtime, task.name, execution=instance_id), action.id, carried

    def stub_made(self, invocation: Invocation, result: Any, error: Any) -> None:
        """Wrap a connection's stub, to see the hub's answers to results: the worker does not pass them on."""
        stub = invocation.instance
        if error is None:
            for method, hook in (("CompleteActivityTask", self._sent), ("CompleteOrchestratorTask", self._turn_sent)):
                wrap.wrap_attribute(stub, method, after(hook))

    def _sent(self, invocation: Invocation, result: Any, error: Any) -> None:
        self.result_sent(invocation.args[0], refused=is_refusal(error))

    def _turn_sent(self, invocation: Invocation, result: Any, error: Any) -> None:
        if is_refusal(error):
            self.turn_refused(invocation.args[0])

    def result_sent(self, response: Any, *, refused: bool) -> None:
        """Forget the step of a result that was sent; report it if the hub ``refused`` the result."""
        with self._lock:
            step = self._results.pop((response.instanceId, response.taskId), None)
        if step is not None and refused:
            step_handler.payload_refused(step, OUTPUT)

    def turn_refused(self, response: Any) -> None:
        """Report the largest of all that a turn sends as refused; measure what is measured where it arrives."""
        instance_id, actions = response.instanceId, response.actions
        run = self._runs.get(instance_id) or Run()
        run.was_told = True
        own = Step(self._runtime, None, run.workflow, instance_id)
        sizes = {action.id: action.ByteSize() for action in actions}
        sizes[_STATUS] = response.customStatus.ByteSize()
        largest = max(sizes, key=sizes.__getitem__)
        sent = {}
        for step, number, carried in chain(self._scheduled(instance_id, actions), self._beside(own, response)):
            sent[number] = step, carried.direction
            if number not in run.unsendable:
                run.unsendable.add(number)
                step_handler.payload(step, carried)
        ending = self._ending(action for action in actions if action.id == largest)
        if ending is not None and ending[0] == INPUT:
            self._report(instance_id, ending[1], _TOO_LARGE)
            return
        # Else it may be a message to an entity or to another workflow, which are measured nowhere.
        step, direction = sent.get(largest, (own, INPUT)) if ending is None else (own, OUTPUT)
        step_handler.payload_refused(step, direction)

    def _beside(self, own: Step, response: Any) -> Iterable[tuple[Step, int, Payload]]:
        """Return the other payloads of a turn: the inputs of workflows that it starts, and its status."""
        for action in response.actions:
            starts = action.HasField(self._child)
            carried = carried_or_none(INPUT, getattr(action, self._child).input.value) if starts else None
            if carried is not None:
                yield own, action.id, carried
        status = carried_or_none(STATE, response.customStatus.value)
        if status is not None:
            yield own, _STATUS, status


def is_refusal(error: Any) -> bool:
    """Return True if the hub refused a message as larger than its limit."""
    details = getattr(error, "details", None)
    return callable(details) and _TOO_LARGE in (details() or "")


#: The run that the hub names in its request for an activity: its instance has the same id in its next run.
_run: Within[str] = Within("agent_otel_durabletask_run")
_hub = TaskHub(_RUNTIME, ("completeOrchestration", "orchestrationStatus"), "createSubOrchestration")


@on_return
def worker(invocation: Invocation, _: Any) -> None:
    """Read a worker's limits: for received messages, of its hub, and of its payload store, if it has one."""
    worker = invocation.instance
    if any(module.startswith(_SCHEDULERS_WORKER) for module in modules_of(worker)):
        for boundary in _PAYLOADS:
            cap = payload_cap.cap_for(_SCHEDULER, boundary)
            payload_cap.discover(_RUNTIME, boundary, 0 if cap is None else cap.bytes)
    options = worker._channel_options
    if options is not None and options.max_receive_message_length is not None:
        payload_cap.discover(_RUNTIME, "history", options.max_receive_message_length)
    store = worker._payload_store
    if store is not None:
        # The store keeps large payloads; the history contains only tokens for them.
        _hub.sends_history = False
        for boundary in _PAYLOADS:
            payload_cap.discover(_RUNTIME, boundary, store.options.max_stored_payload_bytes)


@after
def externalized(invocation: Invocation, result: Any, error: Any) -> None:
    """Report a payload above the store's limit: the worker checks it before it sends, and only logs the refusal."""
    if issubclass(type(error), ValueError):
        message = invocation.arg(0, "msg")
        if message.DESCRIPTOR.name == "ActivityResponse":
            _hub.result_sent(message, refused=True)
        elif message.DESCRIPTOR.name == "OrchestratorResponse":
            _hub.turn_refused(message)


requested = Hook(lambda invocation: str(invocation.arg(0, "req").orchestrationInstance.executionId.value), within=_run)
activity = StepReader(lambda invocation: _hub.step(invocation, _run.get()), _hub.input, _hub.output)
orchestrator = Hook(after=_hub.turn, within=Flag(handler.muted))
stub = after(_hub.stub_made)


_dapr = TaskHub("dapr", ("completeWorkflow", "workflowStatus"), "createChildWorkflow", first=1)
dapr_activity = StepReader(_dapr.step, _dapr.input, _dapr.output)
dapr_workflow = Hook(after=_dapr.turn, within=Flag(handler.muted))
dapr_stub = after(_dapr.stub_made)
