"""Tools that a framework runs again after a failure, within one call, under spans of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract.script import decide, prompt

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_BEGIN = """
import asyncio, itertools, json, sys
from tests.contract.child import Telemetry
telemetry = Telemetry()
attempts = itertools.count(1)

def flaky(n: int) -> str:
    "Return so many letters at the third attempt."
    if next(attempts) < 3:
        raise ValueError("not yet")
    return "x" * n
"""
_END = """
spans = [span["attributes"] for span in telemetry.spans() if "tool.args_hash" in span["attributes"]]
counts = [m["count"] for m in telemetry.metrics() if m["name"] == "gen_ai.execute_tool.duration"]
print(json.dumps([[[span.get("error.type"), span.get("tool.result.bytes")] for span in spans], counts]))
"""
_STRANDS = """
from strands import Agent, tool
from strands.hooks import AfterToolCallEvent
from strands.models.openai import OpenAIModel

def again(event: AfterToolCallEvent) -> None:
    event.retry = event.exception is not None

model = OpenAIModel(client_args={"base_url": sys.argv[1], "api_key": "scripted"}, model_id="scripted")
clerk = Agent(model=model, tools=[tool(flaky)], callback_handler=None)
clerk.hooks.add_callback(AfterToolCallEvent, again)
clerk(sys.argv[2])
"""
_SEMANTIC_KERNEL = """
from openai import AsyncOpenAI
from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.filters import FilterTypes
from semantic_kernel.functions import kernel_function

kernel = Kernel()
kernel.add_function("toolbox", kernel_function(flaky))

@kernel.filter(FilterTypes.FUNCTION_INVOCATION)
async def again(context, next):
    while True:
        try:
            return await next(context)
        except Exception:
            continue

async def main():
    client = AsyncOpenAI(base_url=sys.argv[1], api_key="scripted")
    kernel.add_service(OpenAIChatCompletion(ai_model_id="scripted", async_client=client))
    await ChatCompletionAgent(kernel=kernel, name="clerk").get_response(sys.argv[2])

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("row", "program", "tool", "spans"),
    [
        # A span for each attempt.
        ("strands", _STRANDS, "flaky", [["ValueError", None], ["ValueError", None], [None, 300]]),
        # One for all of them.
        ("semantic-kernel", _SEMANTIC_KERNEL, "toolbox-flaky", [[None, 300]]),
    ],
)
def test_the_last_attempt_is_the_calls_result(
    environment: Callable[[str], Environment], row: str, program: str, tool: str, spans: list[list[str | int | None]]
) -> None:
    with OpenAIServer(decide) as server:
        done = environment(row).run(
            _BEGIN + program + _END,
            server.base_url,
            prompt(("call_1", tool, {"n": 300})),
            env={"AGENT_OTEL": "1"},
            check=True,
        )
    assert json.loads(done.stdout.splitlines()[-1]) == [spans, [1]]
