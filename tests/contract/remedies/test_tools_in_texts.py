"""DSPy, whose agents write their tools and their history into texts: what is set and cannot act there says so, once."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract.suite import QUIET

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Json, Reply
    from tests.environments import Environment

VARIABLES = {
    "AGENT_OTEL": "1",
    "AGENT_OTEL_CLAIM_CHECK": "memory:",
    "AGENT_OTEL_CLAIM_CHECK_BYTES": "2000",
    "AGENT_OTEL_TRIM_RESULTS": "1",
    "AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS": "1000",
}
PROGRAM = """
import json, sys
import dspy
import agent_otel
from tests.contract.child import Messages

messages = Messages()

def fetch(key: str) -> str:
    "Fetch a record."
    return "".join(f"row {number} of {key}\\n" for number in range(400))

base_url, kind, by_hand = sys.argv[1:]
tools = [fetch, agent_otel.remedies.get_tool_result] if by_hand else [fetch]
model = dspy.LM("openai/scripted", api_base=base_url, api_key="scripted", cache=False, num_retries=0)
with dspy.context(lm=model):
    said = getattr(dspy, kind)("question -> answer", tools=tools)(question="go").answer
print(json.dumps([said, messages.take()]))
"""
REF = re.compile(r"claim:v2:tool-result[^\"\\]+")
NAMED = "read on with get_tool_result"
THROUGH = "through dspy, in this version of it or of agent_otel; they go on"
SAID = [
    f"AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS: without effect on requests {THROUGH} as they are.",
    f"AGENT_OTEL_TRIM_RESULTS: without effect on calls {THROUGH} whole and unlimited.",
]
CANNOT_READ_ON = (
    "AGENT_OTEL_CLAIM_CHECK: get_tool_result cannot be offered in a request through dspy; the result's view has the "
    "reference and names no tool."
)


def _fields(**values: str) -> str:
    return "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in {**values, "completed": ""}.items())


def _call(kind: str, name: str, arguments: Json) -> str:
    """Return what the model of an agent writes for a call."""
    if kind == "ReAct":
        return _fields(next_thought="so", next_tool_name=name, next_tool_args=json.dumps(arguments))
    return _fields(next_thought="so", tool_calls=json.dumps({"tool_calls": [{"name": name, "args": arguments}]}))


def _run(environment: Environment, kind: str, *, by_hand: bool) -> tuple[list[str], list[str]]:
    """Return the texts of the requests, and the messages of the package."""

    def decide(request: Json) -> Reply:
        text, number = json.dumps(request), len(server.requests)
        if number <= 2:
            return _call(kind, "fetch", {"key": f"k{number}"})
        if number == 3 and by_hand:
            return _call(kind, "get_tool_result", {"ref": REF.findall(text)[0], "lines": "381-381"})
        if "next_tool_name" in text:
            return _call(kind, "finish", {})
        return _call(kind, "submit", {"answer": "done"}) if kind != "ReAct" else _fields(reasoning="so", answer="done")

    with OpenAIServer(decide) as server:
        done = environment.run(
            PROGRAM, server.base_url, kind, "yes" if by_hand else "", env={**QUIET, **VARIABLES}, check=True
        )
        texts = [json.dumps(request) for request in server.requests]
    said, messages = json.loads(done.stdout.splitlines()[-1])
    assert said == "done"
    return texts, messages


@pytest.mark.parametrize("kind", ["ReAct", "ReActV2"])
def test_the_tool_is_not_named_where_it_cannot_be_offered(environment: Callable[[str], Environment], kind: str) -> None:
    texts, messages = _run(environment("dspy"), kind, by_hand=False)
    assert [len(set(REF.findall(text))) for text in texts[:3]] == [0, 1, 2]
    assert "get_tool_result" not in "".join(texts)
    assert sorted(messages) == sorted([*SAID, CANNOT_READ_ON])


@pytest.mark.parametrize("kind", ["ReAct", "ReActV2"])
def test_the_programs_own_tool_reads_on(environment: Callable[[str], Environment], kind: str) -> None:
    texts, messages = _run(environment("dspy"), kind, by_hand=True)
    assert [text.count(NAMED) for text in texts[:3]] == [0, 1, 2]
    assert ["row 380 of k1" in text for text in texts[:4]] == [False] * 3 + [True]
    assert sorted(messages) == sorted(SAID)
