"""Agno, newest and oldest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract import script
from tests.contract.cases import DELEGATED, DELEGATED_BYTES, KEY, Case, Record, looked_up
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

# The call of the agent behind the tool.
ASSISTANT = Record("lookup", "call_30", LOOKUP_BYTES, agent="assistant")


class TestAgno(Delivery):
    """Agno 3.1."""

    agent = "agno"
    environment = "agno"
    integrations: ClassVar = {
        "agno": [
            "agno.tools.function:FunctionCall._execute",
            "agno.models.base:Model.create_function_call_result",
            "agno.agent._run:run_dispatch",
            "agno.team._run:run_dispatch",
            "agno.utils.message:reformat_tool_call_ids",
        ],
    }
    agent_name = "clerk"
    has_runs = True
    run_span = "invoke_agent clerk"
    attributes: ClassVar = {"gen_ai.conversation.id": "thread-1"}
    origin = None
    outer = False
    reads_failures = True
    reformatted: ClassVar = ("structured",)
    own: ClassVar = {
        "two megabytes": WHOLE,
        # {"rows":[{"id":0},{"id":1}]}, of which the model gets what str() makes of it
        "structured": Case(
            ("table",), (("call_21", "table", {"rows": 2}),), (Record("table", "call_21", 28, args=10),)
        ),
        "in pieces": looked_up("in_pieces", "call_22"),
        "in pieces, sync": looked_up("in_pieces", "call_23", "sync"),
        "in pieces, later": looked_up("in_pieces_later", "call_24"),
        # What a generator has said before it raises is all that is read of it.
        "raises in a piece": Case(
            ("broken_in_pieces",),
            (("call_25", "broken_in_pieces", KEY),),
            (Record("broken_in_pieces", "call_25", error="tool_error"),),
            "sync",
        ),
        "a result of its own": looked_up("result", "call_26"),
        "between hooks that fail": looked_up("hooked", "call_28"),
        "stops the run": Case(
            ("stop",), (("call_31", "stop", KEY),), (Record("stop", "call_31"),), said="", unsent=("call_31",)
        ),
        "agent as a tool": Case(
            ("delegate",),
            (("call_29", "delegate", {"input": DELEGATED}),),
            (Record("delegate", "call_29", 4, args=DELEGATED_BYTES), ASSISTANT),
        ),
        # 100 letters: g r ö ß e : and a blank are 9 bytes, 93 times ß 186.
        "shortened by a hook": Case(
            ("lookup",), (("call_27", "lookup", KEY),), (Record("lookup", "call_27", 195),), "sync", "shorten"
        ),
    }


class TestAgnoOldest(TestAgno):
    """Agno 2.3, which swallows the cancellation of a tool."""

    environment = "agno-oldest"
    integrations: ClassVar = {
        "agno": [
            "agno.tools.function:FunctionCall.execute",
            "agno.models.base:Model.create_function_call_result",
            "agno.agent.agent:Agent.run",
            "agno.team.team:Team.run",
        ],
    }
    own: ClassVar = {
        **TestAgno.own,
        "cancelled": Case(
            ("linger",),
            (("call_9", "linger", KEY),),
            (Record("linger", "call_9"),),
            "cancel",
            said=None,
            unsent=("call_9",),
        ),
    }


del Delivery

_CONTINUED = """
import json, sys
from tests.contract.child import Telemetry
telemetry = Telemetry()
from agno.tools import tool
from tests.contract import script, toolbox
from tests.contract.agents import agno

lookup = tool(requires_confirmation=True)(toolbox.lookup)
clerk = agno.make(sys.argv[1], [lookup], "")
paused = clerk.run(script.prompt(("call_1", "lookup", {"key": "a"})))
for call in paused.tools:
    call.confirmed = True
said = clerk.continue_run(run_response=paused).content
spans = telemetry.spans()
(called,) = (span for span in spans if "tool.args_hash" in span["attributes"])
totals = [m for m in telemetry.metrics() if m["name"] == "agent_otel.execution.tool_calls"]
roots = [span["name"] for span in spans if span["parent"] is None and span["scope"] == "agent_otel"]
print(json.dumps([said, called["parent"], roots, [[each["count"], each["sum"]] for each in totals]]))
"""


def test_a_run_that_is_continued_is_an_execution(environment: Callable[[str], Environment]) -> None:
    """The model's call waits for the program, which continues the run: both halves are one trace."""
    with OpenAIServer(script.decide) as server:
        done = environment("agno").run(_CONTINUED, server.base_url, env={"AGENT_OTEL": "1"}, check=True)
    roots = ["invoke_agent clerk"]
    assert json.loads(done.stdout.splitlines()[-1]) == ["done", "invoke_agent clerk", roots, [[1, 1]]]
