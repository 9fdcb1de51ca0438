"""The agent as a workflow of Temporal, with a worker, on a server of its own: the one of Temporal's CLI."""

from __future__ import annotations

import asyncio
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from temporalio import activity, workflow
from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.api.history.v1 import History
from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from examples.durable_agent.agent import Agent, Json, State, begin, main, remember
    from examples.durable_agent.ending import Ending, Job

_STEP_TIMEOUT = timedelta(seconds=60)
_QUEUE = "agents"


class Activities:
    """The steps, whose inputs and outputs are the workflow's history."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    @activity.defn
    def call_model(self, state: State) -> Json:
        """Ask the model; the whole state is the input."""
        return self._agent.ask_model(state)

    @activity.defn
    def run_tool(self, call: Json) -> Json:
        """Run a tool."""
        return self._agent.run_tool(call)


@workflow.defn
class DurableAgent:
    """The turns."""

    @workflow.run
    async def run(self, question: str) -> str:
        """Go on until the model answers."""
        state = begin(question)
        while True:
            message = await workflow.execute_activity_method(
                Activities.call_model, state, start_to_close_timeout=_STEP_TIMEOUT
            )
            if not message.get("tool_calls"):
                return str(message["content"])
            running = (
                workflow.execute_activity_method(Activities.run_tool, call, start_to_close_timeout=_STEP_TIMEOUT)
                for call in message["tool_calls"]
            )
            state = remember(state, message, await asyncio.gather(*running))


def run(agent: Agent, job: Job) -> Ending:
    """Start a server and a worker, and run the workflow once."""
    return asyncio.run(_run(Activities(agent), job))


async def _run(activities: Activities, job: Job) -> Ending:
    beside = Path(sys.executable).with_name("temporal")
    server = str(beside) if beside.exists() else shutil.which("temporal")
    with ThreadPoolExecutor(max_workers=8) as threads:
        async with (
            await WorkflowEnvironment.start_local(dev_server_existing_path=server, dev_server_log_level="error") as env,
            Worker(
                env.client,
                task_queue=_QUEUE,
                workflows=[DurableAgent],
                activities=[activities.call_model, activities.run_tool],
                activity_executor=threads,
            ),
        ):
            # A workflow that is stuck ends with its timeout. Days are usual, so that nobody hears of it for days.
            patience = timedelta(seconds=job.patience)
            handle = await env.client.start_workflow(
                DurableAgent.run, job.question, id=uuid4().hex, task_queue=_QUEUE, execution_timeout=patience
            )
            return await _ended(handle, job)


async def _ended(handle: WorkflowHandle[DurableAgent, str], job: Job) -> Ending:
    """Wait for the end, and keep the history, which goes with the server."""
    answer, seen = None, ""
    try:
        answer = await handle.result()
    except WorkflowFailureError as error:
        seen = f"{type(error).__name__}: {error}: {error.cause}"
    history = History(events=(await handle.fetch_history()).events)
    (job.folder / "history").write_bytes(history.SerializeToString())
    described = (await handle.describe()).raw_description.workflow_execution_info
    ending = Ending(answer) if answer is not None else _what_happened(history, seen)
    return replace(ending, run=described.execution.run_id, kept_bytes=described.history_size_bytes)


def _what_happened(history: History, seen: str) -> Ending:
    """The caller is told of the timeout alone; the history has the reason."""
    for event in history.events:
        if event.HasField("workflow_task_failed_event_attributes"):
            failed = event.workflow_task_failed_event_attributes
            return Ending(seen=seen, said=failed.failure.message, cause=WorkflowTaskFailedCause.Name(failed.cause))
    return Ending(seen=seen)


if __name__ == "__main__":
    main(run)
