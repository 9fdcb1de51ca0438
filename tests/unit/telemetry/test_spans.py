"""Which span carries the numbers, whose provider it comes from, and what of the content is on it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.telemetry.conftest import CALL

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment
    from tests.servers.otlp import OtlpReceiver

#: Providers of the program's own: ``provider(name)`` and ``spans(name)`` as (scope, name, attributes, parent's name).
PROVIDERS = """
import json
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporters = {}

def provide(name="theirs"):
    exporters[name] = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporters[name]))
    trace.set_tracer_provider(provider)

def spans(name="theirs"):
    finished = exporters[name].get_finished_spans()
    names = {span.context.span_id: span.name for span in finished}
    return [
        (span.instrumentation_scope.name, span.name, dict(span.attributes), span.parent and names[span.parent.span_id])
        for span in sorted(finished, key=lambda span: span.start_time)
    ]
"""


def _run(environment: Environment, program: str, env: dict[str, str] | None = None, logged: str = "") -> Any:
    child = environment.run(CALL + PROVIDERS + program, env={"AGENT_OTEL": "1", **(env or {})})
    assert child.returncode == 0, child.stderr
    assert re.fullmatch(logged, child.stderr), child.stderr
    return json.loads(child.stdout)


#: Spans of other instrumentations, as those open them, around a call of ours whose body opens a span itself.
_FOREIGN = """
provide()
tracer = trace.get_tracer("theirs")
MARKS = {
    "execute_tool search": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"},
    "tools/call search": {"mcp.method.name": "tools/call", "gen_ai.tool.name": "search"},
    "search": {"openinference.span.kind": "TOOL", "tool.name": "search"},
    "search.tool": {"traceloop.span.kind": "tool"},
    "execute_tool other": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "other"},
    "POST": {"http.request.method": "POST"},
}
for name, attributes in MARKS.items():
    with tracer.start_as_current_span(name, attributes=attributes):
        with agent_otel.tool_call("search", {}) as running:
            with tracer.start_as_current_span("body"):
                running.result("xx")
print(json.dumps(spans()))
"""
_TOOL_SPANS = ("execute_tool search", "tools/call search", "search", "search.tool")
_OTHER_SPANS = ("execute_tool other", "POST")


def test_auto_takes_the_span_that_is_open_for_this_call(both_ends: Environment) -> None:
    found = _run(both_ends, _FOREIGN)

    theirs = {name: attributes for scope, name, attributes, _ in found if scope == "theirs" and name != "body"}
    ours = [
        (name, attributes["tool.result.bytes"], parent)
        for scope, name, attributes, parent in found
        if scope == "agent_otel"
    ]
    assert dict.fromkeys(_TOOL_SPANS, 2) == {
        name: attributes["tool.result.bytes"]
        for name, attributes in theirs.items()
        if "tool.result.bytes" in attributes
    }
    assert {"search"} == {theirs[name]["tool.name"] for name in _TOOL_SPANS}
    assert [("execute_tool search", 2, parent) for parent in _OTHER_SPANS] == ours
    assert [*_TOOL_SPANS, "execute_tool search", "execute_tool search"] == [
        parent for _, name, _, parent in found if name == "body"
    ]


_OWNED = """
import asyncio
provide()
tracer = trace.get_tracer("theirs")
mark = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}

def fail(error, **theirs):
    with tracer.start_as_current_span("execute_tool search", attributes={**mark, **theirs}):
        try:
            with agent_otel.tool_call("search", {}):
                raise error
        except BaseException:
            pass

fail(ValueError())
fail(ValueError(), **{"gen_ai.tool.type": "extension", "error.type": "tool_error"})
fail(asyncio.CancelledError())
print(json.dumps(spans()))
"""


def test_what_the_owner_of_a_span_says_stays(both_ends: Environment) -> None:
    """A cancellation is not called an error, which it is to few owners."""
    names = ("tool.name", "gen_ai.tool.type", "error.type")

    assert [
        ("search", "function", "ValueError"),
        ("search", "extension", "tool_error"),
        ("search", "function", None),
    ] == [tuple(map(attributes.get, names)) for _, _, attributes, _ in _run(both_ends, _OWNED)]


_GROWN = """
from agent_otel.core import handler
from agent_otel.core.types import HANDED_BACK, Invocation, ToolCall, ToolReader, ToolResult

provide()
tracer = trace.get_tracer("theirs")
mark = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
inner = ToolReader(lambda invocation: invocation.args[0], ToolResult)
outer = ToolReader(lambda invocation: invocation.args[0], ToolResult, station=HANDED_BACK, awaits=inner)
for number in range(21):
    result = "x" * (5_000 if number == 20 else 100 + number)
    invocation = Invocation(None, (ToolCall("search", {"number": number}),), {})
    with handler.enter_tool(outer, invocation) as around:
        with tracer.start_as_current_span("execute_tool search", attributes=mark):
            with handler.enter_tool(inner, invocation) as within:
                within.returned(result)
        around.returned(result)
