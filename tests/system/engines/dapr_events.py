"""Events of a Dapr workflow's history, made from one another.

Only fields that the SDKs of 1.18 and 1.19 both know.
"""

# mypy: disable-error-code="import-not-found,import-untyped,misc,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

from typing import Any

from dapr.ext.workflow._durabletask.internal import protos as pb
from google.protobuf import timestamp_pb2


def given(message: Any, name: str) -> Any:
    """Return a field that is a message, None when it is not set."""
    return getattr(message, name) if message.HasField(name) else None


def event(event_id: int = -1, **kind: Any) -> Any:
    """Return an event that happens now."""
    now = timestamp_pb2.Timestamp()
    now.GetCurrentTime()
    return pb.HistoryEvent(eventId=event_id, timestamp=now, **kind)


def started(state: Any, parent: tuple[Any, int] | None) -> Any:
    """Return the start of an instance, which a task of a parent may have called."""
    caller = None
    if parent is not None:
        instance, task = parent
        named = pb.WorkflowInstance(instanceId=instance.state.instanceId)
        caller = pb.ParentInstanceInfo(taskScheduledId=task, workflowInstance=named)
    return pb.ExecutionStartedEvent(
        name=state.name,
        input=given(state, "input"),
        workflowInstance=pb.WorkflowInstance(instanceId=state.instanceId),
        parentInstance=caller,
    )


def request(instance_id: str, scheduled: Any) -> Any:
    """Return what a worker is asked, for an activity that was scheduled."""
    task = scheduled.taskScheduled
    return pb.ActivityRequest(
        name=task.name,
        input=given(task, "input"),
        workflowInstance=pb.WorkflowInstance(instanceId=instance_id),
        taskId=scheduled.eventId,
        taskExecutionId=task.taskExecutionId,
    )


def begun(action: Any) -> Any:
    """Return the event for what a workflow's turn begins, None for its end."""
    kind = action.WhichOneof("workflowActionType")
    if kind == "scheduleTask":
        task = action.scheduleTask
        same = {"name": task.name, "input": given(task, "input"), "taskExecutionId": task.taskExecutionId}
        return event(action.id, taskScheduled=pb.TaskScheduledEvent(**same))
    if kind == "createTimer":
        timer = action.createTimer
        origin = timer.WhichOneof("origin")
        same = {"fireAt": timer.fireAt, **({origin: getattr(timer, origin)} if origin else {})}
        return event(action.id, timerCreated=pb.TimerCreatedEvent(**same))
    if kind == "createChildWorkflow":
        child = action.createChildWorkflow
        same = {"name": child.name, "input": given(child, "input"), "instanceId": child.instanceId}
        return event(action.id, childWorkflowInstanceCreated=pb.ChildWorkflowInstanceCreatedEvent(**same))
    if kind == "completeWorkflow":
        return None
    raise NotImplementedError(kind)
