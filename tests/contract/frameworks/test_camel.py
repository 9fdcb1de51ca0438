"""CAMEL."""

from __future__ import annotations

from typing import ClassVar

from tests.contract.cases import DELEGATED, DELEGATED_BYTES, KEY, WIRE, Case, Record
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES

# The call of the agent behind the tool.
ASSISTANT = Record("lookup", "call_30", LOOKUP_BYTES, agent="assistant")


class TestCamel(Delivery):
    """CAMEL 0.2.90."""

    agent = "camel"
    environment = "camel-ai"
    integrations: ClassVar = {
        "camel": [
            "camel.toolkits.function_tool:FunctionTool.__call__",
            "camel.toolkits.function_tool:_SYNC_TOOL_EXECUTOR.submit",
            "camel.agents.chat_agent:ChatAgent._execute_tool",
        ],
    }
    agent_name = "clerk"
    has_runs = True
    run_span = "invoke_agent clerk"
    origin = None
    #: The model's texts of objects are Python's.
    reformatted: ClassVar = ("structured",)
    own: ClassVar = {
        "two megabytes": WHOLE,
        # {"rows":[{"id":0},{"id":1}]} are 28 bytes.
        "structured": Case(
            ("table",), (("call_21", "table", {"rows": 2}),), (Record("table", "call_21", 28, args=10),)
        ),
        # The arguments are {"kee":"größe"}.
        "with arguments that do not fit": Case(
            ("lookup",),
            (("call_25", "lookup", {"kee": "größe"}),),
            (Record("lookup", "call_25", handed_back=WIRE, error="TypeError"),),
        ),
        "agent as a tool": Case(
            ("delegate",),
            (("call_29", "delegate", {"input": DELEGATED}),),
            (Record("delegate", "call_29", 4, args=DELEGATED_BYTES), ASSISTANT),
        ),
        "raises in a stream": Case(
            ("broken_later",),
            (("call_22", "broken_later", KEY),),
            (Record("broken_later", "call_22", handed_back=WIRE, error="tests.contract.toolbox.BrokenError"),),
            mode="stream",
        ),
        "over the limit": Case(
            ("big",),
            (("call_26", "big", {"n": 4321}),),
            (Record("big", "call_26", 4321, WIRE, cut=("framework", "marker"), args=10),),
            setting="limit",
        ),
        # The model gets [MASKED].
        "masked": Case(
            ("lookup",),
            (("call_27", "lookup", KEY),),
            (Record("lookup", "call_27", LOOKUP_BYTES, handed_back=8, cut=("framework", "shrunk")),),
            setting="mask",
        ),
    }


del Delivery
