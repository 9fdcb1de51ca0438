"""The bytes that no model request of an execution held, through OpenAI's client and ``agent_otel.payload``."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import OpenAIServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.forks import Forks

Json = dict[str, Any]

PROGRAM = """
import json
import agent_otel, openai
from agent_otel.core import payload as payloads

client = openai.OpenAI(base_url=base_url, api_key="scripted", max_retries=0)

def lines(name): return "".join(f"{name:>11} has a line {number:08}\\n" for number in range(6250))  # 200,000 bytes
def tool(call_id):
    with agent_otel.tool_call("search", {}, call_id=call_id) as call:
        return call.result(lines(call_id))
def send(*parts): client.chat.completions.create(model="scripted", messages=list(parts))
def carry(state, direction="input"):
    agent_otel.payload(json.dumps(state), runtime="mine", activity="turn", direction=direction)
    payloads._analyst.drain(60)
class Agent:
    def __init__(self, cut=32_000):
        self.cut = cut
        self.state = {"messages": [{"role": "user", "content": "go"}], "accumulatedToolCalls": []}
    def ask(self): send(*self.state["messages"])
    def turn(self, *call_ids):
        messages = self.state["messages"]
        function = {"name": "search", "arguments": "{}"}
        calls = [{"id": call_id, "type": "function", "function": function} for call_id in call_ids]
        messages.append({"role": "assistant", "tool_calls": calls})
        for call_id in call_ids:
            text = tool(call_id)
            messages.append({"role": "tool", "tool_call_id": call_id, "content": text[:self.cut]})
            self.state["accumulatedToolCalls"].append({"id": call_id, "name": "search", "args": {}, "result": text})
"""

BEGIN = "import openai.resources.chat.completions, openai.resources.responses"
CAPS = {"AGENT_OTEL_CAPS": "mine.activity_input=2MiB,mine.activity_output=2MiB"}
PATH = "accumulatedToolCalls[].result"
#: Bytes of a result that the model did not get: 200,000 - 32,000 characters, and a line's end has two in JSON.
REST = 168_000 + 168_000 // 32


@pytest.fixture
def told(forks: Forks) -> Callable[[str], Json]:
    """Return a function from a program to what it emitted."""

    def run(body: str) -> Json:
        with OpenAIServer(lambda _: "done") as server:
            program = f"base_url = {server.base_url!r}\n{PROGRAM}{textwrap.dedent(body)}"
            report: Json = forks.measure("openai-agents", BEGIN, program, CAPS)
        assert report["errors"] == {}
        assert report["messages"] == []
        return report

    return run


def counted(report: Json) -> dict[str, float]:
    """The unread bytes that were counted, by workflow and path."""
    found: dict[str, float] = {}
    for metric in report["metrics"]:
        if metric["name"] == "agent_otel.workflow.payload.unread":
            labels = metric["attributes"]
            found[f"{labels['gen_ai.workflow.name']} {labels['component']}"] = metric["sum"]
    return found


def found(report: Json) -> list[tuple[Any, ...]]:
    """What the spans of analysed payloads say: the unread bytes, their path and the turns without them."""
    names = ("unread_bytes", "unread_path", "turns_to_cap_without_unread")
    return [
        tuple(span["attributes"].get(f"workflow.payload.{name}") for name in names)
        for span in report["spans"]
        if "workflow.payload.largest_path" in span["attributes"]
    ]


@pytest.mark.shows("000.unread")
def test_what_a_model_got_cut_is_unread_behind_the_cut(told: Callable[[str], Json]) -> None:
    report = told(
        """
        agent = Agent()
        with agent_otel.execution("run", workflow="w"):
            carry(agent.state)
            for turn in range(2):
                agent.ask()
                agent.turn(*(f"call_{turn}{number}" for number in range(3)))
                carry(agent.state)
        """
    )
    # The second turn's results had not been sent. A turn's results have 617,760 bytes more than what is unread of them,
    # 197,000 of which a model reads: 8 more fit.
    assert found(report) == [(3 * REST, PATH, 8)]
    assert counted(report) == {f"w {PATH}": 3 * REST}


def test_a_later_request_that_holds_less_makes_nothing_unread(told: Callable[[str], Json]) -> None:
    report = told(
        """
        agent = Agent(cut=200_000)
        with agent_otel.execution("run", workflow="w"):
            agent.ask()
            carry(agent.state)
            agent.turn("call_0", "call_1", "call_2")
            agent.ask()
            for message in agent.state["messages"]:
                if message["role"] == "tool":
                    message["content"] = "[cleared]"
            agent.ask()
            carry(agent.state)
            agent.state["again"] = [agent.state["accumulatedToolCalls"]]
            carry(agent.state)
        """
    )
    assert found(report) == [(0, None, None)]
    assert counted(report) == {}


@pytest.mark.parametrize(
    "asks",
    ["pass", "client.responses.create(model='scripted', input='go', previous_response_id='resp_1')"],
    ids=["no request", "the provider keeps the conversation"],
)
def test_what_is_unknown_has_no_number(told: Callable[[str], Json], asks: str) -> None:
    report = told(
        f"""
        agent = Agent()
        with agent_otel.execution("run", workflow="w"):
            carry(agent.state)
            agent.turn("call_0")
            carry(agent.state)
            {asks}
            agent.turn(*(f"call_{{number}}" for number in range(1, 6)))
            carry(agent.state)
        """
    )
    assert found(report) == [(None, None, None)]
    assert counted(report) == {}


def test_what_a_step_puts_out_may_be_sent_yet(told: Callable[[str], Json]) -> None:
    report = told(
        """
        agent = Agent()
        with agent_otel.execution("run", workflow="w"):
            carry(agent.state)
            agent.ask()
            carry({"page": [lines(str(number)) for number in range(6)]}, "output")
        """
    )
    assert found(report) == [(None, None, None)]


def test_keys_that_may_be_data_are_not_shown(told: Callable[[str], Json]) -> None:
    report = told(
        """
        agent = Agent()
        with agent_otel.execution("run", workflow="w"):
            agent.ask()
            carry(agent.state)
            agent.ask()
            carry({**agent.state, "ada_lovelace": {"x7": [lines(str(number)) for number in range(6)]}})
        """
    )
    assert found(report) == [(6 * (200_000 + 6250 + 2), "*.*[]", None)]
    assert counted(report) == {"w *.*[]": 6 * (200_000 + 6250 + 2)}
