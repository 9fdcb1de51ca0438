"""Pydantic AI, newest and oldest."""

from __future__ import annotations

from typing import ClassVar

from tests.contract.cases import DELEGATED, DELEGATED_BYTES, KEY, KEY_BYTES, Case, Record, looked_up
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES

# The call of the agent behind the tool.
ASSISTANT = Record("lookup", "call_30", LOOKUP_BYTES, agent="assistant")
RETRY = "pydantic_ai.exceptions.ToolRetryError"


class TestPydanticAI(Delivery):
    """Pydantic AI 2.68."""

    tells_failures = True
    agent = "pydantic_ai"
    environment = "pydantic-ai"
    integrations: ClassVar = {
        "pydantic-ai": ["pydantic_ai.tool_manager:ToolManager._raw_execute", "pydantic_ai.agent:Agent.iter"],
    }
    agent_name = "clerk"
    has_runs = True
    run_span = "invoke_agent clerk"
    attributes: ClassVar = {"gen_ai.conversation.id": "thread-1"}
    #: The model's own format puts {"error":…} around what a retry asks for: 10 bytes.
    reformatted: ClassVar = ("asks the model to try again", "with arguments that do not fit")
    own: ClassVar = {
        "responses": looked_up("lookup", "call_20", setting="responses"),
        "two megabytes": WHOLE,
        # {"rows":[{"id":0},{"id":1}]} are 28 bytes.
        "structured": Case(
            ("table",), (("call_21", "table", {"rows": 2}),), (Record("table", "call_21", 28, args=10),)
        ),
        "nothing": Case(("nothing",), (("call_22", "nothing", KEY),), (Record("nothing", "call_22", 0),)),
        "with metadata": Case(
            ("with_metadata",),
            (("call_23", "with_metadata", KEY),),
            (Record("with_metadata", "call_23", LOOKUP_BYTES, structured=28),),
        ),
        # "no record größe" is 17 bytes.
        "asks the model to try again": Case(
            ("retried",), (("call_24", "retried", KEY),), (Record("retried", "call_24", handed_back=17, error=RETRY),)
        ),
        # The arguments are {"kee":"größe"}.
        "with arguments that do not fit": Case(
            ("lookup",),
            (("call_25", "lookup", {"kee": "größe"}),),
            (Record("lookup", "call_25", handed_back=181, error=RETRY, args=KEY_BYTES),),
        ),
        "waiting for approval": Case(
            ("approved",),
            (("call_26", "approved", KEY),),
            (Record("approved", "call_26"),),
            setting="approval",
            said="1 to approve",
            unsent=("call_26",),
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
            (Record("lookup", "call_27", LOOKUP_BYTES, handed_back=195, cut=("framework", "shrunk")),),
            setting="shorten",
        ),
        "answered by a hook": looked_up("lookup", "call_28", setting="answer"),
    }


class TestPydanticAIOldest(TestPydanticAI):
    """Pydantic AI 2.0."""

    environment = "pydantic-ai-oldest"


del Delivery
