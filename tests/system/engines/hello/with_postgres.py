"""A graph of one node with a checkpointer: ``with_postgres.py <dsn>``; prints its state, and the rows that keep it."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-any-return,unused-ignore"
# The framework is not installed where types are checked.

import json
import sys
from typing import Any

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import START, MessagesState, StateGraph


def greet(state: MessagesState) -> dict[str, Any]:
    """Greet."""
    return {"messages": [("ai", f"Hello, {state['messages'][-1].content}!")]}


def main(dsn: str) -> None:
    """Greet, in a thread that is kept."""
    builder = StateGraph(MessagesState).add_node(greet).add_edge(START, "greet")
    with PostgresSaver.from_conn_string(dsn) as saver:
        saver.setup()
        graph = builder.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "1"}}
        graph.invoke({"messages": [("user", "World")]}, config)
        messages = [message.content for message in graph.get_state(config).values["messages"]]
    with psycopg.connect(dsn) as connection:
        rows = connection.execute("SELECT count(*) FROM checkpoints WHERE thread_id = '1'").fetchone()
    print(json.dumps([messages, *rows]))


if __name__ == "__main__":
    main(sys.argv[1])
