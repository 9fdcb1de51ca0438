"""The automatic ceiling in frameworks: the weakest layer of each call decides, and the span names it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import pytest

from agent_otel.testing.servers.openai import OpenAIServer, ToolCall, tool_results
from agent_otel.testing.servers.replies import usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Json, Reply
    from tests.environments import Environment

RESULT, TRANSPORT, WINDOW = 9_000, 8_000, 12_000
CAP = 2_097_152  # of a payload of Temporal's
ROOM = 5_000
CALLS = [ToolCall("call_1", "look", '{"key": "k"}')]
PROGRAM = f"""
import asyncio, importlib, json, sys
import agent_otel, agent_otel.auto
from tests.contract.child import Messages, Telemetry
base_url, module = sys.argv[1:]
agent, messages, telemetry = importlib.import_module(module), Messages(), Telemetry()

def look(key: str) -> str:
    "Look a record up."
    return "x" * {RESULT}

def state(size):
    agent_otel.payload(b"x" * size, runtime="temporal", workflow="w", direction="input")

async def main():
    await agent.arun(base_url, [look], "transport", "")
    with agent_otel.execution("run-2", workflow="w"):
        state({CAP} - {ROOM})
        await agent.arun(base_url, [look], "payload", "")
    with agent_otel.execution("run-3", workflow="w"):
        state({CAP} - 2 * {ROOM} - 14_000)
        with agent_otel.tool_call("read", {{}}) as call:
            call.result("x" * 7_000)
        state({CAP} - 2 * {ROOM})  # grown by twice the result
        await agent.arun(base_url, [look], "copies", "")
    await agent.arun(base_url, [look], "context" + "y" * 36_000, "")

asyncio.run(main())
from agent_otel._internal import errors
spans = [span["attributes"] for span in telemetry.spans() if span["attributes"].get("tool.name") == "look"]
print(json.dumps({{"spans": spans, "messages": messages.take(), "errors": dict(errors.errors)}}))
"""


class Carrier(NamedTuple):
    """A framework and its environment."""

    agent: str
    environment: str


CARRIERS = {
    "langgraph": Carrier("langgraph", "langchain"),
    "openai-agents": Carrier("openai_agents", "openai-agents"),
    "pydantic-ai": Carrier("pydantic_ai", "pydantic-ai"),
}


def request_bytes(request: Json) -> int:
    """Return the bytes of a first request: of its tools as compact JSON, and of its texts."""
    tools = json.dumps(request["tools"], separators=(",", ":"), ensure_ascii=False)
    return len(tools) + sum(len(message["content"]) for message in request["messages"])


@pytest.mark.parametrize("name", CARRIERS)
@pytest.mark.shows("001.weakest_layer")
def test_the_weakest_layer_of_each_call_withholds_its_result(
    environment: Callable[[str], Environment], name: str
) -> None:
    carrier = CARRIERS[name]
    with OpenAIServer(lambda request: "done" if tool_results(request) else CALLS) as server:
        done = environment(carrier.environment).run(
            PROGRAM,
            server.base_url,
            f"tests.contract.agents.{carrier.agent}",
            env={
                "AGENT_OTEL": "1",
                "AGENT_OTEL_RESULT_CEILING_BYTES": "auto",
                "AGENT_OTEL_CAPS": f"transport.message={TRANSPORT}",
                "AGENT_OTEL_CONTEXT_WINDOWS": f"scripted={WINDOW}",
            },
            check=True,
        )
        first = server.requests[6]
        answers: list[Reply] = [each for request in server.requests for each in tool_results(request).values()]
    report = json.loads(done.stdout.splitlines()[-1])
    tokens, _ = usage(first, CALLS)
    left = (WINDOW - tokens) * request_bytes(first) / tokens
    expected = [(TRANSPORT, "transport"), (ROOM, "payload"), (ROOM, "payload"), (int(left / 2), "context")]
    assert expected[3][0] < TRANSPORT
    budgets = [(span["tool.result.budget_bytes"], span["tool.result.budget_layer"]) for span in report["spans"]]
    assert budgets == expected
    limits = [json.loads(str(answer))["limit_bytes"] for answer in answers]
    assert limits == [limit_bytes for limit_bytes, _ in expected]
    assert (report["messages"], report["errors"]) == ([], {})
