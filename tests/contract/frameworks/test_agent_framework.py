"""Microsoft Agent Framework, whose own spans of tools are enriched."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

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
from tests.contract.toolbox import LOOKUP_BYTES

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
