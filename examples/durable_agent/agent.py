"""What the agent does in each turn, whichever durable runtime carries its state.

The state keeps two copies of every tool result: what the model is to see, cut, and the whole of it for a user
interface that shows what tools returned. Nothing here knows that the agent can be watched.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from openai import OpenAI

from examples.durable_agent.ending import Job
from examples.repository_agent.tools import Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from examples.durable_agent.ending import Ending

Json = dict[str, Any]

PROMPT = "You explain how a codebase is wired. Search before you answer."
VIEW_BYTES = 32 * 1024
"""As much of a tool result as the model is shown."""


class State(TypedDict):
    """What goes from turn to turn."""

    messages: list[Json]
    """The conversation as the model is sent it."""
    accumulatedToolCalls: list[Json]
    """Every call with its whole result."""


def begin(question: str) -> State:
    """Return the state before the first turn."""
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": question}]
    return {"messages": messages, "accumulatedToolCalls": []}


def remember(state: State, message: Json, results: Iterable[Json]) -> State:
    """Return the state after a turn: grown by the model's message and by both copies of each result."""
    results = list(results)
    return {
        "messages": [*state["messages"], message, *map(view, results)],
        "accumulatedToolCalls": [*state["accumulatedToolCalls"], *results],
    }


def view(result: Json) -> Json:
    """Return the message in which the model sees a result: no more than 32 KiB of it, with a marker."""
    text = result["result"]
    whole = text.encode()
    if len(whole) > VIEW_BYTES:
        text = whole[:VIEW_BYTES].decode(errors="ignore") + f"\n... [{len(whole) - VIEW_BYTES} bytes truncated] ..."
    return {"role": "tool", "tool_call_id": result["id"], "content": text}


class Agent:
    """A model and tools over one repository; OPENAI_BASE_URL and OPENAI_API_KEY say where the model is."""

    def __init__(self, repository: Repository) -> None:
        functions = (repository.list_commits, repository.get_commit, repository.search_code)
        self._tools = {function.__name__: StructuredTool.from_function(function) for function in functions}
        self._schemas: list[Any] = [convert_to_openai_tool(tool) for tool in self._tools.values()]
        self._client = OpenAI()

    def ask_model(self, state: State) -> Json:
        """Send the model the conversation; its message, which may ask for tools."""
        messages: list[Any] = state["messages"]
        answer = self._client.chat.completions.create(model="scripted", messages=messages, tools=self._schemas)
        return answer.choices[0].message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True)

    def run_tool(self, call: Json) -> Json:
        """Run one of the tools that the model asked for; the record of the call, with the whole result."""
        name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
        answer = self._tools[name].invoke({"type": "tool_call", "id": call["id"], "name": name, "args": arguments})
        return {"id": call["id"], "name": name, "args": arguments, "result": answer.content}


def main(run: Callable[[Agent, Job], Ending]) -> None:
    """Run the agent once, print its ending as a line of JSON, and stay until standard input ends, as workers do."""
    parser = argparse.ArgumentParser(description="Ask an agent about a git repository.")
    parser.add_argument("--repository", type=Path, required=True)
    parser.add_argument("--question", required=True)
    parser.add_argument("--patience", type=float, required=True, help="seconds")
    parser.add_argument("--folder", type=Path, required=True, help="for what the runtime keeps of the run")
    given = parser.parse_args()
    ending = run(Agent(Repository.at(given.repository)), Job(given.question, given.patience, given.folder))
    print(json.dumps(asdict(ending)), flush=True)
    sys.stdin.read()
