"""CrewAI, with a model that calls tools and with one that writes what it wants to do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract import script
from tests.contract.cases import BROKEN, KEY, Case, Cut, Record, looked_up
from tests.contract.delivery import LARGE, Delivery
from tests.contract.suite import QUIET
from tests.contract.toolbox import LOOKUP, LOOKUP_BYTES
from tests.forks import agents

if TYPE_CHECKING:
    from agent_otel.testing.servers.scripted import ScriptedServer
    from tests.forks import Forks

# g r ö ß e : and a blank are 9 bytes, 93 times ß 186.
SHORTENED = Record("lookup", "call_27", LOOKUP_BYTES, handed_back=195, cut=("framework", "shrunk"))


def _function(tool: str, call_id: str, produced: int | None = None, error: str | None = None, **more: Any) -> Case:
    """Return a case of a function that the program passes to the model, which hands on what it returns."""
    records = (Record(tool, call_id, produced, error=error, agent=""),)
    return Case((tool,), ((call_id, tool, KEY),), records, "sync", "function", unsent=(call_id,), **more)


class TestCrewAI(Delivery):
    """Native tool calls."""

    agent = "crewai"
    environment = "crewai"
    integrations: ClassVar = {
        "crewai": [
            "crewai.agent.core:Agent.kickoff",
            "crewai.crew:Crew.kickoff",
            "crewai.flow.runtime:Flow.kickoff",
            "crewai.agents.agent_executor:AgentExecutor._execute_single_native_tool_call",
            "crewai.agents.step_executor:execute_single_native_tool_call",
            "crewai.tools.structured_tool:CrewStructuredTool.invoke",
            "crewai.tools.tool_usage:ToolUsage.use",
            "crewai.tools.base_tool:Tool.run",
            "crewai.llms.base_llm:BaseLLM._handle_tool_execution",
        ],
    }
    agent_name = "clerk"
    has_runs = True
    # Of no crew: a step is run without its own, and the program itself asks the model.
    waiting: ClassVar = dict.fromkeys(("a step of a plan", "a model's function", "a model's function that raises"), -1)
    unnamed: ClassVar = ("a model's function", "a model's function that raises")
    origin = None
    variables: ClassVar = {
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
        "a model's function": _function("lookup", "call_23", LOOKUP_BYTES, said=LOOKUP),
        "a model's function that raises": _function("broken", "call_24", error=BROKEN, said=""),
        "too large for the request": LARGE,
        "shortened by a hook": Case(("lookup",), (("call_27", "lookup", KEY),), (SHORTENED,), setting="shorten"),
    }
    cuts: ClassVar = {"too large for the request": (Cut("big", "model_request", "offloaded", 2542),)}

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """Return the cases but the one of a cancelled call: tools run in threads, which are not cancelled."""
        return {name: case for name, case in super().cases().items() if name != "cancelled"}


class TestCrewAIOldest(TestCrewAI):
    """Up to 1.15.25 the executor is in the package of experiments, and no hook shortens a large result."""

    environment = "crewai-1.15.0"
    integrations: ClassVar = {
        "crewai": [
            target.replace("crewai.agents.agent_executor", "crewai.experimental.agent_executor")
            for target in TestCrewAI.integrations["crewai"]
        ]
    }
    cuts: ClassVar = {}

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """Return the cases but the one that this version does not shorten."""
        return {name: case for name, case in super().cases().items() if name != "too large for the request"}


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
            if case.setting not in {"step", "function"}
        }

    @classmethod
    def results(cls, server: OpenAIServer | ScriptedServer) -> dict[str, str]:
        """Return the observations."""
        return {call: text for request in server.requests for call, text in script.observations(request).items()}


del Delivery

#: A flow of two crews, each of which calls a tool.
FLOW = """
from crewai.flow.flow import Flow, listen, start
from tests.contract import script, toolbox
from tests.contract.agents import crewai

def work(call_id):
    prompt = script.prompt((call_id, "lookup", {"key": "a"}))
    return str(crewai.make(base_url, [toolbox.lookup], prompt, "").kickoff().raw)

class Review(Flow):
    @start()
    def first(self):
        return work("call_1")

    @listen(first)
    def second(self, _):
        return work("call_2")

Review().kickoff()
"""

#: A tool that the program calls itself, in each way.
ALONE = """
import asyncio
from crewai.tools import tool
from tests.contract import toolbox

sync, later = tool(toolbox.lookup), tool(toolbox.lookup_later)
said = [sync.run(key="größe"), asyncio.run(later.arun(key="größe"))]
spans = [span["attributes"] for span in telemetry.spans()]
report = [span["tool.result.bytes"] for span in spans if "tool.args_hash" in span]
"""

#: A tool whose own request to a model is refused, and a function of a model that raises.
FAILING = """
from crewai.llms.providers.openai.completion import OpenAICompletion
from crewai.tools import tool
from tests.contract import toolbox

model = OpenAICompletion(model="gpt-4o-mini", base_url="http://127.0.0.1:9/v1", api_key="scripted", max_retries=0)

@tool
def ask(question: str) -> str:
    "Ask a model, if there is one."
    try:
        return model.call(question)
    except ConnectionError:
        return "nobody"

said = [ask.run(question="who?"), model._handle_tool_execution("broken", {"key": "a"}, {"broken": toolbox.broken})]
timed = [metric for metric in telemetry.metrics() if metric["name"] == "gen_ai.execute_tool.duration"]
calls = [(each["attributes"]["gen_ai.tool.name"], each["attributes"].get("error.type")) for each in timed]
report = [said, sorted(calls), [each["count"] for each in timed]]
"""
_LOADED = f"{agents('crewai', 'crewai')}\nimport crewai.flow.flow, crewai.llms.providers.openai.completion"


def _measured(forks: Forks, program: str, **env: str) -> Any:
    return forks.measure("crewai", _LOADED, program, {**QUIET, **TestCrewAI.variables, **env})


@pytest.mark.parametrize("spans", [{}, {"AGENT_OTEL_SPANS": "off"}], ids=["auto", "off"])
def test_a_failed_request_of_a_tool_is_no_failure_of_the_tool_and_a_raising_function_is_one(
    forks: Forks, spans: dict[str, str]
) -> None:
    said, calls, counts = _measured(forks, FAILING, **spans)["report"]
    assert said == ["nobody", None]
    assert calls == [["ask", None], ["broken", BROKEN]]
    assert counts == [1, 1]


def test_a_tool_that_the_program_calls_is_measured(forks: Forks) -> None:
    assert _measured(forks, ALONE)["report"] == [LOOKUP_BYTES, LOOKUP_BYTES]


def test_a_flow_is_one_run_and_one_trace(forks: Forks) -> None:
    with OpenAIServer(script.decide) as server:
        report = _measured(forks, f"base_url = {server.base_url!r}\n{FLOW}")

    ours = [span for span in report["spans"] if span["scope"] == "agent_otel"]
    (root,) = (span for span in ours if span["parent"] is None)
    assert root["name"] == "invoke_workflow Review"
    assert len({span["trace"] for span in ours}) == 1
    calls = [span["attributes"] for span in ours if span["name"] == "execute_tool lookup"]
    assert [call["gen_ai.workflow.name"] for call in calls] == ["Review", "Review"]
    (totals,) = (metric for metric in report["metrics"] if metric["name"] == "agent_otel.execution.tool_calls")
    assert (totals["count"], totals["sum"]) == (1, 2)
    assert totals["attributes"]["gen_ai.workflow.name"] == "Review"
