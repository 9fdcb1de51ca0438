"""CrewAI, with a model that calls tools and with one that writes what it wants to do."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract import script
from tests.contract.cases import BROKEN, KEY, Case, Cut, Record, looked_up
from tests.contract.delivery import LARGE, Delivery
from tests.contract.suite import QUIET
from tests.contract.toolbox import LOOKUP, LOOKUP_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.scripted import ScriptedServer
    from tests.environments import Environment

# g r ö ß e : and a blank are 9 bytes, 93 times ß 186.
SHORTENED = Record("lookup", "call_27", LOOKUP_BYTES, handed_back=195, cut=("framework", "shrunk"))


def _function(tool: str, call_id: str, produced: int | None = None, error: str | None = None, **more: Any) -> Case:
    """Return a case of a function that the program passes to the model, which hands on what it returns."""
    records = (Record(tool, None, produced, error=error, agent=""),)
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
import json, sys
sys.path.insert(0, {root!r})
from tests.contract.child import Messages, Telemetry
messages, telemetry = Messages(), Telemetry()
from crewai.flow.flow import Flow, listen, start
from tests.contract import script, toolbox
from tests.contract.agents import crewai

def work(call_id):
    prompt = script.prompt((call_id, "lookup", {{"key": "a"}}))
    return str(crewai.make({base_url!r}, [toolbox.lookup], prompt, "").kickoff().raw)

class Review(Flow):
    @start()
    def first(self):
        return work("call_1")

    @listen(first)
    def second(self, _):
        return work("call_2")

Review().kickoff()
print(json.dumps({{"spans": telemetry.spans(), "metrics": telemetry.metrics()}}))
"""

#: A tool that the program calls itself, in each way.
ALONE = """
import asyncio, json
from tests.contract.child import Telemetry
telemetry = Telemetry()
from crewai.tools import tool
from tests.contract import toolbox

sync, later = tool(toolbox.lookup), tool(toolbox.lookup_later)
said = [sync.run(key="größe"), asyncio.run(later.arun(key="größe"))]
spans = [span["attributes"] for span in telemetry.spans()]
print(json.dumps([span["tool.result.bytes"] for span in spans if "tool.args_hash" in span]))
"""

#: A tool whose own request to a model is refused, and a function of a model that raises.
FAILING = """
import json
from tests.contract.child import Telemetry
telemetry = Telemetry()
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
print(json.dumps([said, sorted(calls), [each["count"] for each in timed]]))
"""


@pytest.mark.parametrize("spans", ["auto", "off"])
def test_a_failed_request_of_a_tool_is_no_failure_of_the_tool_and_a_raising_function_is_one(
    environment: Callable[[str], Environment], spans: str
) -> None:
    env = {**QUIET, **TestCrewAI.variables, "AGENT_OTEL": "1", "AGENT_OTEL_SPANS": spans}
    done = environment("crewai").run(FAILING, env=env, timeout=240, check=True)
    # The framework's panels may stand around it.
    (said, calls, counts), _ = json.JSONDecoder().raw_decode(done.stdout, done.stdout.index('[["nobody"'))
    assert said == ["nobody", None]
    assert calls == [["ask", None], ["broken", BROKEN]]
    assert counts == [1, 1]


def test_a_tool_that_the_program_calls_is_measured(environment: Callable[[str], Environment]) -> None:
    env = {**QUIET, **TestCrewAI.variables, "AGENT_OTEL": "1"}
    done = environment("crewai").run(ALONE, env=env, timeout=240, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [LOOKUP_BYTES, LOOKUP_BYTES]


def test_a_flow_is_one_run_and_one_trace(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest
) -> None:
    with OpenAIServer(script.decide) as server:
        program = FLOW.format(root=str(request.config.rootpath), base_url=server.base_url)
        env = {**QUIET, **TestCrewAI.variables, "AGENT_OTEL": "1"}
        done = environment("crewai").run(program, env=env, timeout=240, check=True)
    report = json.loads(done.stdout.splitlines()[-1])

    ours = [span for span in report["spans"] if span["scope"] == "agent_otel"]
    (root,) = (span for span in ours if span["parent"] is None)
    assert root["name"] == "invoke_workflow Review"
    assert len({span["trace"] for span in ours}) == 1
    calls = [span["attributes"] for span in ours if span["name"] == "execute_tool lookup"]
    assert [call["gen_ai.workflow.name"] for call in calls] == ["Review", "Review"]
    (totals,) = (metric for metric in report["metrics"] if metric["name"] == "agent_otel.execution.tool_calls")
    assert (totals["count"], totals["sum"]) == (1, 2)
    assert totals["attributes"]["gen_ai.workflow.name"] == "Review"
