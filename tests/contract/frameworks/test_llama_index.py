"""LlamaIndex: agents, a workflow of agents, and a workflow of the program."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

from tests.contract.cases import BROKEN, DELEGATED, DELEGATED_BYTES, KEY, KEY_BYTES, WIRE, Case, Record, looked_up
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.toolbox import LOOKUP, LOOKUP_BYTES
from tests.environments import python_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

# The call of the agent behind the tool.
ASSISTANT = Record("lookup", "call_30", LOOKUP_BYTES, agent="assistant")


class TestLlamaIndex(Delivery):
    """LlamaIndex 0.14.25."""

    tells_failures = True
    agent = "llama_index"
    environment = "llama-index"
    integrations: ClassVar = {
        "llama-index": [
            "llama_index.core.agent.workflow.base_agent:BaseWorkflowAgent._call_tool",
            "llama_index.core.agent.workflow.multi_agent_workflow:AgentWorkflow._call_tool",
            "llama_index.core.tools.calling:call_tool_with_selection",
            "llama_index.core.tools.function_tool:FunctionTool.call",
            "llama_index.core.workflow.workflow:Workflow.run",
        ],
    }
    agent_name = "clerk"
    has_runs = True
    run_span = "invoke_agent clerk"
    modes: ClassVar = ("async", "stream")
    origin = None
    loads: ClassVar = ("wrapt",)
    own: ClassVar = {
        "two megabytes": WHOLE,
        # {"rows":[{"id":0},{"id":1}]}, of which the model gets what str() makes of it: 4 blanks more
        "structured": Case(
            ("table",), (("call_21", "table", {"rows": 2}),), (Record("table", "call_21", 32, args=10),)
        ),
        "nested": looked_up("nested", "call_22"),
        "with arguments that do not fit": Case(
            ("lookup",),
            (("call_25", "lookup", {"kee": "größe"}),),
            (Record("lookup", "call_25", handed_back=WIRE, error="TypeError"),),
        ),
        # 100 letters: g r ö ß e : and a blank are 9 bytes, 93 times ß 186.
        "shortened by a callback": Case(
            ("shortened",),
            (("call_27", "shortened", KEY),),
            (Record("shortened", "call_27", LOOKUP_BYTES, handed_back=195, cut=("framework", "shrunk")),),
        ),
        "agent as a tool": Case(
            ("delegate",),
            (("call_29", "delegate", {"input": DELEGATED}),),
            (Record("delegate", "call_29", 4, args=DELEGATED_BYTES), ASSISTANT),
        ),
        # A workflow of agents, which passes the agent's name to no tool.
        "several agents": Case(
            ("lookup",),
            (("call_33", "lookup", KEY),),
            (Record("lookup", "call_33", LOOKUP_BYTES),),
            setting="several",
        ),
        "raises among several agents": Case(
            ("broken",),
            (("call_34", "broken", KEY),),
            (Record("broken", "call_34", handed_back=WIRE, error=BROKEN),),
            "stream",
            setting="several",
        ),
        # Tools that the program passes to the model without an agent; the second writes of the error itself.
        "a model's tool": Case(
            ("ask",),
            (("call_35", "ask", {"input": "größe"}),),
            (Record("ask", "call_35", LOOKUP_BYTES, args=KEY_BYTES + 2, agent=""),),
            setting="no agent",
            said=LOOKUP,
            unsent=("call_35",),
        ),
        "a model's tool that raises": Case(
            ("broken",),
            (("call_36", "broken", KEY),),
            (Record("broken", "call_36", handed_back=36, error=BROKEN, agent=""),),
            setting="no agent",
            said="Encountered error: no record größe",
            unsent=("call_36",),
        ),
    }
    waiting: ClassVar = dict.fromkeys(("a model's tool", "a model's tool that raises"), -1)
    run_spans: ClassVar = dict.fromkeys(waiting, "")

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """Return the cases; from Python 3.12 on, a workflow's tool goes on behind a run that is cancelled."""
        left_out = {"cancelled"} if python_of(cls.environment) >= (3, 12) else set()
        return {name: case for name, case in super().cases().items() if name not in left_out}


_WORKFLOW = """
import asyncio, json
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from tests.contract.child import Telemetry
from tests.contract.toolbox import lookup

telemetry = Telemetry()

class Desk(Workflow):
    @step
    async def look(self, event: StartEvent) -> StopEvent:
        tool = FunctionTool.from_defaults(lookup)
        return StopEvent([tool(event.key).content, (await tool.acall(key=event.key)).content])

async def main():
    return await Desk().run(key="größe")

results = asyncio.run(main())
spans = [[s["name"], s["parent"], s["attributes"].get("tool.result.bytes")] for s in telemetry.spans()]
print(json.dumps([[len(result.encode()) for result in results], spans]))
"""


def test_a_workflow_of_the_program_is_a_run_with_the_calls_of_its_tools(
    environment: Callable[[str], Environment],
) -> None:
    done = environment("llama-index").run(_WORKFLOW, env={"AGENT_OTEL": "1"}, check=True)
    call = ["execute_tool lookup", "invoke_workflow Desk", LOOKUP_BYTES]
    assert json.loads(done.stdout) == [[LOOKUP_BYTES] * 2, [call, call, ["invoke_workflow Desk", None, None]]]


del Delivery
