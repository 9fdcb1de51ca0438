"""A stand-in for daprd's workflow engine, in the process of the program that uses it: a real gRPC server on loopback.

Built on the service that the SDK itself ships (dapr 1.19, dapr-ext-workflow 1.18), it drives the SDK's own worker and
client, which find it unasked. Sizes and caps are daprd's: what a worker sends is received up to ``max_body_size``;
what it would be sent stalls the workflow above 95 % of that; an activity's input goes through the scheduler, whose
etcd client takes ``scheduler_limit``, and when it does not, the whole turn of the workflow is run again each second.
"""

# ruff: noqa: ARG002, N802 - methods of the generated service
# mypy: disable-error-code="import-not-found,import-untyped,misc,unused-ignore"
# The SDK is not installed where types are checked.

from __future__ import annotations

import contextlib
import uuid
from concurrent import futures
from typing import TYPE_CHECKING, Any

import grpc
from dapr.conf import settings
from dapr.ext.workflow._durabletask.internal import orchestrator_service_pb2_grpc as stubs
from dapr.ext.workflow._durabletask.internal import protos as pb
from google.protobuf import empty_pb2

from tests.system.engines.dapr_engine import UNENDED, Engine, Limits
from tests.system.engines.dapr_events import given

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def sidecar(
    *,
    max_body_size: int = 4 * 1024 * 1024,
    scheduler_limit: int = 2 * 1024 * 1024,
    scheduler_retries: int | None = None,
    scheduler_interval: float = 1,
) -> Iterator[Engine]:
    """Run one on a free port, which becomes the SDK's default.

    Sizes are bytes, the interval seconds. ``scheduler_retries`` says how often a refused turn is run again; for ever
    when it is None, as daprd does. What an engine remembers: ``instances``, with their histories, and ``refusals``.
    """
    engine = Engine(Limits(max_body_size, scheduler_limit, scheduler_retries, scheduler_interval))
    service = _Service(engine)
    options = [("grpc.max_receive_message_length", max_body_size), ("grpc.max_send_message_length", -1)]
    server = grpc.server(futures.ThreadPoolExecutor(64, "sidecar"), options=options)
    stubs.add_TaskHubSidecarServiceServicer_to_server(service, server)
    before = settings.DAPR_RUNTIME_HOST, settings.DAPR_GRPC_PORT
    settings.DAPR_RUNTIME_HOST, settings.DAPR_GRPC_PORT = "127.0.0.1", server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield engine
    finally:
        service.close()
        server.stop(grace=1).wait()
        settings.DAPR_RUNTIME_HOST, settings.DAPR_GRPC_PORT = before


class _Service(stubs.TaskHubSidecarServiceServicer):
    """The calls of the SDK's client and worker, each on a thread of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._changed = engine.changed
        self._closed = False

    def close(self) -> None:
        """Let everybody go who waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def Hello(self, request: Any, context: Any) -> Any:
        """Say that somebody is here."""
        return empty_pb2.Empty()

    def StartInstance(self, request: Any, context: Any) -> Any:
        """Start a workflow; as daprd, answer when its first turn is over."""
        name = request.instanceId or uuid.uuid4().hex
        with self._changed:
            known = self._engine.instances.get(name)
            if known is not None and known.state.workflowStatus in UNENDED:
                context.abort(grpc.StatusCode.ALREADY_EXISTS, f"an active workflow with ID '{name}' already exists")
            self._engine.create(name, request)
            self._wait(name, context, (pb.ORCHESTRATION_STATUS_PENDING,))
        return pb.CreateInstanceResponse(instanceId=name)

    def GetInstance(self, request: Any, context: Any) -> Any:
        """Tell what is known of a workflow."""
        with self._changed:
            known = self._engine.instances.get(request.instanceId)
            response = pb.GetInstanceResponse(exists=known is not None, workflowState=known and known.state)
        if not request.getInputsAndOutputs:
            for payload in ("input", "output", "customStatus"):
                response.workflowState.ClearField(payload)
        return response

    def WaitForInstanceStart(self, request: Any, context: Any) -> Any:
        """Wait for the end of the first turn."""
        self._wait(request.instanceId, context, (pb.ORCHESTRATION_STATUS_PENDING,))
        return self.GetInstance(request, context)

    def WaitForInstanceCompletion(self, request: Any, context: Any) -> Any:
        """Wait for the end; a stalled workflow has none."""
        self._wait(request.instanceId, context, (*UNENDED, pb.ORCHESTRATION_STATUS_STALLED))
        return self.GetInstance(request, context)

    def _wait(self, name: str, context: Any, statuses: tuple[Any, ...]) -> None:
        with self._changed:
            while context.is_active() and not self._closed:
                known = self._engine.instances.get(name)
                if known is None or known.state.workflowStatus not in statuses:
                    return
                self._changed.wait(1)

    def RaiseEvent(self, request: Any, context: Any) -> Any:
        """Give a workflow an event."""
        event = pb.EventRaisedEvent(name=request.name, input=given(request, "input"))
        with self._changed:
            self._engine.tell(self._engine.instances.get(request.instanceId), eventRaised=event)
        return pb.RaiseEventResponse()

    def TerminateInstance(self, request: Any, context: Any) -> Any:
        """End a workflow in its next turn."""
        event = pb.ExecutionTerminatedEvent(input=given(request, "output"))
        with self._changed:
            self._engine.tell(self._engine.instances.get(request.instanceId), executionTerminated=event)
        return pb.TerminateResponse()

    def GetWorkItems(self, request: Any, context: Any) -> Iterator[Any]:
        """Hand out work until the worker goes; what it has not done by then is for the next one."""
        worker = object()

        def lost() -> None:
            with self._changed:
                self._engine.lose(worker)
                self._changed.notify_all()

        context.add_callback(lost)
        while True:
            with self._changed:
                while context.is_active() and not self._closed and not self._engine.has_work:
                    self._changed.wait()
                if self._closed or not context.is_active():
                    return
                item = self._engine.take(worker)
            yield item

    def CompleteActivityTask(self, request: Any, context: Any) -> Any:
        """Take an activity's outcome."""
        with self._changed:
            self._engine.end_activity(request)
        return pb.CompleteTaskResponse()

    def CompleteOrchestratorTask(self, request: Any, context: Any) -> Any:
        """Take the outcome of a workflow's turn."""
        with self._changed:
            self._engine.end_turn(request)
        return pb.CompleteTaskResponse()
