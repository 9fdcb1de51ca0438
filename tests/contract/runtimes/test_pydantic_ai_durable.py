"""Agents of Pydantic AI that a durable runtime carries: DBOS, on SQLite."""

from __future__ import annotations

import base64
import json
import pickle
from typing import TYPE_CHECKING, Any

from agent_otel.testing.servers.openai import OpenAIServer, ToolCall, call_once

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.environments import Environment

LETTERS = 50_000
_PROGRAM = """
import asyncio, contextlib, json, sqlite3, sys, tempfile
sys.path.insert(0, {root!r})
from tests.contract.child import Telemetry
from tests.contract.runtimes.child import settle
telemetry, case = Telemetry(), {{}}
from dbos import DBOS
from pydantic_ai import Agent
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url={base_url!r}, api_key="scripted"))
agent = Agent(model, name="clerk", capabilities=[DBOSDurability()])

@agent.tool_plain
@DBOS.step()
async def search(n: int) -> str:
    "Find so many letters."
    return "x" * n

@DBOS.workflow()
async def talk(question: str) -> str:
    return (await agent.run(question)).output

file = tempfile.mkdtemp() + "/system.sqlite"
DBOS(config={{"name": "agents", "system_database_url": "sqlite:///" + file, "run_admin_server": False}})
DBOS.launch()
said = asyncio.run(talk("go"))
settle(telemetry, case)
DBOS.destroy()
with contextlib.closing(sqlite3.connect(file)) as connection:
    query = "SELECT function_name, length(output) FROM operation_outputs ORDER BY function_id"
    steps = connection.execute(query).fetchall()
from agent_otel._internal import errors
print(json.dumps([said, steps, case, dict(errors.errors)]))
"""


def test_dbos_carries_an_agent_and_each_number_is_right_once(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest
) -> None:
    with OpenAIServer(call_once((ToolCall("call_1", "search", {"n": LETTERS}),))) as server:
        code = _PROGRAM.format(root=str(request.config.rootpath), base_url=server.base_url)
        child = environment("pydantic-ai-dbos").run(code, env={"AGENT_OTEL": "1"}, timeout=240, check=True)
        sent = len(server.requests)
    said, steps, case, errors = json.loads(child.stdout.splitlines()[-1])
    calls = [span["attributes"] for span in case["spans"] if span["attributes"].get("tool.name") == "search"]

    assert ("done", 2, {}) == (said, sent, errors)
    assert [LETTERS] == [call["tool.result.bytes"] for call in calls]
    assert {2} == {metric["count"] for metric in case["metrics"] if metric["name"] == "agent_otel.model.request.size"}
    # The tool runs in the workflow's own code and the request that delivers its result in a step: one execution.
    assert LETTERS == _sum(case["metrics"], "agent_otel.tool.result.delivered")
    assert 0 == _sum(case["metrics"], "agent_otel.tool.results.unmatched")
    # Both requests to the model and the tool are steps.
    assert ["clerk__model.request", "search", "clerk__model.request"] == [name for name, _ in steps]
    answer = len(base64.b64encode(pickle.dumps("done")))
    payloads = "agent_otel.workflow.payload.size"
    assert sum(size for _, size in steps) + answer == _sum(case["metrics"], payloads, direction="output")


def _sum(metrics: list[dict[str, Any]], name: str, **attributes: str) -> float:
    return float(
        sum(
            metric["sum"]
            for metric in metrics
            if metric["name"] == name and attributes.items() <= metric["attributes"].items()
        )
    )
