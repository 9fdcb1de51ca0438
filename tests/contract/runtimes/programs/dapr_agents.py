"""An agent of Dapr Agents beside stand-ins for daprd and for the model, all in one process."""

# mypy: disable-error-code="import-not-found,import-untyped,misc,untyped-decorator,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from dapr.conf import settings
from dapr.ext.workflow import DaprWorkflowClient, WorkflowRuntime
from dapr_agents import DurableAgent, OpenAIChatClient, tool
from dapr_agents.agents.configs import AgentStateConfig
from dapr_agents.storage.daprstores.stateservice import StateStoreService

from agent_otel.testing.servers.openai import OpenAIServer, ToolCall, tool_results
from tests.contract.runtimes import steps
from tests.system.engines.dapr_sidecar import sidecar
from tests.system.engines.dapr_state import state_api

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_otel.testing.servers.openai import Json, Reply


@tool
def search(n: int) -> str:
    """Find so many letters."""
    return steps.produce(n)


@tool
async def search_later(n: int) -> str:
    """Find so many letters, later."""
    return await steps.produce_later(n)


@tool
def broken(n: int) -> str:
    """Find nothing."""
    return steps.broken(n)


def decide(request: Json) -> Reply:
    """Ask for the tools that the task names, turn by turn, then say how much came of them."""
    if "response_format" in request:  # the summary of what was said, which is made at the end
        return json.dumps({"summary": "Letters were found."})
    results = tool_results(request)
    (task,) = (said["content"] for said in request["messages"] if said["role"] == "user")
    for turn in json.loads(task)["turns"]:
        calls = [ToolCall(call, name, {"n": n}) for call, name, n in turn]
        if any(call.id not in results for call in calls):
            asked = {call["id"] for said in request["messages"] for call in said.get("tool_calls") or ()}
            return "lost" if calls[0].id in asked else calls
    return str(sum(len(text) for text in results.values()))


@contextlib.contextmanager
def running(_: dict[str, Any]) -> Iterator[Callable[[str, Any], Any]]:
    """Start the stand-ins and the agent; yield what gives it a task."""
    with sidecar(), OpenAIServer(decide) as model:
        workflows = {"host": settings.DAPR_RUNTIME_HOST, "port": str(settings.DAPR_GRPC_PORT)}
        client = DaprWorkflowClient(**workflows)
        with state_api() as stored:
            agent = DurableAgent(
                name="clerk",
                role="clerk",
                llm=OpenAIChatClient(api_key="scripted", model="scripted", base_url=model.base_url),
                tools=[search, search_later, broken],
                state=AgentStateConfig(store=StateStoreService(store_name="states", retry_attempts=1)),
                runtime=WorkflowRuntime(**workflows),
            )
            agent.start()

            def start(_: str, given: Any) -> Any:
                instance = client.schedule_new_workflow(
                    agent.agent_workflow_name, input={"task": json.dumps({"turns": given["turns"]})}
                )
                try:
                    state = client.wait_for_workflow_completion(instance, timeout_in_seconds=given.get("seconds", 200))
                except TimeoutError as error:
                    sent = model.tool_results()
                    letters = sum(len(sent.get(call, "")) for turn in given["turns"] for call, _, _ in turn)
                    raise TimeoutError(f"the model was sent {letters}") from error
                if state.failure_details is not None:
                    raise RuntimeError(state.failure_details.message)
                said = json.loads(state.serialized_output)["content"]
                entry = max(len(value) for key, value in stored.items() if key.endswith(instance.lower()))
                return {"said": said, "entry": entry}

            try:
                yield start
            finally:
                agent.stop()
                agent.runtime.shutdown()
