"""The agent as a graph of LangGraph, whose checkpoints SQLite keeps."""

from __future__ import annotations

import contextlib
import operator
import sqlite3
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TypedDict
from uuid import uuid4

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from examples.durable_agent.agent import Agent, Json, begin, main, view
from examples.durable_agent.ending import Ending, Job

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph

LIMIT_BYTES = 2 * 1024 * 1024
"""The longest value that this database takes. SQLite's own default is a thousand million."""

# A thread that has failed is resumed from its last checkpoint, so many times.
RESUMPTIONS = 2
MOST_STEPS = 1000
_SQLITE_LIMIT_LENGTH = 0


class State(TypedDict):
    """The agent's state; what a node returns is added to it."""

    messages: Annotated[list[Json], operator.add]
    accumulatedToolCalls: Annotated[list[Json], operator.add]


class Call(TypedDict):
    """A call that the model asked for; each goes to a node's task of its own."""

    id: str
    type: str
    function: Json


def build(agent: Agent, saver: SqliteSaver) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return the graph: the model, then its tools beside each other, until the model answers."""

    def call_model(state: State) -> Json:
        return {"messages": [agent.ask_model({**state})]}

    def run_tool(state: Call) -> Json:
        result = agent.run_tool({**state})
        return {"messages": [view(result)], "accumulatedToolCalls": [result]}

    def asked(state: State) -> Any:
        return [Send("run_tool", call) for call in state["messages"][-1].get("tool_calls") or ()] or END

    graph = StateGraph(State)
    graph.add_node("call_model", call_model)
    graph.add_node("run_tool", run_tool)
    graph.add_edge(START, "call_model")
    graph.add_conditional_edges("call_model", asked, ["run_tool", END])
    graph.add_edge("run_tool", "call_model")
    return graph.compile(checkpointer=saver, name="DurableAgent")


def run(agent: Agent, job: Job) -> Ending:
    """Run one thread, and resume it when it fails."""
    thread, file = uuid4().hex, job.folder / "checkpoints"
    config: RunnableConfig = {"configurable": {"thread_id": thread}, "recursion_limit": MOST_STEPS}
    with _database(file) as connection:
        graph = build(agent, SqliteSaver(connection))
        ending = _attempt(graph, begin(job.question), config)
        for _ in range(RESUMPTIONS):
            if ending.answer is not None:
                break
            ending = _attempt(graph, None, config)
    return replace(ending, run=thread, kept_bytes=file.stat().st_size)


@contextlib.contextmanager
def _database(file: Path) -> Iterator[Any]:
    """Open a database whose values are limited."""
    connection: Any = sqlite3.connect(file, check_same_thread=False)
    with contextlib.closing(connection):
        if not hasattr(connection, "setlimit"):
            sys.exit("needs Python 3.11: before, sqlite3 cannot limit a connection")
        connection.setlimit(_SQLITE_LIMIT_LENGTH, LIMIT_BYTES)
        yield connection


def _attempt(graph: CompiledStateGraph[Any, Any, Any, Any], given: Any, config: RunnableConfig) -> Ending:
    try:
        # No step begins before the one before it is saved.
        ended = graph.invoke(given, config, durability="sync")
    except sqlite3.DataError as error:
        return Ending(seen="the same error, each time that the thread is resumed", said=f"sqlite3.DataError: {error}")
    return Ending(answer=ended["messages"][-1]["content"])


if __name__ == "__main__":
    main(run)
