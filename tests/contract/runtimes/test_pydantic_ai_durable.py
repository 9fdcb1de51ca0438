"""Agents of Pydantic AI that a durable runtime carries: DBOS on SQLite, Temporal and Prefect on their servers."""

from __future__ import annotations

import base64
import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import Json, OpenAIServer, ToolCall, call_once
from tests.contract.runtimes.test_prefect import TestPrefect as Prefect
from tests.system.engines import starting, temporal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.environments import Environment

#: What `tests.contract.test_drift` looks for.
integrations = {
    "pydantic-ai": [
        "pydantic_ai.durable_exec.temporal._toolset:FunctionToolset.call_tool",
        "pydantic_ai.mcp:MCPToolset.call_tool",
    ],
}
LETTERS = 50_000
FLAKY, FETCHED = 700, 300
_ON_DBOS = """
import asyncio, contextlib, json, sqlite3, sys, tempfile
sys.path.insert(0, {root!r})
from tests.contract.child import Telemetry
from tests.contract.runtimes.child import settle
telemetry, case = Telemetry(), {{}}
from dbos import DBOS
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url={base_url!r}, api_key="scripted"))
seen = []
async def watch(context, events):
    async for event in events:
        seen.append(type(event).__name__)

agent = Agent(model, name="clerk", capabilities=[DBOSDurability(event_stream_handler=watch if {streamed} else None)])

@agent.tool_plain
@DBOS.step()
async def search(n: int) -> str:
    "Find so many letters."
    return "x" * n

@agent.tool_plain
def ask_again(n: int) -> str:
    "Ask the model for another call."
    raise ModelRetry("r" * n)

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
print(json.dumps([said, steps, case, dict(errors.errors), seen]))
"""


def test_dbos_carries_an_agent_and_each_number_is_right_once(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest
) -> None:
    with OpenAIServer(call_once((ToolCall("call_1", "search", {"n": LETTERS}),))) as server:
        code = _ON_DBOS.format(root=str(request.config.rootpath), base_url=server.base_url, streamed=False)
        child = environment("pydantic-ai-dbos").run(code, env={"AGENT_OTEL": "1"}, timeout=240, check=True)
        sent = len(server.requests)
    said, steps, case, errors, _ = json.loads(child.stdout.splitlines()[-1])
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


def test_temporal_carries_an_agent_and_each_number_is_right_once(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest
) -> None:
    """Tools run in activities, also those of an MCP server; the workflow is replayed at each of its tasks."""
    asked = (
        ToolCall("call_1", "search", {"n": LETTERS}),
        ToolCall("call_2", "flaky", {"n": FLAKY}),
        ToolCall("call_3", "fetch", {"n": FETCHED}),
    )
    made = environment("pydantic-ai-temporal")
    with OpenAIServer(call_once(asked)) as model, starting.or_skip(temporal.server()) as server:
        child = made.run(
            "from tests.contract.runtimes.programs.pydantic_ai_temporal import main; main()",
            server.address,
            env={"AGENT_OTEL": "1", "MODEL_URL": model.base_url},
            cwd=request.config.rootpath,
            timeout=240,
            check=True,
        )
        sent, wire = len(model.requests), model.tool_results()
    said, sizes, case, matched, errors, _ = json.loads(child.stdout.splitlines()[-1])

    assert ("done", 2, {}) == (said, sent, errors)
    assert set(integrations["pydantic-ai"]) <= set(matched["pydantic-ai"])
    assert {"call_1": LETTERS, "call_2": FLAKY, "call_3": FETCHED} == {key: len(text) for key, text in wire.items()}
    calls = [span for span in case["spans"] if "tool.args_hash" in span["attributes"]]
    assert _CALLS == sorted((_call(span) for span in calls), key=str)
    assert {"execute_activity"} == {span["parent"].partition(" ")[0] for span in calls}
    assert {"clerk"} == {span["attributes"]["agent_otel.sub_agent"] for span in calls}
    assert 1 == len({span["attributes"]["gen_ai.conversation.id"] for span in calls})
    steps = [span["attributes"] for span in case["spans"] if span["name"].startswith("execute_activity ")]
    # The server has the tools' list, two requests to the model, and the calls: one of them at its second attempt.
    assert 7 == len(steps)
    assert [2] == [step["workflow.activity.attempt"] for step in steps if "workflow.activity.attempt" in step]
    assert 1 == len(
        {span["attributes"]["workflow.execution.id"] for span in case["spans"] if span in calls}
        | {step["workflow.execution.id"] for step in steps}
    )
    _assert_delivered(case, LETTERS + FLAKY + FETCHED)
    for direction, size in (("input", sizes["input"]), ("output", sizes["result"])):
        assert size == _sum(
            case["metrics"], "agent_otel.workflow.payload.size", "workflow.activity", direction=direction
        )


