"""Dapr Workflows: its own copy of the task hub's worker, with activities that may be coroutine functions."""

from __future__ import annotations

from agent_otel.core.types import StepReader, Watch
from agent_otel.integrations.runtimes.taskhub import TaskHub

_hub = TaskHub("dapr", ("completeWorkflow", "workflowStatus"), first=1)

activity = StepReader(_hub.step, _hub.input, _hub.output)
workflow = Watch(_hub.turn)
stub = Watch(_hub.stub_made)
