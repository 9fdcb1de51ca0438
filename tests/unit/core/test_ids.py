"""Ids of any length, as a client may choose them: what is kept and shown of them."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from agent_otel.core.execution_context import id_or_none, short
from tests.unit.telemetry.conftest import CALL
from tests.unit.telemetry.test_spans import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment


def _run(environment: Environment, program: str, **env: str) -> Any:
    child = environment.run(CALL + PROVIDERS + program, env={"AGENT_OTEL": "1", **env}, check=True)
    assert "" == child.stderr
    return json.loads(child.stdout)


def _digest(text: str) -> str:
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def test_up_to_128_characters_an_id_is_itself() -> None:
    assert ["", "a" * 128, "ä" * 128] == [short(text) for text in ("", "a" * 128, "ä" * 128)]
    for text in ("a" * 129, "ä" * 1_000, "\ud800" * 1_000):
        assert _digest(text) == short(text) == id_or_none(text) == short(short(text))


def test_long_ids_on_spans_are_digests(environment: Callable[[str], Environment]) -> None:
    program = """
provide()
with agent_otel.execution("e" * 1_000_000):
    call("search", "found", call_id="c" * 1_000_000)
    agent_otel.payload(b"x" * 1_900_000, runtime="temporal", direction="output", workflow="w", activity="a")
agent_otel.payload(
    b"x" * 1_900_000, runtime="temporal", direction="output", workflow="w", activity="b", execution="p" * 1_000_000
)
import time
while len(spans()) < 4:  # a payload is analysed beside the program
    time.sleep(0.01)
print(json.dumps([attributes for _, _, attributes, _ in spans()]))
"""
    block, tool, named, passed = _run(environment("bare"), program)

    assert _digest("e" * 1_000_000) == block["workflow.execution.id"] == tool["gen_ai.conversation.id"]
    assert block["workflow.execution.id"] == named["workflow.execution.id"]
    assert _digest("c" * 1_000_000) == tool["gen_ai.tool.call.id"]
    assert _digest("p" * 1_000_000) == passed["workflow.execution.id"]


def test_long_ids_cost_no_memory_and_are_not_mistaken(environment: Callable[[str], Environment]) -> None:
    """Threads' ids of 1 MB that differ at their ends, through a framework's own door."""
    program = """
import json, tracemalloc
from langchain_core.tools import tool

@tool
def search(query: str) -> str:
    "Search."
    return "found"

def ask(number):
    config = {"configurable": {"thread_id": "t" * 1_000_000 + str(number)}}
    search.invoke({"name": "search", "args": {"query": "q"}, "id": "c" * 1_000_000, "type": "tool_call"}, config)

ask(-1)
tracemalloc.start()
for number in range(100):
    ask(number)
kept = tracemalloc.get_traced_memory()[0]
from prometheus_client import REGISTRY
from agent_otel.core.executions import executions
repeats = REGISTRY.get_sample_value("agent_otel_tool_repeats_total", {"gen_ai_tool_name": "search", "by": "arguments"})
print(json.dumps([kept, len(executions), repeats]))
"""
    child = environment("langchain").run(program, env={"AGENT_OTEL": "1"}, check=True)
    kept_bytes, executions, repeats = json.loads(child.stdout)

    assert kept_bytes < 2_000_000
    assert (101, 0) == (executions, repeats)
