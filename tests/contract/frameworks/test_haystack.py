"""Haystack."""

from __future__ import annotations

from typing import ClassVar

from tests.contract.cases import DELEGATED, DELEGATED_BYTES, KEY, WIRE, Case, Cut, Record, looked_up
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES


class TestHaystack(Delivery):
    """Haystack 3.4.0."""

    agent = "haystack"
    environment = "haystack"
    integrations: ClassVar = {
        "haystack": [
            "haystack.tools.tool:Tool.invoke",
            "haystack.components.agents.tool_calling:_create_tool_span",
            "haystack.components.agents.agent:Agent.run",
        ],
    }
    has_runs = True
    run_span = "invoke_agent"
    origin = None
    outer = False
    reads_failures = True
    reformatted: ClassVar = ("structured",)
    own: ClassVar = {
        "two megabytes": WHOLE,
        # {"rows":[{"id":0},{"id":1}]}, which the model gets with 4 blanks more
        "structured": Case(
            ("table",), (("call_21", "table", {"rows": 2}),), (Record("table", "call_21", 28, args=10),)
        ),
        "nested": looked_up("nested", "call_22"),
        "with arguments that do not fit": Case(
            ("lookup",),
            (("call_25", "lookup", {"kee": "größe"}),),
            (Record("lookup", "call_25", handed_back=WIRE, error="TypeError"),),
        ),
        "shortened by a handler": Case(
            ("shortened",), (("call_27", "shortened", KEY),), (Record("shortened", "call_27", LOOKUP_BYTES),)
        ),
        "agent as a tool": Case(
            ("delegate",),
            (("call_29", "delegate", {"input": DELEGATED}),),
            (Record("delegate", "call_29", 4, args=DELEGATED_BYTES), Record("lookup", "call_30", LOOKUP_BYTES)),
        ),
    }
    # 100 letters: g r ö ß e : and a blank are 9 bytes, 93 times ß 186.
    cuts: ClassVar = {"shortened by a handler": (Cut("shortened", "model_request", "shrunk", 195),)}


del Delivery
