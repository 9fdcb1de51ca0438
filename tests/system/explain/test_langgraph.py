"""``agent-otel explain`` on SQLite files that LangGraph itself has written, in old and new versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.system.engines import postgres, starting
from tests.unit.cli.running import run
from tests.unit.cli.test_explain import explained, rooms, savings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

WRITER = """
import sqlite3
import sys
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import StateGraph, add_messages

class State(TypedDict):
    messages: Annotated[list[Any], add_messages]
    table: str

def work(state):
    turn = len(state["messages"])
    call = {"name": "search_orders", "args": {"page": turn}, "id": f"call_{turn}"}
    text = "".join(f"row {number:05d} of page {turn:02d} of orders" + chr(10) for number in range(2_000))
    return {
        "messages": [AIMessage("", tool_calls=[call]), ToolMessage(text, tool_call_id=call["id"], name=call["name"])],
        "table": "for the user interface alone. " * 1_000,
    }

connection = sqlite3.connect(sys.argv[1], check_same_thread=False)
graph = StateGraph(State)
graph.add_node("work", work)
graph.set_entry_point("work")
agent = graph.compile(checkpointer=SqliteSaver(connection))
for thread, turns in (("small", 1), ("large", 5)):
    for turn in range(turns):
        given = {"messages": [HumanMessage("Which orders?")]} if turn == 0 else {"messages": []}
        agent.invoke(given, {"configurable": {"thread_id": thread}})
connection.close()
"""


@pytest.mark.parametrize("name", ["langgraph-savers", "langgraph-savers-0.6", "langgraph-savers-oldest"])
def test_a_file_of_checkpoints(tmp_path: Path, environment: Callable[[str], Environment], name: str) -> None:
    path = tmp_path / "checkpoints.sqlite"
    program = tmp_path / "writer.py"
    program.write_text(WRITER)
    environment(name).run(
        f"import runpy, sys\nsys.argv[1:] = [{str(path)!r}]\nrunpy.run_path({str(program)!r})", check=True
    )
    found = explained(path)
    assert "LangGraph checkpoint" == found["kind"]
    assert found["notes"][0].startswith("Thread large, one of 2: the last of its ")
    assert 5 == len(found["turns"])
    assert {"search_orders"} == set(found["breakdown"]["tools"])
    # 2,000 rows of 31 bytes, of which JSON writes the last one as two.
    assert 5 * (2_000 * 32 + 2) == found["breakdown"]["tools"]["search_orders"]
    assert ["channel_values.table"] == [
        path for path, size in found["breakdown"]["unread"]["paths"].items() if size > 9_000
    ]
    # Steps are what SQLite stored, without JSON's escapes.
    assert 5 * 62_000 <= found["steps"][-1]["bytes"] <= 5 * 62_500 + 31_000
    assert {"langgraph (sqlite)"} == set(rooms(found))
    assert savings(found)["claim check"] >= 5 * 27_000
    assert 1 == len(explained(path, "--thread", "small")["turns"])
    ran = run("explain", path, "--thread", "none")
    assert (1, f"Error: {path} has no thread none\n") == (ran.code, ran.err)


#: The same program on PostgreSQL.
_POSTGRES = (
    WRITER.replace("import sqlite3\n", "from contextlib import ExitStack\n")
    .replace("checkpoint.sqlite import SqliteSaver", "checkpoint.postgres import PostgresSaver")
    .replace(
        "connection = sqlite3.connect(sys.argv[1], check_same_thread=False)",
        "connection = ExitStack()\n"
        "saver = connection.enter_context(PostgresSaver.from_conn_string(sys.argv[1]))\n"
        "saver.setup()",
    )
    .replace("SqliteSaver(connection)", "saver")
)


@pytest.mark.parametrize("name", ["langgraph-savers", "langgraph-savers-oldest"])
def test_a_database_of_checkpoints(tmp_path: Path, environment: Callable[[str], Environment], name: str) -> None:
    program = tmp_path / "writer.py"
    program.write_text(_POSTGRES)
    with starting.or_skip(postgres.server()) as database:
        environment(name).run(
            f"import runpy, sys\nsys.argv[1:] = [{database.dsn!r}]\nrunpy.run_path({str(program)!r})", check=True
        )
        found = explained(database.dsn)
        small = explained(database.dsn, "--thread", "small")
        ran = run("explain", database.dsn, "--thread", "none")
        with psycopg.connect(database.dsn) as connection:
            stored = "SELECT sum(length(blob)) FROM {} WHERE thread_id = 'large'"
            checkpoints = "SELECT sum(length(checkpoint::text)) FROM checkpoints WHERE thread_id = 'large'"
            statements = (stored.format("checkpoint_blobs"), stored.format("checkpoint_writes"), checkpoints)
            all_bytes = sum(size for statement in statements for (size,) in connection.execute(statement))
    assert "LangGraph checkpoint" == found["kind"]
    assert "postgresql://" == found["name"].partition("?")[0][:13]
    assert found["notes"][0].startswith("Thread large, one of 2: the last of its ")
    assert found["notes"][1].startswith(f"The store has {all_bytes:,} bytes of it, ")
    assert (5, 1) == (len(found["turns"]), len(small["turns"]))
    assert 5 * (2_000 * 32 + 2) == found["breakdown"]["tools"]["search_orders"]
    assert {"langgraph (postgres)"} == set(rooms(found))
    assert 1 == ran.code
    assert ran.err.endswith("has no thread none\n")


def test_a_password_is_not_shown() -> None:
    ran = run("explain", "postgresql://user:hidden@127.0.0.1:1/db?sslmode=disable")
    assert 1 == ran.code
    assert ran.err.startswith("Error: postgresql://127.0.0.1:1/db cannot be read: ")
    assert "hidden" not in ran.err