#: Each attempt is a call: one that the runtime makes again is made again.
_CALLS = [
    ("fetch", "call_3", FETCHED, None),
    ("flaky", "call_2", FLAKY, None),
    ("flaky", "call_2", None, "RuntimeError"),
    ("search", "call_1", LETTERS, None),
]


def _call(span: dict[str, Any]) -> tuple[str, str, int | None, str | None]:
    attributes = span["attributes"]
    name, call_id = attributes["tool.name"], attributes["gen_ai.tool.call.id"]
    return name, call_id, attributes.get("tool.result.bytes"), attributes.get("error.type")


def _assert_delivered(case: dict[str, Any], size: int) -> None:
    """Assert that two requests were counted, and so many bytes of results in the second."""
    assert {2} == {metric["count"] for metric in case["metrics"] if metric["name"] == "agent_otel.model.request.size"}
    assert size == _sum(case["metrics"], "agent_otel.tool.result.delivered")
    assert 0 == _sum(case["metrics"], "agent_otel.tool.results.unmatched")


class Engine(Prefect):
    """Prefect's server, in an environment with Pydantic AI."""

    environment = "pydantic-ai-prefect"


@pytest.fixture(scope="module")
def prefect(environment: Callable[[str], Environment]) -> Iterator[str]:
    """Return the address of the server."""
    with Engine.engine(environment) as server:
        yield server["url"]


_ON_PREFECT = """
import asyncio, json, os, sys
sys.path.insert(0, {root!r})
from tests.contract.child import Telemetry
from tests.contract.runtimes.child import settle
telemetry, case = Telemetry(), {{}}
import tests.contract.runtimes.programs.prefect as program
from prefect import flow
from prefect.settings import PREFECT_API_URL, temporary_settings
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.durable_exec.prefect import PrefectDurability, TaskConfig
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url={base_url!r}, api_key="scripted"))
again = TaskConfig(retries=1, retry_delay_seconds=0.0)
attempts, seen = [], []
async def watch(context, events):
    async for event in events:
        seen.append(type(event).__name__)

watching = watch if {streamed} else None
durability = PrefectDurability(tool_task_config=again, event_stream_handler=watching)
agent = Agent(model, name="clerk", capabilities=[durability])

@agent.tool_plain
async def search(n: int) -> str:
    "Find so many letters."
    return "x" * n

@agent.tool_plain
def flaky(n: int) -> str:
    "Find them at the second attempt."
    attempts.append(n)
    if len(attempts) == 1:
        raise RuntimeError("not yet")
    return "y" * n

@agent.tool_plain
def ask_again(n: int) -> str:
    "Ask the model for another call."
    raise ModelRetry("r" * n)

@flow
async def talk(question: str) -> str:
    return (await agent.run(question)).output

with temporary_settings({{PREFECT_API_URL: {url!r}}}):
    said = asyncio.run(talk("go"))
settle(telemetry, case)
stored = []
for folder, _, names in os.walk(program.HOME + "/storage"):
    stored += [os.path.getsize(os.path.join(folder, name)) for name in names]
from agent_otel._internal import errors
print(json.dumps([said, stored, case, dict(errors.errors), seen]))
"""


