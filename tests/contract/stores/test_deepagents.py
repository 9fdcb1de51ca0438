"""The files that deepagents keeps in its state: each run's checkpoints carry them, through LangGraph's saver."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_otel.testing.servers.openai import OpenAIServer, ToolCall, call_once

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.environments import Environment

LETTERS = 200_000  # deepagents puts a result above 20,000 tokens into a file
_PROGRAM = """
import json, sys
sys.path.insert(0, {root!r})
from tests.contract.child import Telemetry
from tests.contract.runtimes.child import settle
telemetry, case = Telemetry(), {{}}
from deepagents import create_deep_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

def big(n: int) -> str:
    "Return so many letters."
    return "x" * n

saver = InMemorySaver()
model = ChatOpenAI(model="scripted", base_url={base_url!r}, api_key="scripted", max_retries=0)
agent = create_deep_agent(model, [big], checkpointer=saver)
config = {{"configurable": {{"thread_id": "thread-1"}}}}
state = agent.invoke({{"messages": [("user", "go")]}}, config, durability="sync")
settle(telemetry, case)

from agent_otel._internal import errors
files = [len("".join(file["content"])) for file in state["files"].values()]
checkpoints = [row for rows in saver.storage["thread-1"].values() for row in rows.values()]
held = sum(len(value) for _, value in saver.blobs.values())
held += sum(len(value) for row in checkpoints for _, value in row[:2])
written = sum(len(row[2][1]) for rows in saver.writes.values() for row in rows.values())
print(json.dumps([files, held, written, case, dict(errors.errors)]))
"""


def test_files_are_carried_as_what_the_saver_stores(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest
) -> None:
    with OpenAIServer(call_once((ToolCall("call_1", "big", {"n": LETTERS}),))) as server:
        code = _PROGRAM.format(root=str(request.config.rootpath), base_url=server.base_url)
        env = {"AGENT_OTEL": "1", "AGENT_OTEL_CAPS": f"langgraph.payload={LETTERS}", "LANGSMITH_TRACING": "false"}
        child = environment("deepagents").run(code, env=env, timeout=240, check=True)
    files, held, written, case, errors = json.loads(child.stdout.splitlines()[-1])

    assert ({}, [LETTERS]) == (errors, files)
    assert held == _sum(case["metrics"], "state")
    assert written == _sum(case["metrics"], "output") > LETTERS
    spans = [span["attributes"] for span in case["spans"]]
    over = [each["workflow.payload.largest_path"] for each in spans if each.get("workflow.payload.bytes", 0) > LETTERS]
    assert ["files.*.content"] == over


def _sum(metrics: list[dict[str, Any]], direction: str) -> float:
    return float(
        sum(
            metric["sum"]
            for metric in metrics
            if metric["name"] == "agent_otel.workflow.payload.size" and metric["attributes"]["direction"] == direction
        )
    )
