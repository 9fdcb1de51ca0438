"""Automatic summarising with the variables alone: each SDK sends long requests with a summary of their old messages."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from agent_otel.testing.servers.openai import Json, Reply, ToolCall
from tests.contract.remedies.test_reading_on_contract import WAYS
from tests.contract.suite import QUIET

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

ABOVE, TARGET = 3_300, 1_800
VARIABLES = {
    "AGENT_OTEL": "1",
    "AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS": str(ABOVE),
    "AGENT_OTEL_SUMMARIZE_TARGET_TOKENS": str(TARGET),
    "AGENT_OTEL_CLAIM_CHECK_BUDGET": "30",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
PROGRAM = """
import asyncio, importlib, inspect, json, sys
import agent_otel, agent_otel.auto
from tests.contract.child import Messages, Telemetry
base_url, module, function, setting = sys.argv[1:]
messages, telemetry, ran = Messages(), Telemetry(), []

def report(name: str) -> str:
    "Return a report."
    ran.append(name)
    return f"Report {name}\\n" + "\\n".join(f"row {name} {number}" for number in range(300))

with agent_otel.execution("run-1"):
    said = getattr(importlib.import_module(module), function)(base_url, [report], "go", setting)
    said = asyncio.run(said) if inspect.isawaitable(said) else said
from agent_otel._internal import errors
print(json.dumps({"said": said, "ran": ran, "metrics": telemetry.metrics(), "messages": messages.take(),
                  "errors": dict(errors.errors)}))
"""
SUMMARISED = (
    *("openai", "anthropic", "anthropic, streamed", "bedrock"),
    *("google-genai, streamed", "mistral, streamed", "ollama, streamed", "litellm"),
    *("langgraph, streamed", "openai-agents, responses", "pydantic-ai, streamed"),
)
# Gemini and Ollama send no ids of calls.
MARK = re.compile(r"SUMMARIZED executionId:'([^']+)'")
READ = '"content":"40: row r1 38"'


class _Model:
    """Asks for eight reports of 900 tokens, one a turn; reads on in the first, which is summarised by then; answers."""

    def __init__(self) -> None:
        self.turns = 0

    def decide(self, request: Json) -> Reply:
        text = json.dumps(request)
        if "Summarise this transcript" in text:
            return f"Summary after turn {self.turns}."
        self.turns += 1
        if self.turns <= 8:
            return [ToolCall(f"call_{self.turns}", "report", {"name": f"r{self.turns}"})]
        if self.turns == 9:
            first = MARK.findall(text)[0]
            return [ToolCall("read_1", "get_tool_result", {"ref": first, "grep": "row r1 38"})]
        return "done"


@pytest.mark.shows("002.automatic_summary")
@pytest.mark.shows("002.archive")
@pytest.mark.shows("002.summary_knobs")
@pytest.mark.parametrize("name", SUMMARISED)
def test_long_requests_go_out_with_a_summary(name: str, environment: Callable[[str], Environment]) -> None:
    way = WAYS[name]
    with way.server(_Model().decide) as server:
        done = environment(way.environment).run(
            PROGRAM,
            server.base_url,
            f"tests.contract.agents.{way.agent}",
            way.function,
            way.setting,
            env={**QUIET, **VARIABLES},
            check=True,
        )
    report = json.loads(done.stdout.splitlines()[-1])
    assert (report["said"], report["ran"]) == ("done", [f"r{number}" for number in range(1, 9)])
    assert (report["errors"], report["messages"]) == ({}, [])

    texts = [json.dumps(request, ensure_ascii=False, separators=(",", ":")) for request in server.requests]
    asked = [at for at, text in enumerate(texts) if "Summarise this transcript" in text]
    # By characters the fifth request and the eighth of the agent are too long. Where the provider reports the usage of
    # a request, it counts the JSON around the texts, too.
    assert (asked[0], 2 <= len(asked) <= 3) == (4, True)
    agents = [text for at, text in enumerate(texts) if at not in asked]
    # Nearly all of a request are texts; on the wire each line ends with two characters.
    sizes = [len(text.replace("\\n", "\n")) for text in texts]
    assert max(sizes) <= ABOVE * 4
    assert all(sizes[at + 1] <= TARGET * 4 for at in asked)
    assert ["Summary after turn" in text for text in agents] == [False] * 4 + [True] * 6
    turns = [at - earlier for earlier, at in enumerate(asked)]  # the requests of the agent before each summary
    for number, text in enumerate(agents[4:], 4):
        latest = max(turn for turn in turns if turn <= number)
        assert [turn for turn in turns if f"Summary after turn {turn}." in text] == [latest]
    assert all("SUMMARIZED executionId:'" in text for text in agents[4:])
    assert READ in agents[-1].replace("\\", "")

    names = ("gen_ai.agent.name", "gen_ai.workflow.name")
    sums = {
        (each["name"], *(value for label, value in each["attributes"].items() if label not in names)): each["sum"]
        for each in report["metrics"]
    }
    assert sums["agent_otel.context.summaries", "made"] == len(asked)
    assert not any(total for (metric, *_), total in sums.items() if ".history." in metric)
