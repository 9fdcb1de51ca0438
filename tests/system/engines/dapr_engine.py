"""The workflow engine behind ``dapr_sidecar``: instances, their histories, and work for whoever asks.

As daprd 1.18 it dispatches the activities of a turn before it saves the turn: when one is refused, a worker gets the
same turn again, each second, while those that were taken are under way and not dispatched twice. What the turn has
asked for is among its new events then, and is not asked for again. Where that does not fit into a message daprd loses
the worker's connection and what it has not saved; here the turn just begins anew.
"""

# mypy: disable-error-code="import-not-found,import-untyped,misc,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from dapr.ext.workflow._durabletask.internal import protos as pb

from tests.system.engines import dapr_events as events

UNENDED = (pb.ORCHESTRATION_STATUS_PENDING, pb.ORCHESTRATION_STATUS_RUNNING)


@dataclass(frozen=True)
class Limits:
    """Caps in bytes, an interval in seconds, and how often a refused turn is run again; None is for ever."""

    max_body_size: int
    scheduler_limit: int
    scheduler_retries: int | None
    scheduler_interval: float


@dataclass(eq=False)
class Instance:
    """A workflow, from its start or its last ``continue_as_new`` on."""

    state: Any
    #: The instance that called it, and its task there.
    parent: tuple[Instance, int] | None = None
    #: Events of the turns that are over.
    history: list[Any] = field(default_factory=list)
    #: Events for the next turn, and those of the turn that a worker has now.
    inbox: list[Any] = field(default_factory=list)
    turn: list[Any] = field(default_factory=list)
    #: The events of a turn that was not saved, and what it has asked for.
    unsaved: list[Any] = field(default_factory=list)
    #: Tasks, timers and children that were begun.
    begun: set[int] = field(default_factory=set)
    refused: int = 0


