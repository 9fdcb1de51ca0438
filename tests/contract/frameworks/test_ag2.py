"""AG2."""

from __future__ import annotations

from typing import ClassVar

from tests.contract.cases import DELEGATED, DELEGATED_BYTES, KEY, WIRE, Case, Record, looked_up
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES

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
