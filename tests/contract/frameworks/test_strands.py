"""Strands Agents, whose own spans of tools are enriched, or have ours inside of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from tests.contract.cases import DELEGATED, DELEGATED_BYTES, KEY, WIRE, Case, Cut, Record, failed, looked_up
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

# The call of the agent behind the tool.
ASSISTANT = Record("lookup", "call_30", LOOKUP_BYTES, agent="assistant")
# What the hook has left of it: g r ö ß e : and a blank are 9 bytes, 93 times ß 186.
SHORTENED = 195


def _team(call_id: str, setting: str, *agents: str) -> Case:
    records = [Record("lookup", call_id, LOOKUP_BYTES, agent=agent) for agent in agents]
    return Case(("lookup",), ((call_id, "lookup", KEY),), tuple(records), setting=setting)


class TestStrands(Delivery):
    """The numbers go on the framework's span, which has ended when the hooks after the call run."""

    agent = "strands"
    environment = "strands"
    integrations: ClassVar = {
        "strands": [
            "strands.tools.executors._executor:_run_tool",
            "strands.agent.agent:Agent.stream_async",
            "strands.multiagent.graph:Graph.stream_async",
            "strands.multiagent.swarm:Swarm.stream_async",
        ],
    }
    agent_name = "clerk"
    has_runs = True
    waiting: ClassVar = {"interrupted by a hook": 1}
    scope = "strands.telemetry.tracer"
    origin = None
    outer = False
    reads_failures = True
    loads = ("wrapt",)
    own: ClassVar = {
        "two megabytes": WHOLE,
        # {"rows": [{"id": 0}, {"id": 1}]}: the framework has made a text of it, with blanks.
        "structured": Case(
            ("table",), (("call_21", "table", {"rows": 2}),), (Record("table", "call_21", 32, args=10),)
        ),
        "in pieces": looked_up("in_pieces", "call_22"),
        "a result of its own": looked_up("ready_made", "call_23"),
        "flagged": Case(
            ("flagged",), (("call_24", "flagged", KEY),), (Record("flagged", "call_24", 17, error="tool_error"),)
        ),
        "shortened by a hook": Case(
            ("lookup",), (("call_27", "lookup", KEY),), (Record("lookup", "call_27", LOOKUP_BYTES),), setting="shorten"
        ),
        "agent as a tool": Case(
            ("delegate",),
            (("call_29", "delegate", {"input": DELEGATED}),),
            (Record("delegate", "call_29", 4, args=DELEGATED_BYTES), ASSISTANT),
        ),
        # Two agents, each with the same call; of a swarm the first one answers.
        "in a graph": _team("call_36", "graph", "clerk", "assistant"),
        "in a swarm": _team("call_37", "swarm", "clerk"),
        "interrupted": Case(
            ("asks",),
            (("call_31", "asks", KEY),),
            (Record("asks", "call_31"),),
            said="interrupted",
            unsent=("call_31",),
        ),
        "interrupted by a hook": Case(
            ("lookup",), (("call_32", "lookup", KEY),), (), setting="ask", said="interrupted", unsent=("call_32",)
        ),
    }
    cuts: ClassVar = {"shortened by a hook": (Cut("lookup", "framework", "shrunk", SHORTENED),)}


class TestStrandsOwnSpans(TestStrands):
    """Spans of our own, which know what the framework has handed back."""

    variables: ClassVar = {"AGENT_OTEL_SPANS": "own"}
    scope = "agent_otel"
    outer = True
    own: ClassVar = {
        **TestStrands.own,
        "shortened by a hook": replace(
            TestStrands.own["shortened by a hook"],
            records=(Record("lookup", "call_27", LOOKUP_BYTES, handed_back=SHORTENED, cut=("framework", "shrunk")),),
        ),
        "tried again": looked_up("flaky", "call_33", setting="retry"),
        "refused by a hook": failed("lookup", "call_34", error="tool_error", setting="refuse"),
        "with arguments that do not fit": Case(
            ("lookup",),
            (("call_25", "lookup", {"kee": "größe"}),),
            (Record("lookup", "call_25", handed_back=WIRE, error="ValueError"),),
        ),
    }
    cuts: ClassVar = {}


class TestStrands161(TestStrands):
    """The framework's span is open around all of it, so that it has both sizes."""

    environment = "strands-1.61"
    integrations: ClassVar = {
        "strands": [
            "strands.tools.executors._executor:ToolExecutor._stream",
            "strands.multiagent.graph:Graph.stream_async",
        ]
    }
    outer = True
    waiting: ClassVar = {**TestStrands.waiting, "interrupted": 1}
    own: ClassVar = {**TestStrandsOwnSpans.own, "interrupted": replace(TestStrands.own["interrupted"], records=())}
    cuts: ClassVar = {}

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """Return the cases, except that the framework never ends its span of a call that was cancelled."""
        return {name: case for name, case in super().cases().items() if name != "cancelled"}


class TestStrandsOldest(TestStrands161):
    """Strands 1.30; before that, the exception did not come with the result."""

    environment = "strands-1.30"

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """Return the cases, except that its swarm leaves contexts in the wrong place, also without this package."""
        return {name: case for name, case in super().cases().items() if name != "in a swarm"}


def test_a_result_without_content_counts_whole(environment: Callable[[str], Environment]) -> None:
    program = """
        from prometheus_client import REGISTRY
        from strands import Agent
        from strands.models.openai import OpenAIModel
        from strands.tools.tools import PythonAgentTool

        spec = {"name": "bare", "description": "Answers.", "inputSchema": {"json": {"type": "object"}}}
        tool = PythonAgentTool("bare", spec, lambda use, **_: {"status": "success"})
        model = OpenAIModel(client_args={"api_key": "scripted"}, model_id="scripted")
        agent = Agent(model=model, tools=[tool], callback_handler=None)
        print(agent.tool.bare(record_direct_tool_call=False))
        samples = [sample for family in REGISTRY.collect() for sample in family.samples]
        sums = (each for each in samples if each.name == "agent_otel_tool_result_size_bytes_sum")
        print(*(each.value for each in sums if each.labels["gen_ai_tool_name"] == "bare"))
        print(*(sample.value for family in REGISTRY.collect() for sample in family.samples
                if sample.name == "agent_otel_internal_errors_total"))
    """
    said = environment("strands").run(program, env={"AGENT_OTEL": "1"}, check=True).stdout

    # {"status":"success"} is 20 bytes.
    assert "{'status': 'success'}\n20.0\n\n" == said


del Delivery
