"""Names and ids that are no text: the call is measured all the same, and a log line shows no value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

NAMES = """
import json
from unittest import mock
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
import agent_otel
from agent_otel._internal import errors
from agent_otel.core import handler, step_handler
from agent_otel.core.types import ModelReader, RequestPart, ModelRequest, Step, StepReader, Invocation

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
ran = []

class Lazy(str):
    "A lazy translation: any use of it is noted."
    def trap(self, *_, **__):
        ran.append("ran")
        return False
    __bool__ = __len__ = __eq__ = __str__ = __repr__ = __getitem__ = isascii = encode = trap
    __hash__ = str.__hash__

class Unhashable:
    __hash__ = None
    def __eq__(self, other): ran.append("eq")
    def __bool__(self): ran.append("bool")

for odd in (mock.Mock(), mock.MagicMock(), Unhashable(), 7, b"name", ["name"], Lazy("lazy")):
    with agent_otel.tool_call("lookup", {}, call_id=odd, agent=odd) as call:
        call.result("four")
    with agent_otel.tool_call(odd, {}) as call:
        call.result("four")
    with agent_otel.execution("run", workflow=odd, agent=odd), agent_otel.tool_call("lookup") as call:
        call.result("four")
    step = Step("temporal", odd, odd, odd)
    reader = StepReader(lambda *_: step, lambda *_: None, lambda *_: None)
    with step_handler.enter_step(reader, Invocation(None, (), {})):
        pass
    agent_otel.payload("four", runtime="temporal", direction="input", workflow=odd, activity=odd, execution=odd)
    handler.execution_named(odd, odd)
    step_handler.execution_ended(odd)
    part = RequestPart("tool_results", "four", odd, odd, odd)
    request = ModelRequest([part, part], agent=odd, execution=odd)
    for outermost in (False, True):
        with handler.enter_model(ModelReader(lambda *_: request, outermost=outermost), Invocation(None, (), {})):
            pass
    handler.model_announced(request)
    handler.result_delivered(part, "adapter")
spans = [(span.name, dict(span.attributes)) for span in exporter.get_finished_spans()]
print(json.dumps({"spans": spans, "ran": ran, "errors": dict(errors.errors)}, default=repr))
"""

FAILURE = """
import agent_otel
from agent_otel.core import tool_invocation

def size(value):
    raise ValueError(f"canary {value}")

tool_invocation.size = size
with agent_otel.tool_call("lookup", {}) as call:
    call.result("card 4242")
from agent_otel.remedies import limits
def count(text):
    raise ValueError(f"canary {text}")
limits.token_counter(count)
limits.tokens("card 4242")
"""


def test_what_is_no_text_is_no_name_and_the_call_is_measured(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(NAMES, env={"AGENT_OTEL": "1"}, check=True)
    seen = json.loads(child.stdout)
    assert {"ran": [], "errors": {}} == {"ran": seen["ran"], "errors": seen["errors"]}
    calls = [(name, a) for name, a in seen["spans"] if name.startswith("execute_tool ")]
    assert ["execute_tool lookup", "execute_tool _other", "execute_tool lookup"] * 6 == [name for name, _ in calls[:18]]
    assert ["execute_tool lookup", "execute_tool lazy", "execute_tool lookup"] == [name for name, _ in calls[18:]]
    assert [4] * 21 == [attributes["tool.result.bytes"] for _, attributes in calls]
    assert not any("gen_ai.tool.call.id" in a or "gen_ai.agent.name" in a for _, a in calls[:18])
    assert "lazy" == calls[18][1]["gen_ai.tool.call.id"] == calls[18][1]["gen_ai.agent.name"]
    assert "" == child.stderr


def test_a_log_line_names_the_class_and_the_place_of_a_failure(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(FAILURE, env={"AGENT_OTEL": "1"}, check=True)
    assert "agent_otel failed in tool_call.result: ValueError at " in child.stderr
    assert " > tool_invocation.py:" in child.stderr
    assert "agent_otel.remedies.token_counter raised ValueError" in child.stderr
    assert "canary" not in child.stderr
    assert "4242" not in child.stderr
