"""What every framework's agents get of a remedy: one child process for each framework and each choice of settings.

The child runs the framework's own loop against a scripted model over real HTTP. What is expected stands in the case, by
hand; what the model was sent is taken from the wire.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from agent_otel.testing.servers.openai import OpenAIServer, Reply
from tests.contract import script
from tests.contract.suite import QUIET

if TYPE_CHECKING:
    from pathlib import Path

    from tests.contract.cases import Json
    from tests.environments import Environment


class Carrier(NamedTuple):
    """A framework whose loop carries results to a model.

    ``modes`` are those in which calls of a turn can run at once and those in which they do not.
    """

    agent: str
    environment: str
    modes: tuple[str, ...] = ("sync", "async")
    at_once: bool = True
    #: Who the results of an execution that nobody has named belong to: the framework's own id, where there is one.
    owner: bool = True
    mcp: bool = False


LANGCHAIN = Carrier("tests.contract.agents.langchain", "langchain", at_once=False, owner=False)
LANGGRAPH = Carrier("tests.contract.agents.langgraph", "langchain")
AGENTS = Carrier("tests.contract.agents.openai_agents", "openai-agents")
MCP = Carrier("tests.contract.remedies.agents.mcp_results", "mcp-1", modes=("async",), owner=False, mcp=True)
PYDANTIC_AI = Carrier("tests.contract.agents.pydantic_ai", "pydantic-ai")
CARRIERS: dict[str, Carrier] = {
    "langchain": LANGCHAIN,
    "langchain 0.3": LANGCHAIN._replace(environment="langchain-oldest"),
    "langgraph": LANGGRAPH,
    "langgraph 0.2": LANGGRAPH._replace(environment="langchain-oldest"),
    "openai-agents": AGENTS,
    "openai-agents 0.18": AGENTS._replace(environment="openai-agents-0.18"),
    "openai-agents 0.8": AGENTS._replace(environment="openai-agents-0.8"),
    "openai-agents 0.7": AGENTS._replace(environment="openai-agents-0.7"),
    "pydantic-ai": PYDANTIC_AI,
    "pydantic-ai 2.0": PYDANTIC_AI._replace(environment="pydantic-ai-oldest"),
    "mcp 1": MCP,
    "mcp 2": MCP._replace(environment="mcp-2"),
    "fastmcp": MCP._replace(agent="tests.contract.remedies.agents.fastmcp_results", environment="mcp-2"),
    "camel": Carrier("tests.contract.agents.camel", "camel-ai", at_once=False),
    "handwritten": Carrier("tests.contract.remedies.agents.by_hand", "bare", owner=False),
    "decorated": Carrier("tests.contract.remedies.agents.decorated", "bare", owner=False),
}
#: Older versions: CI runs the ceiling with them in tests/unit/remedies/test_failures.py, the weekly run all of it.
OLDER = (
    *("langchain 0.3", "langgraph 0.2", "pydantic-ai 2.0"),
    *("openai-agents 0.18", "openai-agents 0.8", "openai-agents 0.7"),
)


@dataclass(frozen=True)
class Case:
    """One run: what the model asks for, all in one turn or one call a turn, and in which execution."""

    calls: tuple[tuple[str, str, Json], ...]
    mode: str = "async"
    at_once: bool = False
    execution: str = ""
    tools: tuple[str, ...] = ()

    def plan(self) -> Json:
        """What the child is told."""
        prompt = json.dumps({"calls": self.calls, "at_once": self.at_once}, ensure_ascii=False, separators=(",", ":"))
        tools = self.tools or tuple(dict.fromkeys(name for _, name, _ in self.calls))
        return {"tools": tools, "prompt": prompt, "mode": self.mode, "execution": self.execution}


@dataclass
class Seen:
    """What came of the runs: what the child reported, and what the model was sent of each result, by call id."""

    report: Json
    wire: dict[str, str]
    requests: list[Json] = field(default_factory=list)
    answers: Json = field(default_factory=dict)

    def spans(self, case: str) -> list[Json]:
        """The attributes of the spans of a case's tools, with the names of their events."""
        found = [span for span in self.report["cases"][case]["spans"] if "tool.args_hash" in span["attributes"]]
        return [{**span["attributes"], "events": span["events"]} for span in found]

    def metric(self, case: str, name: str, **labels: str) -> float | None:
        """The sum of a metric in a case, over the points with these labels; None when there are none."""
        found = [
            metric["sum"]
            for metric in self.report["cases"][case]["metrics"]
            if metric["name"] == name and labels.items() <= metric["attributes"].items()
        ]
        return sum(found) if found else None


class Remedies:
    """Base of the tests of one choice of settings, over all carriers."""

    variables: ClassVar[dict[str, str]] = {}
    hints: ClassVar[dict[str, str]] = {}
    #: The carriers that CI runs, where what is shown does not depend on the carrier; without any, CI runs all.
    in_ci: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def cases(cls, carrier: Carrier) -> dict[str, Case]:
        """The cases that this carrier has."""
        raise NotImplementedError

    @classmethod
    def decide(cls, request: Json) -> Reply:
        """What the model says: asks for the next call, or for all of them."""
        return decide(request)

    @classmethod
    def environ(cls, folder: Path) -> dict[str, str]:
        """Variables of the child that depend on a folder of its own."""
        del folder
        return {}

    @classmethod
    def run(cls, carrier: Carrier, environment: Environment, folder: Path) -> Seen:
        """Run the child against a scripted model."""
        plan = folder / "plan.json"
        cases = {name: case.plan() for name, case in cls.cases(carrier).items()}
        plan.write_text(json.dumps({"cases": cases, "hints": cls.hints}))
        with OpenAIServer(cls.decide) as server:
            done = environment.run(
                "import runpy; runpy.run_module('tests.contract.remedies.child', run_name='__main__')",
                carrier.agent,
                server.base_url,
                str(plan),
                env={**QUIET, "AGENT_OTEL": "1", **cls.variables, **cls.environ(folder)},
                check=True,
            )
        report = json.loads(done.stdout.splitlines()[-1])
        answers: Json = {}
        wire = server.tool_results()
        if carrier.mcp:
            for case in report["cases"].values():
                answers.update(json.loads(case["said"]))
            wire = {call_id: answer["text"] for call_id, answer in answers.items()}
        return Seen(report, wire, server.requests, answers)


def decide(request: Json) -> Reply:
    """Ask for the calls of the prompt that have no result yet: the first of them, or all where it says ``at_once``."""
    left = script.decide(request)
    is_at_once = '"at_once":true' in json.dumps(request).replace("\\", "")  # the prompt is a text in it
    return left if isinstance(left, str) or is_at_once else left[:1]


def dictionary(seen: Seen) -> Json:
    """As it is kept for the other workers."""
    return asdict(seen)
