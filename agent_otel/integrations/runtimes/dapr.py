"""Dapr Workflows: its own copy of the task hub's worker, with activities that may be coroutine functions."""

from __future__ import annotations

from agent_otel.core import handler
from agent_otel.core.types import StepReader
from agent_otel.integrations.hooks import Flag, Hook
from agent_otel.integrations.registry.entries import Candidate, Integration, Site
from agent_otel.integrations.runtimes.taskhub import TaskHub

# Up to 1.18 the worker is in a distribution of its own, dapr-ext-workflow, of the same version.
ENTRY = Integration(
    "dapr",
    distribution="dapr",
    minimum="1.18",
    tested="1.18 and 1.19, the SDK's worker against a stand-in for daprd",
    uncovered="tool calls in a workflow's own code, which replays",
    packages=("dapr.ext.workflow",),
    sites=(
        Candidate(
            "dapr.ext.workflow._durabletask.worker",
            activity="_ActivityExecutor.execute _ActivityExecutor.execute_async",
            workflow="_OrchestrationExecutor.execute",
            stub="stubs.TaskHubSidecarServiceStub.__init__",
        ),
        # Sessions of OpenAI's Agents SDK in Dapr's store of states.
        Site(
            Candidate("dapr.aio.clients.grpc.client", saving="DaprGrpcClientAsync.save_state"),
            adapter="frameworks.openai_agents",
        ),
    ),
)

_hub = TaskHub("dapr", ("completeWorkflow", "workflowStatus"), "createChildWorkflow", first=1)

activity = StepReader(_hub.step, _hub.input, _hub.output)
workflow = Hook(lambda _: True, _hub.turn, Flag(handler.muted))
stub = Hook(after=_hub.stub_made)
