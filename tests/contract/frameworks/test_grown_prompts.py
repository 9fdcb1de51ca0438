"""Agents that write all their turns into one prompt, behind a short question: no history is lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent_otel.testing.servers.openai import OpenAIServer, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_END = """
sums = {
    metric["name"]: metric["sum"] for metric in telemetry.metrics()
    if metric["name"] in ("agent_otel.model.history.lost", "agent_otel.execution.tool_calls")
}
print(json.dumps(sums))
"""
_DSPY = """
import json, sys
from tests.contract.child import Telemetry
telemetry = Telemetry()
import dspy
from tests.contract.toolbox import broken, lookup
model = dspy.LM("openai/scripted", api_base=sys.argv[1], api_key="scripted", cache=False)
with dspy.context(lm=model):
    dspy.ReAct("question -> answer", tools=[broken, lookup])(question="2 + 2?")
"""
_SMOLAGENTS = """
import json, sys
from tests.contract.child import Telemetry
telemetry = Telemetry()
from smolagents import OpenAIModel, Tool, ToolCallingAgent

class Broken(Tool):
    name = "broken"
    description = "Look a record up that is not there."
    inputs = {"key": {"type": "string", "description": "The record."}}
    output_type = "string"

    def forward(self, key: str) -> str:
        raise ValueError(key)

model = OpenAIModel("scripted", api_base=sys.argv[1], api_key="scripted")
ToolCallingAgent([Broken()], model, verbosity_level=0).run("Find it.")
"""


def _step(tool: str, arguments: dict[str, str]) -> str:
    fields = {"next_thought": "so", "next_tool_name": tool, "next_tool_args": json.dumps(arguments), "completed": ""}
    return "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items())


def test_dspy_writes_its_trajectory_behind_the_question(environment: Callable[[str], Environment]) -> None:
    answer = "[[ ## reasoning ## ]]\nso\n\n[[ ## answer ## ]]\n4\n\n[[ ## completed ## ]]"
    key = {"key": "a"}
    left = iter([_step("broken", key), _step("lookup", key), _step("finish", {}), answer])
    with OpenAIServer(lambda _: next(left)) as server:
        done = environment("dspy").run(
            _DSPY + _END,
            server.base_url,
            env={"AGENT_OTEL": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            check=True,
        )
    assert len(server.requests) == 4
    assert json.loads(done.stdout.splitlines()[-1]) == {"agent_otel.execution.tool_calls": 2}


def test_smolagents_writes_errors_behind_the_task(environment: Callable[[str], Environment]) -> None:
    """A step that has failed has no message of the model."""
    calls = [[ToolCall("1", "broken", '{"key":"a"}')]] * 2
    left = iter([*calls, [ToolCall("2", "final_answer", '{"answer":"none"}')]])
    with OpenAIServer(lambda _: next(left)) as server:
        done = environment("smolagents").run(_SMOLAGENTS + _END, server.base_url, env={"AGENT_OTEL": "1"}, check=True)
    assert [[m["role"] for m in request["messages"]] for request in server.requests] == [["system", "user"]] * 3
    assert json.loads(done.stdout.splitlines()[-1]) == {"agent_otel.execution.tool_calls": 2}