finished = exporters["theirs"].get_finished_spans()
events = [(event.name, dict(event.attributes)) for span in finished for event in span.events]
import prometheus_client
print(json.dumps([events, prometheus_client.generate_latest().decode()]))
"""


def test_a_grown_result_is_on_a_span_that_ends_before_the_call(both_ends: Environment) -> None:
    events, exposed = _run(both_ends, _GROWN)

    assert [["tool_result_grown", {"tool.result.usual_bytes": 119}]] == events
    assert 'agent_otel_tool_results_grown_total{gen_ai_tool_name="search"} 1.0' in exposed


@pytest.mark.parametrize(
    ("mode", "enriched", "own"),
    [("own", (), 6), ("enrich", _TOOL_SPANS, 0), ("off", (), 0)],
)
def test_the_other_modes(
    environment: Callable[[str], Environment], mode: str, enriched: tuple[str, ...], own: int
) -> None:
    program = _FOREIGN + "import prometheus_client; print(prometheus_client.generate_latest().decode())"
    child = environment("bare").run(
        CALL + PROVIDERS + program, env={"AGENT_OTEL": "1", "AGENT_OTEL_SPANS": mode}, check=True
    )
    found = json.loads(child.stdout.splitlines()[0])

    numbered = [(scope, name) for scope, name, attributes, _ in found if "tool.result.bytes" in attributes]
    assert [("theirs", name) for name in enriched] == [each for each in numbered if each[0] == "theirs"]
    assert own == len([each for each in numbered if each[0] == "agent_otel"])
    assert 'agent_otel_tool_result_size_bytes_count{error_type="",gen_ai_tool_name="search"} 6.0' in child.stdout
    assert [] == [name for scope, name, _, _ in found if scope == "agent_otel" and mode != "own"]


_REFUSED = """
provide()
call("search", "x")
provide("second")
call("search", "x")
print(json.dumps([len(spans()), len(spans("second"))]))
"""


def test_a_second_provider_is_refused_by_opentelemetry(environment: Callable[[str], Environment]) -> None:
    child = environment("bare").run(CALL + PROVIDERS + _REFUSED, env={"AGENT_OTEL": "1"}, check=True)

    assert [2, 0] == json.loads(child.stdout)
    assert "Overriding of current TracerProvider is not allowed" in child.stderr


_LATE = """
call("search", "x")
provide()
call("search", "x")
print(json.dumps(len(spans())))
"""


def test_a_provider_set_after_the_first_call(both_ends: Environment, receiver: OtlpReceiver) -> None:
    """Without exporters of ours it wins at once; with them ``AGENT_OTEL_SDK=off`` makes it win."""
    assert 1 == _run(both_ends, _LATE)
    assert 1 == _run(both_ends, _LATE, {**receiver.environment(), "AGENT_OTEL_SDK": "off"})
    assert [] == receiver.spans


def test_a_provider_set_before_the_first_call_wins_over_exporters(
    both_ends: Environment, receiver: OtlpReceiver
) -> None:
    program = 'provide(); call("search", "x"); print(json.dumps(len(spans())))'
    assert 1 == _run(both_ends, program, receiver.environment())
    assert [] == receiver.spans


_CONTENT = """
provide()
call("search", "é" * 10_000, {"key": "v" * 10_000})
call("search", {"a": [1, "b"]}, {"b": 1, "a": 2})
fail("search", ValueError("secret " * 2_000))
print(json.dumps([[s[2] for s in spans()], exporters["theirs"].get_finished_spans()[2].status.description]))
"""
_ARGUMENTS = "gen_ai.tool.call.arguments"
_RESULT = "gen_ai.tool.call.result"
_SHORTENED = "agent_otel.content.truncated"


def test_content_is_off_by_default(environment: Callable[[str], Environment]) -> None:
    for env in ({}, {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "EVENT_ONLY"}):
        found, description = _run(environment("bare"), _CONTENT, env)
        assert [False, False, False] == [_ARGUMENTS in attributes or _RESULT in attributes for attributes in found]
        assert "secret" not in f"{found} {description}"


@pytest.mark.parametrize("mode", ["SPAN_ONLY", "SPAN_AND_EVENT", "true"])
def test_content_is_capped(environment: Callable[[str], Environment], mode: str) -> None:
    env = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": mode}
    (long, short, failed), description = _run(environment("bare"), _CONTENT, env)

    cap = 8 * 1024
    assert '{"key":"' + "v" * (cap - 8) == long[_ARGUMENTS]
    assert "é" * (cap // 2) == long[_RESULT]
    assert 20_000 == long["tool.result.bytes"]
    assert '{"a":[1,"b"]}' == short[_RESULT]
    assert {"b": 1, "a": 2} == json.loads(short[_ARGUMENTS])
    assert _RESULT not in failed
    assert ("secret " * 2_000)[:cap] == description
    assert [_ARGUMENTS, _RESULT] == long[_SHORTENED]
    assert _SHORTENED not in short


@pytest.mark.parametrize(("limit", "shortened"), [(13, False), (12, True), (1, True)])
def test_the_size_of_a_copy_is_a_setting(
    environment: Callable[[str], Environment], limit: int, *, shortened: bool
) -> None:
    env = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true", "AGENT_OTEL_CAPTURE_BYTES": str(limit)}
    (_, short, _), description = _run(environment("bare"), _CONTENT, env)

    assert '{"a":[1,"b"]}'[:limit] == short[_RESULT]
    assert '{"b":1,"a":2}'[:limit] == short[_ARGUMENTS]
    assert ([_ARGUMENTS, _RESULT] if shortened else None) == short.get(_SHORTENED)
    assert "secret secret "[:limit] == description


_REDACTING = {
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
    "AGENT_OTEL_CAPTURE_BYTES": "24",
    "AGENT_OTEL_REDACT": "privacy:redact",
}
_REDACTED = """
import pathlib
import sys
import tempfile
folder = tempfile.mkdtemp()
pathlib.Path(folder, "privacy.py").write_text(
    "import re\\n"
    "def redact(tool, attribute, text):\\n"
    "    if tool == 'whoami': return None\\n"
    "    if tool == 'broken': raise RuntimeError(text)\\n"
    "    return re.sub(r'sk-[0-9]{8}', '[key]', text).replace('A', '')\\n"
)
sys.path.insert(0, folder)
provide()
call("search", "the first key is sk-12345678, the next is secret", {"key": "sk-12345678"})
call("whoami", "jane", {})
call("broken", "jane", {})
fail("search", ValueError("refused sk-12345678"))
call("search", "A" * 91 + "sk-12345678", {})
names = ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "agent_otel.content.truncated")
found = [[s[2].get(name) for name in names] for s in spans()]
print(json.dumps([found, exporters["theirs"].get_finished_spans()[3].status.description]))
"""


def test_a_function_of_the_program_redacts_copies(environment: Callable[[str], Environment]) -> None:
    logged = "AGENT_OTEL_REDACT: privacy:redact raised RuntimeError at .*; what it does not redact is not captured.\n"
    found, description = _run(environment("bare"), _REDACTED, _REDACTING, logged)
    # The limit would leave "sk-1234" of the first key: it is redacted before it is shortened.
    assert ['{"key":"[key]"}', "the first key is [key], ", [_RESULT]] == found[0]
    assert [[None] * 3, [None] * 3] == found[1:3]
    assert "refused [key]" == description
    # Of the last key the function gets "sk-12" only, which it does not recognise.
    assert ["{}", "", [_RESULT]] == found[4]


def test_without_the_function_nothing_is_captured(environment: Callable[[str], Environment]) -> None:
    env = {**_REDACTING, "AGENT_OTEL_REDACT": "absent:redact"}
    error = r"cannot be imported \(ModuleNotFoundError\)"
    logged = f"AGENT_OTEL_REDACT: absent:redact {error}; what it does not redact is not captured.\n"
    found, description = _run(environment("bare"), _CONTENT, env, logged)
    assert [False, False, False] == [_ARGUMENTS in attributes or _RESULT in attributes for attributes in found]
    assert "secret" not in f"{found} {description}"


@pytest.mark.parametrize(("tools", "captured"), [("search,fetch", True), ("se*", True), ("fetch", False)])
def test_content_of_chosen_tools(environment: Callable[[str], Environment], tools: str, *, captured: bool) -> None:
    env = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true", "AGENT_OTEL_CAPTURE_TOOLS": tools}
    (_, short, _), description = _run(environment("bare"), _CONTENT, env)
    assert captured == (_ARGUMENTS in short) == (_RESULT in short) == bool(description)


_SUPPRESSED = """
provide()
from opentelemetry.instrumentation.utils import suppress_instrumentation
import prometheus_client
with suppress_instrumentation():
    call("search", "x")
