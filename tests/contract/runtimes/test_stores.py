"""Stores that keep every payload of a thread: the bytes that LangGraph writes into SQLite, and the warning."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

_PROGRAM = """
import json, logging, operator, sqlite3, sys
from typing import Annotated, TypedDict
import prometheus_client
logging.basicConfig()
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import StateGraph
from agent_otel._internal import errors

class State(TypedDict):
    rows: Annotated[list[str], operator.add]

connection = sqlite3.connect(sys.argv[1], check_same_thread=False)
graph = StateGraph(State)
graph.add_node("work", lambda state: {"rows": ["x" * 10_000]})
graph.set_entry_point("work")
agent = graph.compile(checkpointer=SqliteSaver(connection), name="clerk")
for turn in range(6):
    agent.invoke({"rows": []}, {"configurable": {"thread_id": "t"}})
counts = {}
for family in prometheus_client.REGISTRY.collect():
    for sample in family.samples:
        if sample.name.startswith("agent_otel_workflow_store") and not sample.name.endswith("_created"):
            assert sample.labels == {
                "workflow_runtime": "langgraph", "gen_ai_agent_name": "clerk", "gen_ai_workflow_name": "clerk"
            }, sample.labels
            counts[sample.name] = counts.get(sample.name, 0) + sample.value
(kept,) = connection.execute("SELECT sum(length(checkpoint)) FROM checkpoints").fetchone()
(writes,) = connection.execute("SELECT sum(length(value)) FROM writes").fetchone()
assert errors.errors == {}, errors.errors
print(json.dumps([kept + writes, counts]))
"""


@pytest.mark.parametrize("limit", ["50MiB", "200KiB"])
def test_a_thread_s_bytes_are_those_of_its_store(
    environment: Callable[[str], Environment], tmp_path: Path, limit: str
) -> None:
    done = environment("langchain-sqlite").run(
        _PROGRAM,
        str(tmp_path / "checkpoints.sqlite"),
        env={"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus", "AGENT_OTEL_STORE_WARN_BYTES": limit},
        check=True,
    )
    in_database, counts = json.loads(done.stdout.splitlines()[-1])
    written, new = (counts[f"agent_otel_workflow_store_{name}_bytes_total"] for name in ("written", "new"))
    assert in_database == written
    assert 60_000 <= new <= 62_000  # six rows of 10,000 bytes, and the ids of the last state
    is_large = limit == "200KiB"
    assert (1 if is_large else 0) == counts.get("agent_otel_workflow_store_large_total", 0)
    assert is_large == ("A thread of clerk has written" in done.stderr)
    assert written > 6 * new
