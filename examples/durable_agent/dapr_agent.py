"""The agent as a workflow of Dapr, with a worker, beside the sidecar that DAPR_GRPC_PORT names."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from dapr.ext.workflow import (
    DaprWorkflowClient,
    DaprWorkflowContext,
    WorkflowActivityContext,
    WorkflowRuntime,
    when_all,
)
from grpc import RpcError

from examples.durable_agent.agent import Agent, Json, State, begin, main, remember
from examples.durable_agent.ending import Ending, Job

if TYPE_CHECKING:
    from collections.abc import Generator


_TURNS = 10
"""Turns of one history. daprd sends a history whole, and stalls a workflow whose history is too large for a message."""


def durable_agent(ctx: DaprWorkflowContext, state: State) -> Generator[Any, Any, str | None]:
    """Go on until the model answers; runs again from its beginning at each step, with the results so far.

    After some turns the state begins a new history, which holds none of the states before it.
    """
    for _ in range(_TURNS):
        message = yield ctx.call_activity("call_model", input=state)
        if not message.get("tool_calls"):
            return str(message["content"])
        results = yield when_all([ctx.call_activity("run_tool", input=call) for call in message["tool_calls"]])
        state = remember(state, message, results)
    ctx.continue_as_new(state)
    return None


def run(agent: Agent, job: Job) -> Ending:
    """Start a worker, run the workflow once, and wait for it with patience: Dapr ends nothing by itself."""

    def call_model(_: WorkflowActivityContext, state: State) -> Json:
        return agent.ask_model(state)

    def run_tool(_: WorkflowActivityContext, call: Json) -> Json:
        return agent.run_tool(call)

    worker: Any = WorkflowRuntime()
    worker.register_workflow(durable_agent, name="DurableAgent")
    worker.register_activity(call_model, name="call_model")
    worker.register_activity(run_tool, name="run_tool")
    worker.start()
    try:
        client: Any = DaprWorkflowClient()
        instance = client.schedule_new_workflow(durable_agent, input=begin(job.question))
        try:
            ended = _ended(client, instance, job.patience)
        except TimeoutError as error:
            state = client.get_workflow_state(instance, fetch_payloads=False)
            said = f"{type(error).__name__}: {error}; the workflow is {state.runtime_status.name}"
            return Ending(seen=said, run=instance)
        return Ending(answer=ended.serialized_output, run=instance)
    finally:
        worker.shutdown()


def _ended(client: Any, instance: str, patience: float) -> Any:
    """Wait for the end, again where daprd breaks off a wait because the workflow begins a new history."""
    until = time.monotonic() + patience
    while (left := until - time.monotonic()) > 0:
        with contextlib.suppress(RpcError):
            return client.wait_for_workflow_completion(instance, timeout_in_seconds=max(1, int(left)))
        time.sleep(1)
    raise TimeoutError("daprd answers no wait")


if __name__ == "__main__":
    main(run)
