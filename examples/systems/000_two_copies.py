"""A durable agent with two copies of each result: three calls of 200 KB a turn, and a database that takes 2 MiB.

A LangGraph agent asks for pull requests, commits and code in each turn. Its middleware cuts each result to 32 KiB for
the model, and keeps the whole in ``accumulatedToolCalls``, which only a user interface reads. SQLite keeps the state.
Without the variable SQLite refuses the state before turn 4; with ``AGENT_OTEL_CLAIM_CHECK`` the agent answers. Prints a
table of what SQLite stored and of the requests that a scripted server received:
``python examples/systems/000_two_copies.py``.
"""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_otel.testing.servers.openai import Json, OpenAIServer, Reply, ToolCall

TURNS = 10
TOOLS = ("list_pull_requests", "get_commit", "search_code")
RESULT_BYTES = 200_000
VIEW_CHARACTERS = 32 * 1024
CAP_BYTES = 2 * 1024 * 1024
VARIABLE = "AGENT_OTEL_CLAIM_CHECK"
_SQLITE_LIMIT_LENGTH = 0


class Run(NamedTuple):
    """The bytes of the state and of the request by turn, and the end: an answer or an error."""

    states: list[int]
    requests: list[int]
    end: str


def result(tool: str, page: int) -> str:
    """Return 200,000 bytes: rows of JSON."""
    row = json.dumps({"tool": tool, "page": page, "title": "A pull request", "body": "x" * 880, "merged": True})
    rows = ",".join([row] * (RESULT_BYTES // (len(row) + 1)))
    return f"[{rows}{' ' * (RESULT_BYTES - len(rows) - 2)}]"


def research() -> Json:
    """Run the agent; return the states' bytes and the end."""
    import operator  # noqa: PLC0415 - only the child needs these
    import sqlite3  # noqa: PLC0415
    from contextlib import closing  # noqa: PLC0415

    from langchain.agents import AgentState, create_agent  # noqa: PLC0415
    from langchain.agents.middleware import wrap_tool_call  # noqa: PLC0415
    from langchain_core.tools import StructuredTool  # noqa: PLC0415
    from langchain_openai import ChatOpenAI  # noqa: PLC0415
    from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415
    from langgraph.types import Command  # noqa: PLC0415

    fields = {"accumulatedToolCalls": Annotated[list[Any], operator.add]}
    state_type: Any = type("State", (AgentState,), {"__annotations__": fields})

    def tool(name: str) -> Any:
        def call(page: int) -> str:
            return result(name, page)

        return StructuredTool.from_function(call, name=name, description="Read from the host of the code.")

    @wrap_tool_call
    def remember(request: Any, call: Any) -> Any:
        message = call(request)
        record = {"id": message.tool_call_id, "name": message.name, "result": message.text}
        if len(message.text) > VIEW_CHARACTERS:
            message = message.model_copy(update={"content": f"{message.text[:VIEW_CHARACTERS]}\n[truncated]"})
        return Command(update={"messages": [message], "accumulatedToolCalls": [record]})

    connection: Any = sqlite3.connect(":memory:", check_same_thread=False)
    with closing(connection):
        connection.setlimit(_SQLITE_LIMIT_LENGTH, CAP_BYTES)
        agent = create_agent(
            ChatOpenAI(model="scripted"),
            [tool(name) for name in TOOLS],
            middleware=[remember],
            state_schema=state_type,
            checkpointer=SqliteSaver(connection),
        )
        given = {"messages": [{"role": "user", "content": "What changed?"}], "accumulatedToolCalls": []}
        config = {"configurable": {"thread_id": "1"}, "recursion_limit": 100}
        states, end = [], ""
        try:
            for step in agent.stream(given, config, stream_mode="updates", durability="sync"):
                if "model" in step:
                    states.append(connection.execute("SELECT max(length(checkpoint)) FROM checkpoints").fetchone()[0])
                    end = step["model"]["messages"][-1].text
        except sqlite3.DataError as error:
            end = f"{type(error).__name__}: {error}"
    return {"states": states, "end": end}


def measured(**variables: str) -> Run:
    """Run the agent in a process of its own."""

    def decide(request: Json) -> Reply:
        turn = sum(message["role"] == "assistant" for message in request["messages"])
        if turn == TURNS:
            return "The agent has read it all."
        return [ToolCall(f"call_{turn}_{name}", name, {"page": turn}) for name in TOOLS]

    with OpenAIServer(decide) as server:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_OTEL")}
        environ |= {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "off", **server.environment, **variables}
        done = subprocess.run(
            (sys.executable, __file__, "run"), env=environ, check=True, capture_output=True, text=True
        )
        found = json.loads(done.stdout.splitlines()[-1])
        return Run(found["states"], [len(json.dumps(request)) for request in server.requests], found["end"])


def table() -> str:
    """Return the table of both runs."""
    before, after = measured(), measured(**{VARIABLE: "memory:"})
    rows = ["| turn | state | request | state, with the variable | request |", "| ---: | ---: | ---: | ---: | ---: |"]
    for turn in range(len(after.requests)):
        cells = [f"{size:,}" for run in (before, after) for size in _of(run, turn)]
        cells = (
            cells if turn < len(before.requests) else ["refused" if turn == len(before.requests) else "", "", *cells]
        )
        rows.append(f"| {turn + 1} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _of(run: Run, turn: int) -> tuple[int, ...]:
    return (run.states[turn], run.requests[turn]) if turn < len(run.requests) else ()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(research()))
    else:
        print(table())
