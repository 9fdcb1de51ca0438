"""Generator tools and streams that end in a way of their own: destroyed while they wait, or abandoned."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_DESTROYED = """
import asyncio, gc, json
import agent_otel, prometheus_client
from agent_otel._internal import errors

@agent_otel.tool
async def rows(number):
    for row in range(number):
        await asyncio.sleep(0 if row < 2 else 100)
        yield f"row {row}"

@agent_otel.tool
async def one():
    await asyncio.sleep(100)

async def consume():
    async for _ in rows(5):
        pass

loop = asyncio.new_event_loop()
tasks = [loop.create_task(consume()), loop.create_task(one())]
loop.run_until_complete(asyncio.sleep(0.1))
loop.close()
del tasks
gc.collect()
agent_otel.flush()
samples = [sample for family in prometheus_client.REGISTRY.collect() for sample in family.samples]
ended = {
    sample.labels["gen_ai_tool_name"]: sample.labels["error_type"]
    for sample in samples if sample.name == "gen_ai_execute_tool_duration_seconds_count" and sample.value
}
print(json.dumps([errors.errors, ended]))
"""
_ABANDONED = """
import gc, json
import agent_otel
from agent_otel.core.executions import executions
from agent_otel.integrations.wrap import MeasuredStream
from agent_otel.core.thread.model_request import ModelVisit
from agent_otel.core.types import ModelRequest, RequestPart
from agent_otel.integrations.model_sdks import openai
from agent_otel.telemetry.setup import telemetry

with agent_otel.execution("run"):
    visit = ModelVisit(openai.request, ModelRequest([RequestPart("user", "x" * 400)], model="m"))
    with visit:
        stream = MeasuredStream(iter([{}, {}, {}]), visit)
    next(stream)
    del stream, visit
    gc.collect()
    print(json.dumps(executions.known("run").estimated_tokens))
"""


_FAILED = """
import gc, json
import agent_otel
from agent_otel.core.executions import executions
from agent_otel.core.thread.model_request import ModelVisit
from agent_otel.core.types import ModelRequest, RequestPart
from agent_otel.integrations.model_sdks import openai
from agent_otel.integrations.wrap import MeasuredStream
from agent_otel.telemetry.setup import telemetry

def items():
    yield {}
    raise ConnectionError

with agent_otel.execution("run"):
    visit = ModelVisit(openai.request, ModelRequest([RequestPart("user", "x" * 400)], model="m"))
    with visit:
        stream = MeasuredStream(items(), visit)
    try:
        list(stream)
    except ConnectionError:
        pass
    del stream, visit
    gc.collect()
    print(json.dumps(executions.known("run").estimated_tokens))
"""


def test_a_stream_that_has_failed_has_no_tokens(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(_FAILED, env={"AGENT_OTEL": "1"}, check=True)
    assert json.loads(child.stdout) == 0


def test_a_generator_tool_that_is_destroyed_while_it_waits_fails_as_any_tool(
    environment: Callable[[str], Environment],
) -> None:
    child = environment("bare").run(_DESTROYED, env={"AGENT_OTEL": "1"}, check=True)
    assert json.loads(child.stdout) == [{}, {"rows": "GeneratorExit", "one": "GeneratorExit"}]


def test_the_tokens_of_a_stream_that_is_abandoned_are_estimated(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(_ABANDONED, env={"AGENT_OTEL": "1"}, check=True)
    assert json.loads(child.stdout) == 100
