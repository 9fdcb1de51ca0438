"""Microsoft Agent Framework, whose own spans of tools are enriched."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract.cases import (
    BROKEN,
    DELEGATED,
    DELEGATED_BYTES,
    KEY,
    KEY_BYTES,
    WIRE,
    Case,
    Cut,
    Record,
    looked_up,
)
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.script import decide_one
from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

# The call of the agent behind the tool.
ASSISTANT = Record("lookup", "call_30", LOOKUP_BYTES, agent="assistant")


class TestAgentFramework(Delivery):
    """Agent Framework 1.23."""

    agent = "agent_framework"
    environment = "agent-framework"
    integrations: ClassVar = {
        "agent-framework": [
            "agent_framework._tools:FunctionTool._invoke_function",
            "agent_framework._agents:Agent.run",
            "agent_framework._workflows._workflow:Workflow.run",
        ],
    }
    agent_name = "clerk"
    has_runs = True
    scope = "agent_framework"
    scopes: ClassVar = {"with arguments that do not fit": "agent_otel", "answered by a hook": "agent_otel"}
    origin = None
    #: The model's texts have blanks in JSON, and a line end between two contents.
    reformatted: ClassVar = ("structured", "contents")
    cuts: ClassVar = {"shortened by a hook": (Cut("lookup", "framework", "shrunk", 195),)}
    own: ClassVar = {
        "responses": looked_up("lookup", "call_20", setting="responses"),
        "two megabytes": WHOLE,
        # {"rows":[{"id":0},{"id":1}]}: the model's text has blanks.
        "structured": Case(
            ("table",), (("call_21", "table", {"rows": 2}),), (Record("table", "call_21", 28, args=10),)
        ),
        "nothing": Case(("nothing",), (("call_22", "nothing", KEY),), (Record("nothing", "call_22", 0),)),
        "contents": looked_up("contents", "call_23"),
        # The arguments are {"kee":"größe"}.
        "with arguments that do not fit": Case(
            ("lookup",),
            (("call_25", "lookup", {"kee": "größe"}),),
            (Record("lookup", "call_25", handed_back=WIRE, error="tool_error", args=KEY_BYTES),),
        ),
        "waiting for approval": Case(
            ("approved",), (("call_26", "approved", KEY),), (), said="1 to approve", unsent=("call_26",)
        ),
        "agent as a tool": Case(
            ("delegate",),
            (("call_29", "delegate", {"input": DELEGATED}),),
            (Record("delegate", "call_29", 4, args=DELEGATED_BYTES), ASSISTANT),
        ),
        # 100 letters: g r ö ß e : and a blank are 9 bytes, 93 times ß 186.
        "shortened by a hook": Case(
            ("lookup",),
            (("call_27", "lookup", KEY),),
            (Record("lookup", "call_27", LOOKUP_BYTES),),
            setting="shorten",
        ),
        "answered by a hook": looked_up("lookup", "call_28", setting="answer"),
        "in a workflow": looked_up("lookup", "call_32", setting="workflow"),
    }

    def on_span(self, record: Record) -> Record:
        """Return the words of the framework about an exception, at whose end of the span nothing is handed back yet."""
        if record.error == BROKEN:
            return replace(record, error="BrokenError", handed_back=None)
        return super().on_span(record)


del Delivery

_BEHIND = """
import asyncio, json, sys
from tests.contract.child import Telemetry
telemetry = Telemetry()
from agent_framework import tool
from tests.contract import script
from tests.contract.agents import agent_framework
from tests.contract.toolbox import lookup

async def run(name, tools, prompt):
    agent = agent_framework.make(sys.argv[1], tools, "")
    stream = agent.run(prompt, stream=True) if name == "stream" else await agent.run(prompt)
    return [update async for update in stream] if name == "stream" else stream

async def main():
    for number, name in enumerate(("whole", "stream")):
        prompt = script.prompt((f"call_{number}1", "lookup", {"key": "a"}))
        await run(name, [lookup], prompt)
        await tool(lookup).invoke(arguments={"key": "a"}, tool_call_id=f"call_{number}2")
        # The assistant behind the first tool has run when the clerk asks for the second.
        within = {"input": prompt.replace(f"call_{number}1", f"call_{number}4")}
        calls = (f"call_{number}3", "delegate", within), (f"call_{number}5", "lookup", {"key": "a"})
        await run(name, ["delegate", lookup], script.prompt(*calls))

asyncio.run(main())
spans = [span["attributes"] for span in telemetry.spans() if "tool.args_hash" in span["attributes"]]
agents = [span.get("agent_otel.sub_agent", span.get("gen_ai.agent.name")) for span in spans]
print(json.dumps([[span.get("gen_ai.tool.call.id"), agent] for span, agent in zip(spans, agents, strict=True)]))
"""


def test_a_call_behind_a_run_is_not_the_agents(environment: Callable[[str], Environment]) -> None:
    with OpenAIServer(decide_one) as server:
        done = environment("agent-framework").run(_BEHIND, server.base_url, env={"AGENT_OTEL": "1"}, check=True)
    of_clerks = {f"call_{number}{call}": "clerk" for number in (0, 1) for call in (1, 3, 5)}
    of_others = {f"call_{number}{call}": name for number in (0, 1) for call, name in ((2, None), (4, "assistant"))}
    assert dict(json.loads(done.stdout)) == {**of_clerks, **of_others}
