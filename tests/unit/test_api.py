"""What decorated functions keep, and what they cost while the switch is off."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.environments import Environment

OFF = """
import sys, agent_otel
@agent_otel.tool
def search(query): return query
@agent_otel.tool
async def later(query): return query
with agent_otel.execution("run"), agent_otel.tool_call("lookup") as call:
    call.result(search("x"))
print([name for name in sys.modules if name.split(".")[0] in ("wrapt", "opentelemetry", "prometheus_client")])
"""

KINDS = """
import functools, inspect, json, pickle
import agent_otel
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

def same(n: int, *, key: str = "k") -> str:
    "Doc."
    return key * n

class Tools:
    @agent_otel.tool
    def method(self, n): return "m" * n
    @agent_otel.tool
    @classmethod
    def of_class(cls, n): return "c" * n
    @agent_otel.tool
    @staticmethod
    def static(n): return "s" * n
    @agent_otel.tool
    def letters(self, n):
        yield from "l" * n

decorated = agent_otel.tool(same)
said = [
    inspect.signature(decorated) == inspect.signature(same), decorated.__name__, decorated.__doc__,
    decorated(2, key="xy"), Tools().method(3), Tools.of_class(4), Tools.static(5), list(Tools().letters(2)),
    agent_otel.tool(functools.partial(same, 2), name="partial")(), agent_otel.tool(max)(3, 7),
]
numbers = [
    (span.attributes["tool.name"], span.attributes["tool.args.bytes"], span.attributes["tool.result.bytes"])
    for span in exporter.get_finished_spans()
]
print(json.dumps([said, numbers]))
"""

# From Python 3.14 on, annotations are computed when they are read; these cannot be.
LATER = """
import agent_otel, asyncio, inspect, json, typing
from agent_otel.remedies import paginated, streamed_artifacts
from unittest import mock

if typing.TYPE_CHECKING:
    from agent_otel.remedies import Window

@agent_otel.tool
def rows(first: Key, *, times: int = 2) -> Rows:
    return [first] * times

@paginated(page_size=2)
def pages(first: Key, window: Window) -> Rows:
    return [first] * window.limit

@streamed_artifacts
def artifacts(first: Key) -> Rows:
    yield first

@agent_otel.tool
def broken(first: Key[1 / 0]) -> typing.Any:
    return first

said = [
    rows("ab"), len(pages("ab")["items"]), list(inspect.signature(pages).parameters), artifacts("ab"),
    broken("ab"), asyncio.run(agent_otel.tool(mock.AsyncMock(return_value="ab"), name="mock")()),
]
class Key: pass
class Rows: pass
print(json.dumps([said, [repr(each) for each in typing.get_type_hints(rows).values()]]))
"""

MODULE = """
import agent_otel

@agent_otel.tool
def search(query):
    return query * 2
"""

# A tool of LangChain's whose body uses a hand-written one and then fails in the way that LangChain turns into text.
INSIDE = """
import agent_otel
from langchain_core.tools import ToolException, tool
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

@tool
def outer(n: int) -> str:
    "Fail."
    with agent_otel.tool_call("inner") as call:
        call.result("x")
    raise ToolException("no")

outer.handle_tool_error = True
print(outer.invoke({"n": 1}))
print([(span.attributes["tool.name"], span.attributes.get("error.type")) for span in exporter.get_finished_spans()])
"""


def test_nothing_is_loaded_while_the_switch_is_off(environment: Callable[[str], Environment]) -> None:
    assert "[]\n" == environment("bare").run(OFF, check=True).stdout


def test_functions_stay_what_they_are(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(KINDS, env={"AGENT_OTEL": "1"}, check=True)
    said, numbers = json.loads(child.stdout)
    assert [True, "same", "Doc.", "xyxy", "mmm", "cccc", "sssss", ["l", "l"], "kk", 7] == said
    assert [
        ["same", len('{"n":2,"key":"xy"}'), 4],
        ["method", len('{"n":3}'), 3],
        ["of_class", len('{"n":4}'), 4],
        ["static", len('{"n":5}'), 5],
        ["letters", len('{"n":2}'), 2],
        ["partial", len("{}"), 2],
        ["max", len("{}"), 1],
    ] == numbers
    assert "" == child.stderr


@pytest.mark.parametrize("switch", ["0", "1"])
def test_annotations_that_cannot_be_computed_yet_are_left_alone(
    environment: Callable[[str], Environment], switch: str
) -> None:
    child = environment("bare-newest").run(LATER, env={"AGENT_OTEL": switch}, check=True)
    said, hints = json.loads(child.stdout)
    assert [["ab", "ab"], 2, ["first", "cursor", "page_size"], ["ab"], "ab", "ab"] == said
    assert ["<class '__main__.Key'>", "<class 'int'>", "<class '__main__.Rows'>"] == hints


def test_a_decorated_function_can_be_sent_to_another_process(
    environment: Callable[[str], Environment], tmp_path: Path
) -> None:
    (tmp_path / "tools.py").write_text(MODULE)
    code = "import pickle, tools; print(pickle.loads(pickle.dumps(tools.search)) is tools.search)"
    env = {"AGENT_OTEL": "1", "PYTHONPATH": str(tmp_path)}
    assert "True\n" == environment("bare").run(code, env=env, check=True).stdout


def test_a_hand_written_call_inside_of_a_frameworks_tool(environment: Callable[[str], Environment]) -> None:
    child = environment("langchain").run(INSIDE, env={"AGENT_OTEL": "1"}, check=True)
    assert "no\n[('outer', 'langchain_core.tools.base.ToolException')]\n" == child.stdout
