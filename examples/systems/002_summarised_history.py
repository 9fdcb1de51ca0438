"""A long run of one agent: 30 searches, and an answer that needs the first result again.

A LangGraph agent searches in each turn; every tenth result is long. Without a remedy each request carries all results.
With ``AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS=12000`` no request is longer: the agent's own model summarises the old turns,
and the first result is read from the archive by the id of its call. With ``AGENT_OTEL_MAX_TOOL_CALLS=15`` the model has
to answer after 15 calls. Prints a table of the requests that a scripted server received:
``python examples/systems/002_summarised_history.py``.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_otel.testing.servers.openai import Json, OpenAIServer, Reply, ToolCall

CALLS = 30
ABOVE = 12_000
SUMMARISING = {"AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS": str(ABOVE)}
LIMITED = {"AGENT_OTEL_MAX_TOOL_CALLS": "15"}
QUESTION = "Compare the findings of the first and the last search."
SUMMARISE = "Summarise this transcript"
READ = "get_tool_result"


def result_of(number: int) -> str:
    """Return the result of a search: 1,000 tokens, and 4,000 of every tenth."""
    sentence = f"Source {number} reports the finding {number * 7919}. "
    characters = 16_000 if number % 10 == 0 else 4_000
    return (sentence * (characters // len(sentence) + 1))[:characters]


class Run(NamedTuple):
    """The requests that the model received, in their order, and its answer."""

    requests: list[Json]
    answer: str

    @property
    def summaries(self) -> list[Json]:
        """The requests for a summary."""
        return [request for request in self.requests if SUMMARISE in json.dumps(request["messages"][-1])]

    @property
    def of_agent(self) -> list[Json]:
        """The other requests."""
        return [request for request in self.requests if request not in self.summaries]


def tokens(request: Json) -> int:
    """Return the estimated tokens of a request: characters ÷ 4."""
    return len(json.dumps(request, separators=(",", ":"))) // 4


def search_and_answer(base_url: str) -> None:
    """Let the agent answer the question."""
    from langchain.agents import create_agent  # noqa: PLC0415 - only the child has it
    from langchain_core.tools import tool  # noqa: PLC0415
    from langchain_openai import ChatOpenAI  # noqa: PLC0415

    @tool
    def search(number: int) -> str:
        """Search a source."""
        return result_of(number)

    model = ChatOpenAI(model="scripted", base_url=base_url, api_key="scripted")
    agent = create_agent(model, tools=[search], system_prompt="You compare sources.")
    done = agent.invoke({"messages": [{"role": "user", "content": QUESTION}]}, {"recursion_limit": 200})
    print(done["messages"][-1].content)


class _Model:
    """Searches 30 times; reads the first result again where it has left the transcript; answers."""

    def __init__(self) -> None:
        self._searches = 0
        self._summaries = 0

    def decide(self, request: Json) -> Reply:
        text = json.dumps(request["messages"])
        if "tools" not in request:
            self._summaries += 1
            return f"Summary {self._summaries}: the agent compares the findings of {CALLS} sources, one a search."
        if self._searches < CALLS and request.get("tool_choice") != "none":
            self._searches += 1
            return [ToolCall(_id(self._searches), "search", {"number": self._searches})]
        if _finding(1) in text:
            return f"The first source reports {_finding(1)}, the last one {_finding(self._searches)}."
        return [ToolCall("call_of_the_archive", READ, {"ref": _id(1), "grep": "Source"})]


def _id(number: int) -> str:
    return f"call_{number:024}"


def _finding(number: int) -> str:
    return f"the finding {number * 7919}"


def measured(**variables: str) -> Run:
    """Run the agent in a process of its own."""
    with OpenAIServer(_Model().decide) as server:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_OTEL")}
        environ |= {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "off", **variables}
        command = (sys.executable, __file__, server.base_url)
        done = subprocess.run(command, env=environ, check=True, capture_output=True, text=True)
    return Run(server.requests, done.stdout.splitlines()[-1])


def runs() -> dict[str, Run]:
    """Return the runs with and without the variables."""
    found = {"every message": measured()}
    for name, value in (SUMMARISING | LIMITED).items():
        found[f"`{name}={value}`"] = measured(**{name: value})
    return found


def table(found: dict[str, Run]) -> str:
    """Return the table of runs."""
    rows = [
        "| | requests | tokens of the largest | of the last | of all | of them for summaries |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, run in found.items():
        sizes, of_summaries = [tokens(request) for request in run.requests], sum(map(tokens, run.summaries))
        largest, last = max(map(tokens, run.of_agent)), tokens(run.of_agent[-1])
        rows.append(f"| {name} | {len(sizes)} | {largest:,} | {last:,} | {sum(sizes):,} | {of_summaries:,} |")
    return "\n".join(rows)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        search_and_answer(*sys.argv[1:])
    else:
        print(table(runs()))
