"""Microsoft's durabletask: steps where the worker runs an activity, workflows where it runs an orchestrator."""

from __future__ import annotations

from typing import Any

from agent_otel.core import handler, payload_cap
from agent_otel.core.plain import modules_of
from agent_otel.core.types import Invocation, Step, StepReader
from agent_otel.integrations.hooks import Flag, Hook, Within, after
from agent_otel.integrations.registry.entries import Candidate, Integration
from agent_otel.integrations.runtimes.taskhub import TaskHub

ENTRY = Integration(
    "durabletask",
    distribution="durabletask",
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

_RUNTIME = "durabletask"
# Azure's hub, which Microsoft's worker for it is made for: its caps are a quarter of those of a hub of one's own.
_SCHEDULER, _SCHEDULERS_WORKER = "azure-durable-task-scheduler", "durabletask.azuremanaged."
_PAYLOADS = ("activity_input", "activity_output", "workflow_input", "workflow_output")

#: The run that the hub names in its request for an activity: its instance has the same id in its next run.
_run: Within[str] = Within("agent_otel_durabletask_run")
_hub = TaskHub(_RUNTIME, ("completeOrchestration", "orchestrationStatus"), "createSubOrchestration")


@after
def worker(invocation: Invocation, result: Any, error: Any) -> None:
    """Read a worker's limits: for received messages, of its hub, and of its payload store, if it has one."""
    worker = invocation.instance
    if error is not None:
        return
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


def _requested(invocation: Invocation) -> str:
    return str(invocation.arg(0, "req").orchestrationInstance.executionId.value)


def _step(invocation: Invocation) -> Step:
    return _hub.step(invocation, _run.get())


requested = Hook(_requested, within=_run)
activity = StepReader(_step, _hub.input, _hub.output)
orchestrator = Hook(lambda _: True, _hub.turn, Flag(handler.muted))
stub = Hook(after=_hub.stub_made)