def test_prefect_carries_an_agent_and_each_number_is_right_once(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest, prefect: str
) -> None:
    """The agent runs in the flow's own code; its tools and its requests to the model are tasks."""
    asked = (ToolCall("call_1", "search", {"n": LETTERS}), ToolCall("call_2", "flaky", {"n": FLAKY}))

    with OpenAIServer(call_once(asked)) as model:
        root = str(request.config.rootpath)
        code = _ON_PREFECT.format(root=root, base_url=model.base_url, url=prefect, streamed=False)
        child = environment(Engine.environment).run(code, env={"AGENT_OTEL": "1"}, timeout=240, check=True)
        sent, wire = len(model.requests), model.tool_results()
    said, stored, case, errors, _ = json.loads(child.stdout.splitlines()[-1])

    assert ("done", 2, {}) == (said, sent, errors)
    assert {"call_1": LETTERS, "call_2": FLAKY} == {key: len(text) for key, text in wire.items()}
    calls = [span for span in case["spans"] if "tool.args_hash" in span["attributes"]]
    # The attempts are the task's own, inside the call.
    assert [call for call in _CALLS if call[0] != "fetch" and call[3] is None] == sorted(map(_call, calls), key=str)
    assert {"clerk"} == {span["attributes"]["agent_otel.sub_agent"] for span in calls}
    steps = [span["attributes"] for span in case["spans"] if "workflow.activity" in span["attributes"]]
    assert 1 == len({step["workflow.execution.id"] for step in steps})
    assert [2] == [step["workflow.activity.attempt"] for step in steps if "workflow.activity.attempt" in step]
    _assert_delivered(case, LETTERS + FLAKY)
    # All files in the store of results are results of tasks and the flow's own.
    assert sum(stored) == _sum(case["metrics"], "agent_otel.workflow.payload.size", direction="output")


def _sum(metrics: list[dict[str, Any]], name: str, label: str | None = None, **attributes: str) -> float:
    """Return the sum of a metric's points that have these attributes, and the label if it is given."""
    return float(
        sum(
            metric["sum"]
            for metric in metrics
            if metric["name"] == name
            and attributes.items() <= metric["attributes"].items()
            and (label is None or label in metric["attributes"])
        )
    )


_CALLED = (ToolCall("call_1", "search", {"n": 50_000}), ToolCall("call_2", "ask_again", {"n": 3_000}))


def _assert_withheld(said: str, case: Json, errors: Json, seen: list[str], model: OpenAIServer) -> None:
    """Assert that the ceiling withheld a result and a retry's message, each once, on a run that was streamed."""
    wire = model.tool_results()
    assert ("done", 2, {}) == (said, len(model.requests), errors)
    assert ("result_too_large", 50_000) == tuple(json.loads(wire["call_1"])[key] for key in ("error", "size_bytes"))
    assert "result_too_large" in wire["call_2"]
    assert "rrr" not in wire["call_2"]
    spans = [span["attributes"] for span in case["spans"] if "tool.args_hash" in span["attributes"]]
    assert ["call_1", "call_2"] == sorted(span["gen_ai.tool.call.id"] for span in spans)
    assert {"ceiling"} == {span["tool.result.truncation.reason"] for span in spans}
    assert 2 == seen.count("FunctionToolCallEvent") == seen.count("FunctionToolResultEvent")


def test_the_ceiling_acts_on_dbos_outside_of_a_step(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest
) -> None:
    """A tool that is a step of its own has its result stored whole."""
    with OpenAIServer(call_once(_CALLED)) as model:
        code = _ON_DBOS.format(root=str(request.config.rootpath), base_url=model.base_url, streamed=True)
        child = environment("pydantic-ai-dbos").run(
            code, env={"AGENT_OTEL": "1", "AGENT_OTEL_RESULT_CEILING_BYTES": "2000"}, timeout=240, check=True
        )
    said, steps, case, errors, seen = json.loads(child.stdout.splitlines()[-1])
    _assert_withheld(said, case, errors, seen, model)
    assert [len(base64.b64encode(pickle.dumps("x" * 50_000)))] == [size for name, size in steps if name == "search"]


def test_the_ceiling_acts_on_prefect_outside_of_a_task(
    environment: Callable[[str], Environment], request: pytest.FixtureRequest, prefect: str
) -> None:
    """A tool's call is a task, whose result is stored whole."""
    with OpenAIServer(call_once(_CALLED)) as model:
        root = str(request.config.rootpath)
        code = _ON_PREFECT.format(root=root, base_url=model.base_url, url=prefect, streamed=True)
        child = environment(Engine.environment).run(
            code, env={"AGENT_OTEL": "1", "AGENT_OTEL_RESULT_CEILING_BYTES": "2000"}, timeout=240, check=True
        )
    said, stored, case, errors, seen = json.loads(child.stdout.splitlines()[-1])
    _assert_withheld(said, case, errors, seen, model)
    assert [True] == [size > 50_000 for size in stored if size > 10_000]