hidden = [len(spans()), "agent_otel_tool" in prometheus_client.generate_latest().decode()]
call("search", "x")
print(json.dumps([hidden, len(spans())]))
"""


def test_suppressed_instrumentation(environment: Callable[[str], Environment]) -> None:
    assert [[0, False], 1] == _run(environment("servers"), _SUPPRESSED)


_LAZY = """
import json
import os
import sys
import threading
from langchain_core.tools import tool

@tool
def shout(text: str) -> str:
    "Say it louder."
    return text.upper()

def state():
    heavy = ("opentelemetry.sdk", "opentelemetry.exporter", "prometheus_client", "grpc", "requests")
    loaded = sorted(name for name in sys.modules if name.startswith(heavy))
    return loaded, [thread.name for thread in threading.enumerate()], len(os.listdir("/proc/self/task"))

before = state()
assert shout.invoke({"text": "hi"}) == "HI"
print(json.dumps([before, state()]))
"""


def test_nothing_is_started_before_the_first_call_and_nothing_loaded_in_it(
    environment: Callable[[str], Environment], receiver: OtlpReceiver
) -> None:
    env = {"AGENT_OTEL": "1", **receiver.environment()}
    done = environment("langchain").run(_LAZY, env=env, check=True, options=("-W", "error"))
    before, (loaded, threads, _) = json.loads(done.stdout)
    assert before[0] == loaded
    assert (["MainThread"], 1) == tuple(before[1:])
    assert "opentelemetry.exporter.otlp.proto.http.trace_exporter" in loaded
    assert "agent_otel-flush" in threads
