"""Stores that keep every payload of a thread: the bytes written, those that are new, what is equal, and the warning."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

_LANGGRAPH = """
import operator
from typing import Annotated, TypedDict
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import StateGraph

class State(TypedDict):
    rows: Annotated[list[str], operator.add]
    documents: list[dict[str, str]]

connection = sqlite3.connect(file, check_same_thread=False)
graph = StateGraph(State)
graph.add_node("work", lambda state: {"rows": ["x" * 10_000]})
graph.set_entry_point("work")
agent = graph.compile(checkpointer=SqliteSaver(connection), name="clerk")
for turn in range(6):
    given = {"rows": []} if turn else {"rows": [], "documents": [{"text": "é" * 5_000, "title": n} for n in "ab"]}
    agent.invoke(given, {"configurable": {"thread_id": "t"}})
queries = ["SELECT sum(length(checkpoint)) FROM checkpoints", "SELECT sum(length(value)) FROM writes"]
"""
_SESSIONS = """
sys.path.insert(0, {root!r})
from tests.contract.stores.programs.{program} import running
with running({{}}) as run:
    said = run({case!r}, {{"letters": [20_000] * 5}})
beside, queries = said["sizes"][-1], []
"""
_DBOS = """
from dbos import DBOS

@DBOS.step()
def work(n):
    return "x" * n

@DBOS.workflow()
def clerk(n):
    return [len(work(n)) for _ in range(4)]

DBOS(config={"name": "clerk-app", "system_database_url": f"sqlite:///{file}", "run_admin_server": False})
DBOS.launch()
clerk(30_000)
DBOS.destroy()
queries = [
    "SELECT sum(length(output)) FROM operation_outputs",
    "SELECT sum(length(inputs)) FROM workflow_input",
    "SELECT sum(length(output)) FROM workflow_output",
]
"""
_PREFECT = """
os.environ.update(
    PREFECT_HOME=file, PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS="150", PREFECT_SERVER_ANALYTICS_ENABLED="false"
)
from pathlib import Path
from prefect import flow, task

@task(persist_result=True)
def work(n, at):
    return "x" * n

@task(persist_result=False)
def work_unstored(n):
    return "x" * n

@flow(persist_result=True)
def clerk(n):
    return [len(work(n, at)) for at in range(4)] + [len(work_unstored(n))]

clerk(30_000)
beside = sum(each.stat().st_size for each in Path(file, "storage").iterdir()) + len('{"n":30000}')
queries = []
"""
_PROGRAM = """
import json, logging, os, sqlite3, sys
import prometheus_client
logging.basicConfig()
from agent_otel._internal import errors
file, beside = sys.argv[1], 0
{}
counts = {{}}
for family in prometheus_client.REGISTRY.collect():
    for sample in family.samples:
        if sample.name.startswith("agent_otel_workflow_store") and not sample.name.endswith("_created"):
            runtime = sample.labels.pop("workflow_runtime")
            assert set(sample.labels.values()) == {{"clerk"}}, sample.labels
            counts[sample.name] = counts.get(sample.name, 0) + sample.value
for query in queries:
    beside += sqlite3.connect(file).execute(query).fetchone()[0]
assert errors.errors == {{}}, errors.errors
print(json.dumps([runtime, beside, counts]))
"""
_EQUAL = "the last state has 20,004 bytes of documents[].text from the state before it"  # two texts with their quotes
_RUNS = "more runs"
#: Runtime, environment, program, its parameters, new bytes (None where all are new), and words of the warning.
_ROWS: tuple[tuple[str, str, str, dict[str, str], int | None, str], ...] = (
    ("langgraph", "langchain-sqlite", _LANGGRAPH, {}, 6 * 10_000 + 2 * 10_000, _EQUAL),
    ("agno", "agno-sessions", _SESSIONS, {"program": "agno", "case": "sync"}, None, _RUNS),
    ("agno", "agno-sessions", _SESSIONS, {"program": "agno", "case": "async"}, None, _RUNS),
    ("google-adk", "google-adk-sessions", _SESSIONS, {"program": "google_adk", "case": "events"}, None, _RUNS),
    ("google-adk", "google-adk-sessions", _SESSIONS, {"program": "google_adk", "case": "sqlite"}, None, _RUNS),
    ("dbos", "dbos", _DBOS, {}, None, ""),
    ("prefect", "prefect", _PREFECT, {}, None, ""),
)


@pytest.mark.parametrize("row", _ROWS, ids=[f"{row[0]}-{'-'.join(row[3].values())}" for row in _ROWS])
@pytest.mark.timeout(240)
def test_a_thread_s_bytes_are_those_of_its_store(
    environment: Callable[[str], Environment],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    row: tuple[str, str, str, dict[str, str], int | None, str],
) -> None:
    runtime, name, program, parameters, new, said = row
    if parameters:
        program = program.format(root=str(request.config.rootpath), **parameters)
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus", "AGENT_OTEL_STORE_WARN_BYTES": "100KiB"}
    done = environment(name).run(_PROGRAM.format(program), str(tmp_path / "store"), env=env, check=True, timeout=220)
    found, written, counts = json.loads(done.stdout.splitlines()[-1])

    assert runtime == found
    assert written == counts["agent_otel_workflow_store_written_bytes_total"]
    least = written if new is None else new
    # LangGraph's last state has ids, too.
    assert least <= counts["agent_otel_workflow_store_new_bytes_total"] <= least + (0 if new is None else 1_000)
    assert counts["agent_otel_workflow_store_large_total"] == 1
    warnings = [line for line in done.stderr.splitlines() if "A thread of clerk has written" in line]
    assert len(warnings) == 1
    assert said in warnings[0]
