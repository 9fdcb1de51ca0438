"""Tools of live runs of Google's Agent Development Kit, with a connection of the program's own to the model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.toolbox import LOOKUP_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

integrations = {
    "google-adk": [
        "google.adk.flows.llm_flows.functions:_call_tool_in_thread_pool",
        "google.adk.flows.llm_flows.functions:__call_tool_live",
        "google.adk.flows.llm_flows.tools._live_caller:_call_tool_in_thread_pool",
    ]
}

PROGRAM = """
import asyncio, contextlib, json, sys
from google.adk.agents import LlmAgent
from google.adk.agents import run_config
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.models.base_llm import BaseLlm
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from tests.contract import toolbox
from tests.contract.child import Telemetry

ran = []

def lookup(key: str) -> str:
    ran.append("lookup")
    return toolbox.lookup(key)

async def lookup_later(key: str) -> str:
    ran.append("lookup_later")
    return toolbox.lookup(key)

async def follow(key: str):
    ran.append("follow")
    yield toolbox.lookup(key)
    yield "done"

class Connection(BaseLlmConnection):
    def __init__(self, tool):
        self.tool = tool
        self.sent = asyncio.Queue()

    async def send_history(self, history):
        pass

    async def send_content(self, content):
        await self.sent.put(content)

    async def send_realtime(self, blob):
        pass

    async def close(self):
        pass

    async def receive(self):
        call = types.FunctionCall(id="call_1", name=self.tool, args={"key": "gr\\u00f6\\u00dfe"})
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(function_call=call)]))
        answers = [await self.sent.get()]
        with contextlib.suppress(asyncio.TimeoutError):  # what a tool streams follows
            while True:
                answers.append(await asyncio.wait_for(self.sent.get(), 0.5))
        text = json.dumps([part.model_dump(mode="json") for content in answers for part in content.parts])
        said = types.Content(role="model", parts=[types.Part(text=text)])
        yield LlmResponse(content=said, turn_complete=True)
        await asyncio.sleep(60)

class Model(BaseLlm):
    tool: str

    async def generate_content_async(self, request, stream=False):
        yield LlmResponse()

    @contextlib.asynccontextmanager
    async def connect(self, request):
        yield Connection(self.tool)

async def talk(tool, **more):
    model = Model(model="gemini-scripted", tool=tool.__name__)
    runner = InMemoryRunner(LlmAgent(name="clerk", model=model, tools=[tool]))
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="user-1")
    config = run_config.RunConfig(response_modalities=["TEXT"], **more)
    queue = LiveRequestQueue()
    given = {"user_id": "user-1", "session_id": session.id, "live_request_queue": queue, "run_config": config}
    async with contextlib.aclosing(runner.run_live(**given)) as events:
        async for event in events:
            if event.turn_complete:
                return event.content.parts[0].text

async def main():
    pool = getattr(run_config, "ToolThreadPoolConfig", None)
    pools = {} if pool is None else {"tool_thread_pool_config": pool()}
    report = []
    for tool in (lookup, lookup_later, follow):
        for more in ({}, pools):
            ran.clear()
            telemetry.spans()
            said = await talk(tool, **more)
            spans = [s["attributes"] for s in telemetry.spans() if "tool.args_hash" in s["attributes"]]
            read = [[s["tool.name"], s.get("tool.result.bytes"), s.get("error.type")] for s in spans]
            report.append([list(ran), read, "tool_denied" in said])
    return report

telemetry = Telemetry()
print(json.dumps(asyncio.run(main())))
"""
ENVIRONMENTS = ("google-adk", "google-adk-1.15")


def _run(environment: Environment, **env: str) -> Any:
    done = environment.run(PROGRAM, env={"AGENT_OTEL": "1", **env}, check=True)
    assert "agent_otel failed" not in done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_each_call_of_a_live_run_is_one_record(environment: Callable[[str], Environment], name: str) -> None:
    """The two runs of each tool are without and with a pool of threads, which 1.15 does not have."""
    looked_up, later = ["lookup", LOOKUP_BYTES, None], ["lookup_later", LOOKUP_BYTES, None]
    # Since 2.10 the call of a tool that streams is over when it has begun; in 1.15 it lasts as long as the stream.
    followed = ["follow", LOOKUP_BYTES + 4 if name == "google-adk-1.15" else 0, None]
    assert _run(environment(name)) == [
        [["lookup"], [looked_up], False],
        [["lookup"], [looked_up], False],
        [["lookup_later"], [later], False],
        [["lookup_later"], [later], False],
        [["follow"], [followed], False],
        [["follow"], [followed], False],
    ]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_tool_of_a_live_run_runs_that_the_policy_denies(
    environment: Callable[[str], Environment], tmp_path: Path, name: str
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("rules = []\n")
    calls = ["lookup", "lookup", "lookup_later", "lookup_later", "follow", "follow"]
    # In 1.15 a task runs the generator, and keeps its exception to itself.
    told = [name != "google-adk-1.15" or call != "follow" for call in calls]
    denied = [[[], [[call, None, "tool_denied"]], is_told] for call, is_told in zip(calls, told, strict=True)]
    assert _run(environment(name), AGENT_OTEL_TOOL_POLICY=str(policy)) == denied
