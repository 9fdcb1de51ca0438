"""What a remedy returns is what the framework itself would: its classes, its flags, its exceptions let through."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import CohereServer, OpenAIServer
from tests.contract import script
from tests.contract.suite import QUIET

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

CEILING = {**QUIET, "AGENT_OTEL": "1", "AGENT_OTEL_RESULT_CEILING_BYTES": "1000"}
LIMIT = {**QUIET, "AGENT_OTEL": "1", "AGENT_OTEL_MAX_TOOL_CALLS": "1"}

LANGCHAIN = """
import json, sys
import agent_otel.auto, agent_otel
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.types import Command, interrupt
from langgraph.errors import GraphBubbleUp

@tool
def big(n: int) -> str:
    "Return so many letters."
    return "x" * n

@tool(response_format="content_and_artifact")
def beside(n: int):
    "Return so many letters and keep a table."
    return "x" * n, {"rows": n}

@tool
def commands(n: int):
    "Return so many letters in a command."
    return Command(update={"messages": [ToolMessage("x" * n, tool_call_id="1")], "seen": n}, goto="next")

@tool
def thing(n: int):
    "Return an object of the program's own."
    return {"letters": "x" * n}

@tool
def asks(n: int):
    "Leave the graph."
    raise GraphBubbleUp(n)

def call(which, n=2000):
    return which.invoke({"type": "tool_call", "id": "1", "name": which.name, "args": {"n": n}})

def told(message):
    error = json.loads(message.content)["error"]
    return [type(message).__name__, message.status, message.tool_call_id, message.name, error]

with agent_otel.execution("run-1"):
    command = call(commands)
    found = {
        "message": told(call(big)),
        "artifact": [*told(call(beside)), call(beside).artifact],
        "command": [type(command).__name__, command.goto, command.update["seen"], *told(command.update["messages"][0])],
        "text": json.loads(big.invoke({"n": 2000}))["error"],
        "an object": thing.invoke({"n": 2000}) == {"letters": "x" * 2000},
        "short": call(big, 3).content,
    }
    try:
        call(asks)
    except GraphBubbleUp as error:
        found["raised"] = error.args
print(json.dumps(found))
"""

SKIPPED = """
import json
import agent_otel.auto, agent_otel
from langchain_core.tools import tool
ran = []

@tool
def fetch(key: str) -> str:
    "Look a record up."
    ran.append(key)
    return key

with agent_otel.execution("run-1"):
    calls = [fetch.invoke({"type": "tool_call", "id": key, "name": "fetch", "args": {"key": key}}) for key in "ab"]
with agent_otel.execution("run-1"):  # the first has ended: another one, that begins anew
    again = fetch.invoke({"key": "c"})
messages = [[type(m).__name__, m.status, m.tool_call_id, m.name] for m in calls]
print(json.dumps({"messages": messages, "error": json.loads(calls[1].content)["error"], "again": again, "ran": ran}))
"""

AGENTS = """
import asyncio, json, logging, sys
import agent_otel.auto
from pydantic import BaseModel
from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, function_tool
from openai import AsyncOpenAI
from tests.contract.child import Messages

class Table(BaseModel):
    rows: str

@function_tool
def declared(n: int) -> Table:
    "Return so many letters in a table."
    return Table(rows="x" * n)

declared.output_json_schema = Table.model_json_schema()

@function_tool
def undeclared(n: int) -> Table:
    "Return so many letters in a table."
    return Table(rows="x" * n)

messages = Messages()
model = OpenAIResponsesModel("scripted", AsyncOpenAI(base_url=sys.argv[1], api_key="scripted", max_retries=0))
calls = [["call_1", "declared", {"n": 2000}], ["call_2", "undeclared", {"n": 2000}]]
prompt = json.dumps({"calls": calls}, separators=(",", ":"))
asyncio.run(Runner.run(Agent("clerk", tools=[declared, undeclared], model=model), prompt))
print(json.dumps(messages.take()))
"""


def _run(environment: Environment, code: str, *arguments: str, env: dict[str, str]) -> Any:
    return json.loads(environment.run(code, *arguments, env=env, check=True).stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ["langchain", "langchain-oldest"])
def test_langchain_gets_messages_texts_and_commands(environment: Callable[[str], Environment], name: str) -> None:
    found = _run(environment(name), LANGCHAIN, env=CEILING)
    message = ["ToolMessage", "error", "1", "big", "result_too_large"]
    beside = ["ToolMessage", "error", "1", "beside", "result_too_large"]
    # A command's own message has the name that its tool gave it: none.
    command = ["ToolMessage", "error", "1", None, "result_too_large"]
    assert found == {
        "message": message,
        "artifact": [*beside, {"rows": 2000}],
        "command": ["Command", "next", 2000, *command],
        "text": "result_too_large",
        "an object": True,
        "short": "xxx",
        "raised": [2000],
    }


@pytest.mark.parametrize("name", ["langchain", "langchain-oldest"])
def test_langchain_gets_a_message_for_a_call_that_is_not_run(
    environment: Callable[[str], Environment], name: str
) -> None:
    assert _run(environment(name), SKIPPED, env=LIMIT) == {
        "messages": [["ToolMessage", "success", "a", "fetch"], ["ToolMessage", "error", "b", "fetch"]],
        "error": "limit_reached",
        "again": "c",
        "ran": ["a", "c"],
    }


def test_a_declared_output_is_left_alone_and_that_is_said(environment: Callable[[str], Environment]) -> None:
    with OpenAIServer(script.decide) as server:
        [said] = _run(environment("openai-agents"), AGENTS, server.base_url, env=CEILING)
    wire = server.tool_results()
    assert said == "A result of declared goes on whole: nothing else satisfies the output it declares."
    assert len(wire["call_1"]) > 2000
    assert json.loads(wire["call_2"])["error"] == "result_too_large"


PLAIN = """
import sys
import agent_otel.auto, agent_otel
from langchain_core.tools import BaseTool, tool

