"""Tools of realtime sessions of OpenAI's Agents SDK, with a model of the program's own in place of the WebSocket."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.contract.toolbox import LOOKUP, LOOKUP_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

integrations = {"openai-agents": ["agents.realtime.session:invoke_function_tool"]}

PROGRAM = """
import asyncio, json, sys
from agents import function_tool
from agents.realtime import RealtimeAgent, RealtimeRunner
from agents.realtime.model import RealtimeModel
from agents.realtime.model_events import RealtimeModelToolCallEvent
from agents.realtime.model_inputs import RealtimeModelSendToolOutput
from tests.contract import toolbox
from tests.contract.child import Telemetry

class Scripted(RealtimeModel):
    async def connect(self, options):
        pass
    def add_listener(self, listener):
        self.listener = listener
    def remove_listener(self, listener):
        pass
    async def close(self):
        pass
    async def send_event(self, event):
        if isinstance(event, RealtimeModelSendToolOutput):
            outputs[event.tool_call.call_id] = event.output
            if len(outputs) == 2:
                done.set()

async def talk():
    agent = RealtimeAgent(name="clerk", tools=[function_tool(toolbox.lookup), function_tool(toolbox.broken)])
    model = Scripted()
    async with await RealtimeRunner(agent, model=model).run() as session:
        for number, name in enumerate(("lookup", "broken")):
            arguments = json.dumps({"key": "gr\\u00f6\\u00dfe"}, ensure_ascii=False)
            call = RealtimeModelToolCallEvent(name=name, call_id=f"call_{number}", arguments=arguments)
            await model.listener.on_event(call)
        await done.wait()
        await asyncio.sleep(0.05)

outputs = {}
done = asyncio.Event()
telemetry = Telemetry()
asyncio.run(talk())
spans = [span["attributes"] for span in telemetry.spans() if "tool.args_hash" in span["attributes"]]
print(json.dumps([outputs, spans]))
"""


def test_each_call_of_a_session_is_one_record(environment: Callable[[str], Environment]) -> None:
    env = {"AGENT_OTEL": "1", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    done = environment("openai-agents").run(PROGRAM, env=env, check=True)
    outputs, spans = json.loads(done.stdout.splitlines()[-1])
    assert outputs["call_0"] == LOOKUP
    read = {
        span["gen_ai.tool.call.id"]: (span["tool.name"], span.get("tool.result.bytes"), span.get("error.type"))
        for span in spans
    }
    assert len(spans) == 2
    assert read == {
        "call_0": ("lookup", LOOKUP_BYTES, None),
        "call_1": ("broken", None, "tests.contract.toolbox.BrokenError"),
    }
    assert {span["gen_ai.agent.name"] for span in spans} == {"clerk"}
    assert "agent_otel failed" not in done.stderr
