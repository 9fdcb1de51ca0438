"""smolagents: agents that call tools, and agents that write code. Outputs are cut by default."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from agent_otel.testing.servers.openai import Json, Reply, ToolCall
from tests.contract import script
from tests.contract.cases import DELEGATED, DELEGATED_BYTES, WIRE, Case, Cut, Record, looked_up, of_one_agent
from tests.contract.delivery import LARGE, WHOLE, Delivery
from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from agent_otel.testing.servers.openai import OpenAIServer
    from agent_otel.testing.servers.scripted import ScriptedServer
    from tests.contract.suite import Runs

LAST = "Last output from code snippet:\n"

# The call of the agent that is used as a tool.
ASSISTANT = Record("lookup", "call_30", LOOKUP_BYTES, agent="assistant")


def asked(request: Json) -> tuple[list[Any], str]:
    """Return the calls of the prompt, and all that the agent has told the model since, which may be in one message."""
    said = "\n".join(script.text_of(message) for message in request["messages"] if message["role"] == "user")
    calls = script.calls_of(said)
    return calls, said[said.index(script.BEGIN) + len(script.prompt(*calls)) :]


def answers(request: Json) -> dict[str, str]:
    """Return the agent's text about each call: a line each, or the whole text about a single one."""
    calls, said = asked(request)
    told = re.split("\n?(?:Observation|Error):\n", said)[1:]
    lines = told[0].split("\n") if told and len(calls) > 1 else told
    return dict(zip((id_ for id_, _, _ in calls), lines, strict=False))


def decide(request: Json) -> Reply:
    """Ask for the calls of the prompt at once, and then give the answer with the tool for that."""
    answered = answers(request)
    left = [ToolCall(*call) for call in asked(request)[0] if call[0] not in answered]
    return left or [ToolCall("answer", "final_answer", {"answer": "done"})]


class TestSmolagents(Delivery):
    """Agents that call tools: results whole, as text."""

    agent = "smolagents"
    environment = "smolagents"
    integrations: ClassVar = {
        "smolagents": [
            "smolagents.agents:MultiStepAgent.run",
            "smolagents.agents:ToolCallingAgent.execute_tool_call",
            "smolagents.local_python_executor:timeout",
            "smolagents.tools:Tool.__call__",
        ],
    }
    agent_name: ClassVar[str | None] = "clerk"
    has_runs = True
    run_span = "invoke_agent clerk"
    origin = None
    outer = False
    #: The model gets more words about an exception.
    unfound: ClassVar = {"structured": ("table",), "agent as a tool": ("lookup",)}
    reformatted: ClassVar = ("structured", "raises in async", "raises in sync")
    #: The text that the framework makes of the tool's exception.
    failure: ClassVar[str] = (
        "Error executing tool '{}' with arguments {{'key': 'größe'}}: BrokenError: no record größe\n"
        "Please try again or use another tool"
    )
    decide = staticmethod(decide)
    own: ClassVar = {
        "two megabytes": WHOLE,
        "nested": looked_up("nested", "call_20"),
        # {"rows":[{"id":0},{"id":1}]}, which the model gets as str() writes it
        "structured": Case(
            ("table",), (("call_21", "table", {"rows": 2}),), (Record("table", "call_21", 28, args=10),)
        ),
        # {"task":"…"}, one byte less than with an "input"; 61 bytes and a line end precede "done".
        "agent as a tool": Case(
            ("assistant",),
            (("call_29", "assistant", {"task": DELEGATED}),),
            (Record("assistant", "call_29", 66, args=DELEGATED_BYTES - 1), ASSISTANT),
        ),
    }

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """Return the cases but the one of a cancelled call: nothing here is asynchronous."""
        return {name: case for name, case in super().cases().items() if name != "cancelled"}

    @classmethod
    def results(cls, server: OpenAIServer | ScriptedServer) -> dict[str, str]:
        """Return the texts that contain the results."""
        return {call: text for request in server.requests for call, text in answers(request).items()}

    def expected(self, record: Record, runs: Runs) -> Record:
        """Return a record with the bytes of the framework's text about a failure."""
        if record.handed_back == WIRE:
            record = replace(record, handed_back=len(self.failure.format(record.tool).encode()) or None)
        return super().expected(record, runs)


class TestSmolagentsOldest(TestSmolagents):
    """smolagents 1.24, the first that runs code in a thread."""

    environment = "smolagents-oldest"


def printed(request: Json) -> dict[str, str]:
    """Return the text that the code printed of each call, or its last value."""
    calls, said = asked(request)
    told = re.split("\n?(?:Observation:\nExecution logs|Error):\n", said)[1:]
    told = [text.partition(LAST)[2] if text.startswith(LAST) else text.partition(f"\n{LAST}")[0] for text in told]
    lines = told[0].split("\n") if told and len(calls) > 1 else told
    return dict(zip((id_ for id_, _, _ in calls), lines, strict=False))


def code(request: Json) -> Reply:
    """Ask for the calls in code that prints their results."""
    return in_code(request, "print({})")


def value(request: Json) -> Reply:
    """Ask for the calls in code that prints nothing: the last value is told."""
    return in_code(request, "{}")


def in_code(request: Json, line: str) -> Reply:
    """Ask for the calls in code, a line each."""
    answered = printed(request)
    lines = [
        line.format(f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})")
        for id_, name, arguments in asked(request)[0]
        if id_ not in answered
    ]
    return "Thought: so.\n<code>\n" + "\n".join(lines or ["final_answer('done')"]) + "\n</code>"


class TestSmolagentsCode(TestSmolagents):
    """Agents that write code: printed output is cut at 50,000 characters. The code does not name its agent to tools."""

    unfound: ClassVar = {}
    knows_ids = False
    failure = ""  # an exception ends the code
    decide = staticmethod(code)
    own: ClassVar = {
        **{name: case for name, case in TestSmolagents.own.items() if name != "two megabytes"},
        "agent as a tool": of_one_agent(TestSmolagents.own["agent as a tool"]),
        "too large to be printed": LARGE,
    }
    # Of the text and a line end 25,000 characters at each end, without that line end, and 72 between them.
    cuts: ClassVar = {"too large to be printed": (Cut("big", "model_request", "marker", 49_999 + 72),)}

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """Return the cases for the agent that writes code."""
        return {name: replace(case, setting="code") for name, case in super().cases().items()}

    @classmethod
    def results(cls, server: OpenAIServer | ScriptedServer) -> dict[str, str]:
        """Return the texts that contain the results."""
        return {call: text for request in server.requests for call, text in printed(request).items()}


class TestSmolagentsValue(TestSmolagentsCode):
    """Agents that write code: its last value is cut at 20,000 characters."""

    decide = staticmethod(value)
    cuts: ClassVar = {"too large to be printed": (Cut("big", "model_request", "marker", 20_000 + 72),)}

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """Return the cases of one call: only the last has a value that is told."""
        return {name: case for name, case in super().cases().items() if name != "parallel"}


del Delivery