class Engine:
    """All instances. Its methods are called with ``changed`` held."""

    def __init__(self, limits: Limits) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.instances: dict[str, Instance] = {}
        self.refusals: list[str] = []
        self._limits = limits
        self._tokens = itertools.count(1)
        # Work for the next worker that asks, and by token what a worker has.
        self._waiting: deque[tuple[Instance, Any]] = deque()
        self._taken: dict[str, tuple[object, Instance, Any]] = {}

    def create(self, name: str, request: Any, parent: tuple[Instance, int] | None = None) -> None:
        """Start a workflow."""
        state = pb.WorkflowState(instanceId=name, name=request.name, input=events.given(request, "input"))
        state.workflowStatus = pb.ORCHESTRATION_STATUS_PENDING
        for moment in (state.createdTimestamp, state.lastUpdatedTimestamp):
            moment.GetCurrentTime()
        instance = Instance(state, parent)
        self.instances[name] = instance
        self.tell(instance, executionStarted=events.started(instance.state, parent))

    def tell(self, instance: Instance | None, **event: Any) -> None:
        """Give an instance an event, unless it has ended or is not the current one of its name."""
        if instance is not None and self.instances.get(instance.state.instanceId) is instance:
            instance.inbox.append(events.event(**event))
            self._run(instance)

    def _run(self, instance: Instance) -> None:
        """Begin a turn, if there is something for it and none under way."""
        retries = self._limits.scheduler_retries
        given_up = retries is not None and instance.refused > retries
        nothing_new = not instance.inbox and not instance.unsaved
        if given_up or instance.turn or nothing_new or instance.state.workflowStatus not in UNENDED:
            return
        size = sum(event.ByteSize() for event in (*instance.history, *instance.inbox))
        if not self._fits(size):
            self._stall(instance, f"Workflow payload size {size} bytes")
            return
        started = events.event(workflowStarted=pb.WorkflowStartedEvent())
        instance.turn = [*instance.unsaved, started, *instance.inbox]
        instance.unsaved, instance.inbox = [], []
        request = pb.WorkflowRequest(
            instanceId=instance.state.instanceId, pastEvents=instance.history, newEvents=instance.turn
        )
        self._offer(instance, pb.WorkItem(workflowRequest=request))

    def _fits(self, size: int) -> bool:
        return size <= self._limits.max_body_size * 95 // 100

    def _stall(self, instance: Instance, what: str) -> None:
        maximum = self._limits.max_body_size
        said = f"{what} exceeds 95% of max gRPC body size {maximum} bytes"
        said += "; increase daprd --max-body-size and restart to resume"
        stalled = pb.ExecutionStalledEvent(reason=pb.PAYLOAD_SIZE_EXCEEDED, description=said)
        instance.history.append(events.event(executionStalled=stalled))
        instance.state.workflowStatus = pb.ORCHESTRATION_STATUS_STALLED
        self.changed.notify_all()

    # --- work -----------------------------------------------------------------------------------------------------

    def _offer(self, instance: Instance, item: Any) -> None:
        self._waiting.append((instance, item))
        self.changed.notify_all()

    @property
    def has_work(self) -> bool:
        """Whether there is something to take."""
        return bool(self._waiting)

    def take(self, worker: object) -> Any:
        """Return work for a worker."""
        instance, item = self._waiting.popleft()
        item.completionToken = str(next(self._tokens))
        self._taken[item.completionToken] = (worker, instance, item)
        return item

    def lose(self, worker: object) -> None:
        """Offer again what a worker had that is gone."""
        for token, (owner, instance, item) in list(self._taken.items()):
            if owner is worker:
                del self._taken[token]
                self._offer(instance, item)

    def end_activity(self, response: Any) -> None:
        """Take an activity's outcome, once."""
        taken = self._taken.pop(response.completionToken, None)
        if taken is None:
            return
        _, instance, item = taken
        same = {"taskScheduledId": response.taskId, "taskExecutionId": item.activityRequest.taskExecutionId}
        if response.HasField("failureDetails"):
            self.tell(instance, taskFailed=pb.TaskFailedEvent(failureDetails=response.failureDetails, **same))
        else:
            self.tell(instance, taskCompleted=pb.TaskCompletedEvent(result=events.given(response, "result"), **same))

    def end_turn(self, response: Any) -> None:
        """Take the outcome of a workflow's turn, once: dispatch what it asks for, then save it."""
        taken = self._taken.pop(response.completionToken, None)
        if taken is None:
            return
        _, instance, _ = taken
        begun = [event for event in map(events.begun, response.actions) if event is not None]
        asked = [*(event for event in instance.turn if event.HasField("taskScheduled")), *begun]
        refused = [event for event in asked if not self._begin(instance, event)]
        if instance.state.workflowStatus not in UNENDED:
            return
        if refused:
            instance.unsaved, instance.turn = [*instance.turn, *begun], []
            if sum(event.ByteSize() for event in instance.unsaved) > self._limits.max_body_size:
                told = (event for event in instance.unsaved if event.eventId < 0)
                instance.inbox[:0] = [event for event in told if not event.HasField("workflowStarted")]
                instance.unsaved = []
            instance.refused += 1
            self._later(self._limits.scheduler_interval, self._run, instance)
            return
        instance.history += [*instance.turn, *begun]
        instance.turn = []
        instance.state.workflowStatus = pb.ORCHESTRATION_STATUS_RUNNING
        instance.state.customStatus.CopyFrom(response.customStatus)
        instance.state.lastUpdatedTimestamp.GetCurrentTime()
        for action in response.actions:
            if action.HasField("completeWorkflow"):
                self._complete(instance, action.completeWorkflow)
        self._run(instance)
        self.changed.notify_all()

    def _begin(self, instance: Instance, event: Any) -> bool:
        """Begin what an event says that is begun, once; return whether it was taken."""
        if event.eventId in instance.begun:
            return True
        if event.HasField("taskScheduled"):
            task, size, limit = event.taskScheduled, event.ByteSize(), self._limits.scheduler_limit
            if not self._fits(size):
                self._stall(instance, f"activity '{task.name}::{event.eventId}' payload {size} bytes")
                return False
            # Without what does not depend on the task: daprd 1.18.2 puts half a KiB around it.
            if (size := task.ByteSize()) > limit:
                self.refusals.append(f"trying to send message larger than max ({size} vs. {limit})")
                return False
            self._offer(instance, pb.WorkItem(activityRequest=events.request(instance.state.instanceId, event)))
        elif event.HasField("timerCreated"):
            fire_at = event.timerCreated.fireAt
            fired = pb.TimerFiredEvent(timerId=event.eventId, fireAt=fire_at)
            self._later(fire_at.seconds + fire_at.nanos / 1e9 - time.time(), self.tell, instance, timerFired=fired)
        else:
            child = event.childWorkflowInstanceCreated
            self.create(child.instanceId, child, (instance, event.eventId))
        instance.begun.add(event.eventId)
        return True

    def _later(self, seconds: float, function: Any, *arguments: Any, **event: Any) -> None:
        def call() -> None:
            with self.changed:
                function(*arguments, **event)

        if seconds < threading.TIMEOUT_MAX:  # an event that is waited for without a timeout has one in the year 9999
            timer = threading.Timer(max(seconds, 0), call)
            timer.daemon = True
            timer.start()

    def _complete(self, instance: Instance, action: Any) -> None:
        state, result, failure = instance.state, events.given(action, "result"), events.given(action, "failureDetails")
        if action.workflowStatus == pb.ORCHESTRATION_STATUS_CONTINUED_AS_NEW:
            state.input.CopyFrom(result or pb.WorkflowState().input)
            again = Instance(state, instance.parent)
            self.instances[state.instanceId] = again
            start = events.event(executionStarted=events.started(state, again.parent))
            again.inbox = [start, *action.carryoverEvents, *instance.inbox]
            self._run(again)
            return
        state.workflowStatus = action.workflowStatus
        if result is not None:
            state.output.CopyFrom(result)
        if failure is not None:
            state.failureDetails.CopyFrom(failure)
        outcome = {"result": result, "failureDetails": failure}
        ended = pb.ExecutionCompletedEvent(workflowStatus=action.workflowStatus, **outcome)
        instance.history.append(events.event(executionCompleted=ended))
        if instance.parent is None:
            return
        parent, task = instance.parent
        if action.workflowStatus == pb.ORCHESTRATION_STATUS_COMPLETED:
            done = pb.ChildWorkflowInstanceCompletedEvent(taskScheduledId=task, result=result)
            self.tell(parent, childWorkflowInstanceCompleted=done)
        else:
            failed = pb.ChildWorkflowInstanceFailedEvent(taskScheduledId=task, failureDetails=failure)
            self.tell(parent, childWorkflowInstanceFailed=failed)
