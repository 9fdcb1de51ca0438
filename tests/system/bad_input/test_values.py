"""Hostile results, arguments and exceptions: the agent sees exactly what it would see without us."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

HERE = Path(__file__).parent

SPANS = """
import json, runpy, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from agent_otel._internal import errors
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
program = runpy.run_path(sys.argv[1])
for name in program["RESULTS"]:
    program["give"](name)
for error in (ValueError("v"), KeyboardInterrupt()):
    try:
        program["fail"](error)
    except BaseException:
        pass
list(program["count"](3))
left = program["count"](9)
next(left)
left.close()
spans = [(span.name, dict(span.attributes)) for span in exporter.get_finished_spans()]
print(json.dumps({"spans": spans, "errors": dict(errors.errors), "order": list(program["RESULTS"])}))
"""

# UTF-8 bytes of the text, compact JSON for what is structured; None where only a lower bound can be had.
RESULT_BYTES = {
    "none": 4,
    "text": 5,
    "hundred_megabytes": 100_000_000,
    "self_containing": None,
    "shared_dag": None,
    "deep": None,
    "surrogates": 3 + 7 + 3,
    "hostile": 2,
    "hostile_inside": len('{"a":[{}]}'),
    "generator": None,
    "huge_int": 5001,
    "bytes": 2,
}


@pytest.mark.parametrize("name", ["bare", "bare-3.13", "bare-newest", "oldest"])
def test_results_and_exceptions_are_those_without_us(environment: Callable[[str], Environment], name: str) -> None:
    bare = environment(name)
    without = bare.run(HERE / "program.py", check=True)
    watched = bare.run(HERE / "program.py", env={"AGENT_OTEL": "1"}, check=True, timeout=60)
    assert json.loads(without.stdout) == json.loads(watched.stdout)
    assert "" == watched.stderr


@pytest.mark.parametrize("name", ["langchain", "langchain-oldest"])
def test_the_same_through_a_framework(environment: Callable[[str], Environment], name: str) -> None:
    langchain = environment(name)
    without = langchain.run(HERE / "langchain_program.py", check=True)
    watched = langchain.run(HERE / "langchain_program.py", env={"AGENT_OTEL": "1"}, check=True)
    assert json.loads(without.stdout) == json.loads(watched.stdout)
    assert without.stderr == watched.stderr


def test_what_is_measured_of_hostile_results(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(SPANS, str(HERE / "program.py"), env={"AGENT_OTEL": "1"}, check=True)
    seen = json.loads(child.stdout)
    assert {} == seen["errors"]
    given = [attributes for name, attributes in seen["spans"] if name == "execute_tool give"]
    assert seen["order"] == list(RESULT_BYTES)
    for (name, expected), attributes in zip(RESULT_BYTES.items(), given, strict=True):
        if expected is None:
            assert attributes["tool.result.estimated"] is True, name
        else:
            assert (expected, None) == (attributes["tool.result.bytes"], attributes.get("tool.result.estimated")), name
    assert all(attributes["tool.result.truncated"] is False for attributes in given)


def test_failures_have_a_type_and_no_size(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(SPANS, str(HERE / "program.py"), env={"AGENT_OTEL": "1"}, check=True)
    failed = [a for name, a in json.loads(child.stdout)["spans"] if name == "execute_tool fail"]
    assert ["ValueError", "KeyboardInterrupt"] == [attributes["error.type"] for attributes in failed]
    assert not any("tool.result.bytes" in attributes for attributes in failed)


def test_generators_are_summed_as_they_pass(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(SPANS, str(HERE / "program.py"), env={"AGENT_OTEL": "1"}, check=True)
    whole, left = [a for name, a in json.loads(child.stdout)["spans"] if name == "execute_tool count"]
    assert (3 * len("line 0\n"), None) == (whole["tool.result.bytes"], whole.get("tool.result.estimated"))
    assert (len("line 0\n"), True) == (left["tool.result.bytes"], left["tool.result.estimated"])
