"""AgentScope."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tests.contract.cases import CANCELLED, DELEGATED, DELEGATED_BYTES, KEY, WIRE, Case, Record, looked_up
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES

# The call of the agent behind the tool.
ASSISTANT = Record("lookup", "call_30", LOOKUP_BYTES, agent="assistant")


class TestAgentScope(Delivery):
    """AgentScope 2.0."""

    agent = "agentscope"
    environment = "agentscope"
    integrations: ClassVar = {
        "agentscope": [
            "agentscope.tool._toolkit:Toolkit.call_tool",
            "agentscope.tool._adapters:FunctionTool.call",
            "agentscope.agent._agent:Agent._execute_tool_call",
        ],
    }
    agent_name = "clerk"
    has_runs = True
    run_span = "invoke_agent clerk"
    origin = None
    waiting: ClassVar = {"waiting for confirmation": 1}
    own: ClassVar = {
        # The framework keeps 50,000 tokens of it: four letters each, and a reminder of 111 bytes.
        "two megabytes": replace(
            WHOLE, records=(Record("big", "call_90", 2_000_000, WIRE, cut=("framework", "marker"), args=13),)
        ),
        # {"rows": [{"id": 0}, {"id": 1}]} are 32 bytes: the framework makes the text within the tool.
        "structured": Case(
            ("table",), (("call_21", "table", {"rows": 2}),), (Record("table", "call_21", 32, args=10),)
        ),
        "pieces of a generator": looked_up("pieces", "call_22"),
        # The arguments are {"kee":"größe"}.
        "with arguments that do not fit": Case(
            ("lookup",),
            (("call_25", "lookup", {"kee": "größe"}),),
            (Record("lookup", "call_25", handed_back=WIRE, error="tool_error"),),
        ),
        "agent as a tool": Case(
            ("delegate",),
            (("call_29", "delegate", {"input": DELEGATED}),),
            (Record("delegate", "call_29", 4, args=DELEGATED_BYTES), ASSISTANT),
        ),
        # 100 letters: g r ö ß e : and a blank are 9 bytes, 93 times ß 186.
        "shortened by middleware": Case(
            ("lookup",),
            (("call_27", "lookup", KEY),),
            (Record("lookup", "call_27", LOOKUP_BYTES, handed_back=195, cut=("framework", "shrunk")),),
            setting="shorten",
        ),
        "waiting for confirmation": Case(
            ("lookup",),
            (("call_26", "lookup", KEY),),
            (),
            said="I'm waiting for your permission or the external execution to finish.",
            unsent=("call_26",),
            setting="ask",
        ),
        # The agent ends its turn itself, with 82 bytes about the interruption: 17 and 18 of tags around 47.
        "cancelled": Case(
            ("linger",),
            (("call_9", "linger", KEY),),
            (Record("linger", "call_9", handed_back=82, error=CANCELLED),),
            mode="cancel",
            said="I notice the interruption. How can I help you?",
            unsent=("call_9",),
        ),
    }


del Delivery
