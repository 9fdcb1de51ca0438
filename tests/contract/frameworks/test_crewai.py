"""CrewAI, with a model that calls tools and with one that writes what it wants to do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from tests.contract import script
from tests.contract.cases import KEY, Case, Cut, Record, looked_up
from tests.contract.delivery import LARGE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from agent_otel.testing.servers.openai import OpenAIServer
    from agent_otel.testing.servers.scripted import ScriptedServer

# g r ö ß e : and a blank are 9 bytes, 93 times ß 186.
SHORTENED = Record("lookup", "call_27", LOOKUP_BYTES, handed_back=195, cut=("framework", "shrunk"))


class TestCrewAI(Delivery):
    """Native tool calls."""

    agent = "crewai"
    environment = "crewai"
    integrations: ClassVar = {
        "crewai": [
            "crewai.agent.core:Agent.kickoff",
            "crewai.crew:Crew.kickoff",
            "crewai.agents.agent_executor:AgentExecutor._execute_single_native_tool_call",
            "crewai.agents.step_executor:execute_single_native_tool_call",
            "crewai.tools.structured_tool:CrewStructuredTool.invoke",
            "crewai.tools.tool_usage:ToolUsage.use",
            "crewai.tools.base_tool:Tool.run",
        ],
    }
    agent_name = "clerk"
    has_runs = True
    waiting: ClassVar = {"a step of a plan": -1}  # it is run without its crew
    origin = None
    variables: ClassVar = {
        "CREWAI_DISABLE_TELEMETRY": "true",
        "CREWAI_DISABLE_TRACKING": "true",
        "CREWAI_DISABLE_VERSION_CHECK": "true",
        "CREWAI_TRACING_ENABLED": "false",
    }
    own: ClassVar = {
        "nested": looked_up("nested", "call_20"),
        # The model gets what str() makes of it: {'rows': [{'id': 0}, {'id': 1}]}.
        "structured": Case(
            ("table",), (("call_21", "table", {"rows": 2}),), (Record("table", "call_21", 28, handed_back=32, args=10),)
        ),
        "a step of a plan": Case(
            ("big",),
            (("call_22", "big", {"n": 4321}),),
            (Record("big", "call_22", 4321, args=10),),
            "sync",
            "step",
            said="stepped",
            unsent=("call_22",),
        ),
        "too large for the request": LARGE,
        "shortened by a hook": Case(("lookup",), (("call_27", "lookup", KEY),), (SHORTENED,), setting="shorten"),
    }
    cuts: ClassVar = {"too large for the request": (Cut("big", "model_request", "offloaded", 2542),)}

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """Return the cases but the one of a cancelled call: tools run in threads, which are not cancelled."""
        return {name: case for name, case in super().cases().items() if name != "cancelled"}


class TestCrewAIInText(TestCrewAI):
    """A model that writes what it wants to do, and reads of it in its own messages."""

    decide = staticmethod(script.decide_in_text)
    knows_ids = False
    own: ClassVar = {
        **TestCrewAI.own,
        "shortened by a hook": replace(
            TestCrewAI.own["shortened by a hook"], records=(replace(SHORTENED, handed_back=None, cut=None),)
        ),
    }
    # A large result is not put into a file on this way.
    cuts: ClassVar = {"shortened by a hook": (Cut("lookup", "model_request", "shrunk", 195),)}

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """Return the cases with such a model, and without what only the other way has."""
        return {
            name: replace(case, setting=f"text {case.setting}".strip())
            for name, case in super().cases().items()
            if case.setting != "step"
        }

    @classmethod
    def results(cls, server: OpenAIServer | ScriptedServer) -> dict[str, str]:
        """Return the observations."""
        return {call: text for request in server.requests for call, text in script.observations(request).items()}


del Delivery
