"""AG2."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract.cases import DELEGATED, DELEGATED_BYTES, KEY, WIRE, Case, Record, looked_up
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.script import decide_one
from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

# The call of the agent behind the tool.
ASSISTANT = Record("lookup", "call_30", LOOKUP_BYTES, agent="assistant")
# {"objective":"…"} is four bytes longer than {"input":"…"}.
OBJECTIVE_BYTES = DELEGATED_BYTES + 4


class TestAg2(Delivery):
    """AG2 1.2."""

    agent = "ag2"
    environment = "ag2"
    integrations: ClassVar = {
        "ag2": [
            "ag2.tools.final.function_tool:FunctionTool.__call__",
            "ag2.tools.executor:_execute_call",
            "ag2.agent:Agent._turn_scope",
        ],
    }
    agent_name = "clerk"
    has_runs = True
    run_span = "invoke_agent clerk"
    modes: ClassVar = ("async", "stream")
    origin = None
    own: ClassVar = {
        "two megabytes": WHOLE,
        # {"rows":[{"id":0},{"id":1}]} are 28 bytes.
        "structured": Case(
            ("table",), (("call_21", "table", {"rows": 2}),), (Record("table", "call_21", 28, args=10),)
        ),
        "a result of its own": looked_up("result", "call_26"),
        # The arguments are {"kee":"größe"}.
        "with arguments that do not fit": Case(
            ("lookup",),
            (("call_25", "lookup", {"kee": "größe"}),),
            (Record("lookup", "call_25", handed_back=WIRE, error="pydantic_core._pydantic_core.ValidationError"),),
        ),
        "agent as a tool": Case(
            ("delegate",),
            (("call_29", "delegate", {"objective": DELEGATED}),),
            (Record("delegate", "call_29", 4, args=OBJECTIVE_BYTES), ASSISTANT),
        ),
        # 100 letters: g r ö ß e : and a blank are 9 bytes, 93 times ß 186.
        "shortened by a hook": Case(
            ("lookup",),
            (("call_27", "lookup", KEY),),
            (Record("lookup", "call_27", LOOKUP_BYTES, handed_back=195, cut=("framework", "shrunk")),),
            setting="shorten",
        ),
    }


del Delivery

_BEHIND = """
import asyncio, json, sys
from tests.contract.child import Telemetry
telemetry = Telemetry()
from ag2.context import ConversationContext
from ag2.events import ToolCallEvent
from ag2.stream import MemoryStream
from tests.contract import script
from tests.contract.agents import ag2
from tests.contract.toolbox import lookup

async def main():
    prompt = script.prompt(("call_1", "lookup", {"key": "a"}))
    clerk = ag2.make(sys.argv[1], [lookup], "")
    await clerk.ask(prompt)
    (tool,) = clerk.tools
    await tool(ToolCallEvent(id="call_2", name="lookup", arguments='{"key": "a"}'), ConversationContext(MemoryStream()))
    # The assistant behind the first tool has run when the clerk asks for the second.
    objective = {"objective": prompt.replace("call_1", "call_4")}
    prompt = script.prompt(("call_3", "delegate", objective), ("call_5", "lookup", {"key": "a"}))
    await ag2.make(sys.argv[1], ["delegate", lookup], "").ask(prompt)

asyncio.run(main())
spans = [span["attributes"] for span in telemetry.spans() if "tool.args_hash" in span["attributes"]]
names = [span.get("agent_otel.sub_agent", span.get("gen_ai.agent.name")) for span in spans]
print(json.dumps({span["gen_ai.tool.call.id"]: name for span, name in zip(spans, names, strict=True)}))
"""


def test_a_call_behind_a_run_is_not_the_agents(environment: Callable[[str], Environment]) -> None:
    with OpenAIServer(decide_one) as server:
        done = environment("ag2").run(_BEHIND, server.base_url, env={"AGENT_OTEL": "1"}, check=True)
    clerks = {"call_1": "clerk", "call_3": "clerk", "call_5": "clerk"}
    assert json.loads(done.stdout) == {**clerks, "call_2": None, "call_4": "assistant"}