@tool
def big(n: int) -> str:
    "Return so many letters."
    return "x" * n

with agent_otel.execution("run-1"):
    assert big.invoke({"n": 100_000}) == "x" * 100_000
    with agent_otel.tool_call("by hand") as call:
        assert call.refused() is None
        assert call.result("x" * 100_000) == "x" * 100_000
print(sorted(name for name in sys.modules if name.startswith("agent_otel.remedies")))
"""


def test_nothing_switched_on_loads_nothing(environment: Callable[[str], Environment]) -> None:
    switched_on = environment("langchain").run(PLAIN, env={"AGENT_OTEL": "1"}, check=True).stdout
    assert switched_on.splitlines()[-1] == "[]"


HANGING = """
import asyncio, json, sys
import agent_otel.auto, agent_otel
from tests.contract.child import Messages, Telemetry

telemetry, messages = Telemetry(), Messages()

async def later():
    with agent_otel.tool_call("big", {"n": 2}, call_id="2") as call:
        return await call.aresult("x" * 100_003)

with agent_otel.execution("run-1"):
    with agent_otel.tool_call("big", {"n": 1}, call_id="1") as call:
        first = call.result("x" * 100_003)
    second = asyncio.run(later())
lengths = [len(first), len(second)]
puts = [m for m in telemetry.metrics() if m["name"] == "agent_otel.claim_check.operations" and m["sum"]]
results = sorted({m["attributes"]["result"] for m in puts})
print(json.dumps([*lengths, results, sum(m["sum"] for m in puts)]))
"""


def test_a_store_that_never_answers_is_waited_for_once_each_and_the_results_go_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        variables = {
            "AGENT_OTEL": "1",
            "AGENT_OTEL_CLAIM_CHECK": f"redis://{host}:{port}/0",
            "AGENT_OTEL_CLAIM_CHECK_BUDGET": "0.05",
        }
        done = subprocess.run(
            (sys.executable, "-c", HANGING), env=variables, capture_output=True, check=True, text=True
        )
    first, second, results, puts = json.loads(done.stdout.splitlines()[-1])
    assert (first, second, puts) == (32_768, 32_768, 2)  # never whole
    assert set(results) <= {"timeout", "error"}


def test_a_store_that_is_not_there_is_counted_and_the_results_go_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = "redis://{}:{}/0".format(*closed.getsockname())
    variables = {"AGENT_OTEL": "1", "AGENT_OTEL_CLAIM_CHECK": url, "AGENT_OTEL_CLAIM_CHECK_BUDGET": "10"}
    done = subprocess.run((sys.executable, "-c", HANGING), env=variables, capture_output=True, check=True, text=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [32_768, 32_768, ["error"], 2]


DOCUMENTS = """
import agent_otel.auto, cohere

def turn(number):
    function = {"name": "read", "arguments": "{}"}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    document = {"data": "x" * 3000}
    yield {"role": "assistant", "tool_calls": [call]}
    yield {"role": "tool", "tool_call_id": call["id"], "content": [{"type": "document", "document": document}]}

messages = [{"role": "user", "content": "read all"}, *(one for number in range(7) for one in turn(number))]
cohere.ClientV2("scripted").chat(model="scripted", messages=messages)
"""


def test_a_result_of_documents_is_trimmed_on_coheres_wire(environment: Callable[[str], Environment]) -> None:
    with CohereServer(lambda _: "done") as server:
        env = {**QUIET, "AGENT_OTEL": "1", "AGENT_OTEL_TRIM_RESULTS": "1", **server.environment}
        environment("cohere").run(DOCUMENTS, env=env, check=True)
    results = [one["content"] for one in server.requests[-1]["messages"] if one["role"] == "tool"]
    line = {"type": "text", "text": f"[trimmed 3000 bytes] read: {'x' * 150}…"}
    whole = {"type": "document", "document": {"data": "x" * 3000}}
    assert results == [[line]] * 5 + [[whole]] * 2
