"""The program's own function that redacts copies of content: what it has not made a text of is not captured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.unit.telemetry.conftest import CALL

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_CAPTURING = {"AGENT_OTEL": "1", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}
_FUNCTION = """
import json, os, sys, threading, types
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

class Markup(str):
    pass

async def later():
    return "later"

def redact(tool, attribute, text):
    if tool == "asking":
        return call("model", text).upper()
    made = {"async": later, "dict": dict, "markup": lambda: Markup("[hidden]"), "none": lambda: None}
    return made[tool]() if tool in made else f"[{len(text)}]"

def results():
    return [[s.name, s.attributes.get("gen_ai.tool.call.result")] for s in exporter.get_finished_spans()]
"""
_KINDS = """
sys.modules["privacy"] = types.SimpleNamespace(redact=redact)
for tool in ("async", "dict", "markup", "none", "asking", "async"):
    call(tool, "secret")
worker = threading.Thread(target=call, args=("threaded", "secret"))
worker.start()
worker.join()
read, write = os.pipe()
if os.fork() == 0:
    exporter.clear()
    call("forked", "secret")
    os.write(write, json.dumps(results()).encode())
    os._exit(0)
print(json.dumps([results(), json.loads(os.read(read, 4096))]))
"""


def test_what_is_no_text_is_not_captured_and_what_the_function_calls_is_no_call(
    environment: Callable[[str], Environment],
) -> None:
    child = environment("bare").run(
        CALL + _FUNCTION + _KINDS, env={**_CAPTURING, "AGENT_OTEL_REDACT": "privacy:redact"}
    )
    found, forked = json.loads(child.stdout)
    assert [
        ["execute_tool async", None],
        ["execute_tool dict", None],
        ["execute_tool markup", "[hidden]"],
        ["execute_tool none", None],
        ["execute_tool asking", "SECRET"],
        ["execute_tool async", None],
        ["execute_tool threaded", "[6]"],
    ] == found
    assert [["execute_tool forked", "[6]"]] == forked
    faults = ("is async, and is called where nothing can be awaited", "returned dict, which is no text")
    assert [
        f"AGENT_OTEL_REDACT: privacy:redact {fault}; what it does not redact is not captured." for fault in faults
    ] == child.stderr.splitlines()


_ABSENT = """
import importlib.abc
looked = []
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        looked.append(name)
sys.meta_path.insert(0, Finder())
call("search", "secret")
first = looked.count("privacy")
call("search", "secret")
call("search", "secret")
again = looked.count("privacy")
sys.modules["privacy"] = types.SimpleNamespace(redact=redact)
call("search", "secret")
print(json.dumps([results(), first, again]))
"""


def test_a_module_that_is_not_there_is_not_looked_for_in_each_call(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(
        CALL + _FUNCTION + _ABSENT, env={**_CAPTURING, "AGENT_OTEL_REDACT": "privacy:redact"}
    )
    found, first, again = json.loads(child.stdout)
    assert [None, None, None, "[6]"] == [result for _, result in found]
    assert first == again


_FOREIGN = """
ran = []

class Kind(type):
    @property
    def __name__(cls):
        ran.append("__name__")
        return "kind"

class Proxy(metaclass=Kind):
    @property
    def __class__(self):
        ran.append("__class__")
        return types.CoroutineType

    def close(self):
        ran.append("close")

sys.modules["privacy"] = types.SimpleNamespace(redact=lambda tool, attribute, text: Proxy())
call("search", "secret")
print(json.dumps([results(), ran]))
"""


def test_no_code_of_what_the_function_returns_runs(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(
        CALL + _FUNCTION + _FOREIGN, env={**_CAPTURING, "AGENT_OTEL_REDACT": "privacy:redact"}
    )
    assert [[["execute_tool search", None]], []] == json.loads(child.stdout)
    assert [
        "AGENT_OTEL_REDACT: privacy:redact returned Proxy, which is no text; what it does not redact is not captured."
    ] == child.stderr.splitlines()
