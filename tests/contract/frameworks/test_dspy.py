"""DSPy's ``ReAct``, which writes results into a text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract import script
from tests.contract.cases import DELEGATED, DELEGATED_BYTES, Case, Record, looked_up
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Json, Reply
    from agent_otel.testing.servers.scripted import ScriptedServer
    from tests.contract.suite import Runs
    from tests.environments import Environment

_OBSERVED = r"\[\[ ## observation_\d+ ## \]\]\n(.*?)\n*(?=\[\[ ## |Respond with)"


def asked(request: Json) -> tuple[list[Any], str]:
    """Return the calls of the prompt, and the text that has it with the trajectory."""
    text = script.text_of(request["messages"][-1])
    return script.calls_of(text), text


def observations(request: Json) -> dict[str, str]:
    """Return the results by call id, in the order of the calls."""
    calls, text = asked(request)
    found = re.findall(_OBSERVED, text, re.DOTALL)
    return dict(zip((id_ for id_, _, _ in calls), found, strict=False))


def fields(**values: str) -> str:
    return "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in {**values, "completed": ""}.items())


def decide(request: Json) -> Reply:
    """Ask for the calls of the prompt one by one, finish, and give the answer."""
    calls, text = asked(request)
    if "[[ ## next_thought ## ]]" not in text:
        return fields(reasoning="so", answer="done")
    answered = observations(request)
    left = [*((name, arguments) for id_, name, arguments in calls if id_ not in answered), ("finish", {})]
    name, arguments = left[0]
    return fields(next_thought="so", next_tool_name=name, next_tool_args=json.dumps(arguments, ensure_ascii=False))


class TestDSPy(Delivery):
    """DSPy 3.4.1."""

    agent = "dspy"
    environment = "dspy"
    integrations: ClassVar = {
        "dspy": [
            "dspy.adapters.types.tool:Tool.__call__",
            "dspy.predict.react:ReAct.forward",
            "dspy.predict.react:ReAct._call_with_potential_trajectory_truncation",
            "dspy.predict.react_v2:ReActV2.forward",
            "dspy.predict.rlm:RLM.forward",
            "dspy.predict.code_act:CodeAct.forward",
            "dspy.predict.predict:Predict.__call__",
            "dspy.clients.base_lm:BaseLM.__call__",
            "dspy.clients.execution:_cached",
        ],
    }
    has_runs = True
    run_span = "invoke_agent"
    modes: ClassVar = ("sync", "async")
    origin = None
    outer = False
    reads_failures = True
    knows_ids = False
    variables: ClassVar = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    decide = staticmethod(decide)
    own: ClassVar = {
        "two megabytes": WHOLE,
        "nested": looked_up("nested", "call_20"),
        # {"rows":[{"id":0},{"id":1}]}, to which DSPy adds 4 blanks
        "structured": Case(
            ("table",), (("call_21", "table", {"rows": 2}),), (Record("table", "call_21", 28, args=10),)
        ),
        "agent as a tool": Case(
            ("delegate",),
            (("call_29", "delegate", {"input": DELEGATED}),),
            (Record("delegate", "call_29", 4, args=DELEGATED_BYTES), Record("lookup", "call_30", LOOKUP_BYTES)),
        ),
    }
    reformatted: ClassVar = ("structured",)

    def expected(self, record: Record, runs: Runs) -> Record:
        """Leave out the words before the text of an exception, which the agent adds."""
        found = super().expected(record, runs)
        words = len(f"Execution error in {record.tool}: ")
        return found if found.handed_back is None else replace(found, handed_back=found.handed_back - words)

    @classmethod
    def results(cls, server: OpenAIServer | ScriptedServer) -> dict[str, str]:
        """Return the observations."""
        return {call: text for request in server.requests for call, text in observations(request).items()}


_CACHED = """
import json, sys
from tests.contract.child import Telemetry
telemetry = Telemetry()
import dspy
dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
model = dspy.LM("openai/scripted", api_base=sys.argv[1], api_key="scripted", cache=True)
said = [model("hello")[0], model("hello")[0]]
sizes = [metric for metric in telemetry.metrics() if metric["name"] == "agent_otel.model.request.size"]
print(json.dumps([said, [[each["attributes"]["part"], each["count"], each["sum"]] for each in sizes if each["sum"]]]))
"""


def test_an_answer_from_the_cache_is_no_request(environment: Callable[[str], Environment]) -> None:
    with OpenAIServer(lambda _: "done") as server:
        done = environment("dspy").run(_CACHED, server.base_url, env={"AGENT_OTEL": "1"}, check=True)
    assert len(server.requests) == 1
    assert json.loads(done.stdout) == [["done", "done"], [["user", 1, 5]]]


_IN_CODE = """
import asyncio, json, sys
from tests.contract.child import Telemetry
telemetry = Telemetry()
import dspy
from dspy.primitives.code_interpreter import FinalOutput
from tests.contract.toolbox import lookup

class Interpreter:
    def __init__(self):
        self.tools = {}

    def start(self):
        pass

    def shutdown(self):
        pass

    def execute(self, code, variables=None, **_):
        if "lookup" not in code:
            return ""
        self.tools["lookup"](key="größe")
        return FinalOutput({"answer": "done"})

model = dspy.LM("openai/scripted", api_base=sys.argv[1], api_key="scripted", cache=False)
with dspy.context(lm=model):
    agent = dspy.RLM("question -> answer", tools=[lookup], interpreter_factory=Interpreter)
    said = [agent(question="who?").answer, asyncio.run(agent.acall(question="who?")).answer]
spans = [[s["name"], s["parent"], s["attributes"].get("tool.result.bytes")] for s in telemetry.spans()]
totals = [m for m in telemetry.metrics() if m["name"] == "agent_otel.execution.tool_calls"]
print(json.dumps([said, spans, [[each["count"], each["sum"]] for each in totals]]))
"""


def test_a_run_of_an_agent_whose_code_calls_tools(environment: Callable[[str], Environment]) -> None:
    fields = {"reasoning": "so", "code": "```python\nSUBMIT(lookup(key='größe'))\n```", "completed": ""}
    code = "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items())
    with OpenAIServer(lambda _: code) as server:
        done = environment("dspy").run(_IN_CODE, server.base_url, env={"AGENT_OTEL": "1"}, check=True)
    spans = [["execute_tool lookup", "invoke_agent", LOOKUP_BYTES], ["invoke_agent", None, None]]
    assert json.loads(done.stdout.splitlines()[-1]) == [["done"] * 2, spans * 2, [[2, 2]]]


del Delivery
