"""One tool call of an unchanged LangChain program: one span, and the same metrics on both ways out."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import pytest

from tests.environments import ROOT
from tests.unit.telemetry import wire
from tests.unit.telemetry.conftest import CALL
from tests.unit.telemetry.wire import key

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment
    from tests.servers.otlp import OtlpReceiver

_AGENT = """
from langchain_core.messages import ToolCall
from langchain_core.tools import tool

@tool
def read_page(url: str, page: int) -> str:
    "Read a page."
    return "ä" * 500

message = read_page.invoke(ToolCall(name="read_page", args={"url": "u", "page": 2}, id="call_7", type="tool_call"))
assert message.content == "ä" * 500
"""


_KEY = "q1Zk0mX7uB2rT9vL4sYc"


def test_one_span(environment: Callable[[str], Environment], receiver: OtlpReceiver) -> None:
    env = {"AGENT_OTEL": "1", "AGENT_OTEL_HASH_KEY": _KEY, **receiver.environment()}
    environment("langchain").run(_AGENT, env=env, check=True)

    (span,) = receiver.wait_for_spans(1)
    assert ("execute_tool read_page", "INTERNAL", "agent_otel", "UNSET", None) == (
        span.name,
        span.kind,
        span.scope,
        span.status,
        span.parent_span_id,
    )
    arguments = b'{"page":2,"url":"u"}'
    assert {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read_page",
        "gen_ai.tool.call.id": "call_7",
        "gen_ai.tool.type": "function",
        "tool.name": "read_page",
        "tool.args_hash": blake2b(arguments, digest_size=6, key=_KEY.encode()).hexdigest(),
        "tool.args.bytes": len(arguments),
        "tool.result.bytes": 1000,
        "tool.result.estimated_tokens": 125,
        "tool.result.truncated": False,
        "tool.result.budget_bytes": 16_000,
        "tool.result.budget_layer": "default",
    } == span.attributes
    assert [] == span.events


# Scripted: what each call adds to which series follows from the results and arguments below.
_PROGRAM = (
    CALL
    + """
import os
from tests.unit.telemetry import wire

with agent_otel.execution("run-1", workflow="review", agent="planner"):
    call("search", "x" * 300, {"q": "a"})
    call("search", "é" * 10_000, {"q": "b"})
    call("search", "x", {"q": "a"})
    fail("broken", ValueError("no"))

port = int(os.environ["AGENT_OTEL_PROMETHEUS_PORT"])
print(wire.scrape(port), end="\\0")
print(wire.scrape(port, wire.OPENMETRICS), end="")
"""
)
_RUN = {"gen_ai_workflow_name": "review", "gen_ai_agent_name": "planner"}
_SEARCH = {"gen_ai_tool_name": "search", **_RUN}
_BROKEN = {"gen_ai_tool_name": "broken", **_RUN}
_EXPECTED = {
    key("agent_otel_tool_result_size_bytes_count", **_SEARCH): 3,
    key("agent_otel_tool_result_size_bytes_sum", **_SEARCH): 300 + 20_000 + 1,
    key("agent_otel_tool_result_size_bytes_bucket", **_SEARCH, le="256.0"): 1,
    key("agent_otel_tool_result_size_bytes_bucket", **_SEARCH, le="1024.0"): 2,
    key("agent_otel_tool_result_size_bytes_bucket", **_SEARCH, le="16384.0"): 2,
    key("agent_otel_tool_result_size_bytes_bucket", **_SEARCH, le="32768.0"): 3,
    key("agent_otel_tool_result_size_bytes_bucket", **_SEARCH, le="1.6777216e+07"): 3,
    key("agent_otel_tool_args_size_bytes_count", **_SEARCH): 3,
    key("agent_otel_tool_args_size_bytes_sum", **_SEARCH): 3 * 9,
    key("agent_otel_tool_args_size_bytes_sum", **_BROKEN): 2,
    key("agent_otel_tool_results_large_total", **_SEARCH, threshold="warn"): 1,
    key("agent_otel_tool_results_large_total", **_BROKEN, threshold="warn"): 0,
    key("agent_otel_tool_results_over_budget_total", **_SEARCH, layer="default"): 1,
    key("agent_otel_tool_results_over_budget_total", **_SEARCH, layer="host"): 0,
    key("agent_otel_tool_results_over_budget_total", **_SEARCH, layer="payload"): 0,
    key("agent_otel_tool_results_truncated_total", **_SEARCH, layer="tool", reason="marker"): 0,
    key("agent_otel_tool_results_truncated_total", **_BROKEN, layer="framework", reason="shrunk"): 0,
    key("agent_otel_tool_result_delivered_bytes_total", **_SEARCH): 0,
    key("agent_otel_tool_result_shape_changes_total", **_SEARCH): 0,
    key("agent_otel_tool_result_largest_bytes", **_SEARCH): 20_000,
    key("agent_otel_tool_results_grown_total", **_SEARCH): 0,
    key("agent_otel_tool_schema_changes_total", **_SEARCH): 0,
    key("agent_otel_tool_invalid_arguments_total", **_SEARCH): 0,
    key("agent_otel_tool_repeats_total", **_SEARCH, by="arguments"): 1,
    key("agent_otel_tool_repeats_total", **_BROKEN, by="arguments"): 0,
    key("gen_ai_execute_tool_duration_seconds_count", **_SEARCH): 3,
    key("gen_ai_execute_tool_duration_seconds_count", **_BROKEN, error_type="ValueError"): 1,
    key("agent_otel_execution_tool_calls_count", **_RUN): 1,
    key("agent_otel_execution_tool_calls_sum", **_RUN): 4,
    key("agent_otel_execution_result_size_bytes_sum", **_RUN): 20_301,
}
_UNITS = {
    "gen_ai.execute_tool.duration": "s",
    "agent_otel.tool.result.size": "By",
    "agent_otel.tool.args.size": "By",
    "agent_otel.tool.results.large": "{result}",
    "agent_otel.tool.results.over_budget": "{result}",
    "agent_otel.tool.results.truncated": "{result}",
    "agent_otel.tool.results.suspected": "{result}",
    "agent_otel.tool.results.cleared": "{result}",
    "agent_otel.tool.result.delivered": "By",
    "agent_otel.tool.result.shape_changes": "{change}",
    "agent_otel.tool.result.largest": "By",
    "agent_otel.tool.results.grown": "{result}",
    "agent_otel.tool.schema_changes": "{change}",
    "agent_otel.tool.invalid_arguments": "{call}",
    "agent_otel.tool.repeats": "{call}",
    "agent_otel.execution.tool_calls": "{call}",
    "agent_otel.execution.result.size": "By",
    "agent_otel.process.start_time": "s",
    "agent_otel.build_info": "",
}


@pytest.mark.parametrize(
    ("name", "protocol"), [("bare", "grpc"), ("bare", "http/protobuf"), ("oldest", "grpc"), ("oldest", "http/protobuf")]
)
@pytest.mark.shows("000.by_execution")
def test_equal_on_both_ways(
    environment: Callable[[str], Environment], receiver: OtlpReceiver, free_port: int, name: str, protocol: str
) -> None:
    env = {
        "AGENT_OTEL": "1",
        "AGENT_OTEL_METRICS": "both",
        "AGENT_OTEL_PROMETHEUS_PORT": str(free_port),
        "AGENT_OTEL_PROMETHEUS_HOST": "127.0.0.1",
        **receiver.environment(protocol),
        "OTEL_METRICS_EXPORTER": "otlp",
    }
    child = environment(name).run(_PROGRAM, env=env, check=True, cwd=ROOT, options=("-W", "error"))

    plain, openmetrics = child.stdout.split("\0")
    assert "" == child.stderr
    scraped = wire.scraped(plain)
    assert _EXPECTED == {series: scraped.get(series) for series in _EXPECTED}
    assert scraped == wire.scraped(openmetrics)
    assert scraped == wire.pushed(receiver.points)
    assert _UNITS == {point.name: point.unit for point in receiver.points}
    assert all(point.cumulative and point.monotonic for point in receiver.points if point.kind == "sum")


@pytest.mark.parametrize("name", ["bare", "oldest"])
def test_exemplars_lead_to_the_trace(
    environment: Callable[[str], Environment], receiver: OtlpReceiver, free_port: int, name: str
) -> None:
    env = {
        "AGENT_OTEL": "1",
        "AGENT_OTEL_METRICS": "both",
        "AGENT_OTEL_PROMETHEUS_PORT": str(free_port),
        **receiver.environment(),
        "OTEL_METRICS_EXPORTER": "otlp",
    }
    child = environment(name).run(_PROGRAM, env=env, check=True, cwd=ROOT)

    spans = {span.start_ns: span for span in receiver.wait_for_spans(4)}
    large = [s for s in spans.values() if s.attributes.get("tool.result.bytes") == 20_000]
    repeated = [s for s in spans.values() if s.attributes.get("tool.result.bytes") == 1]
    failed = [s for s in spans.values() if s.name == "execute_tool broken"]
    histograms = {
        ("agent_otel_tool_result_size_bytes_bucket", large[0].trace_id),
        ("gen_ai_execute_tool_duration_seconds_bucket", failed[0].trace_id),
    }
    counters = {
        ("agent_otel_tool_results_large_total", large[0].trace_id),
        ("agent_otel_tool_repeats_total", repeated[0].trace_id),
    }
    assert histograms | counters <= wire.exemplars(child.stdout.split("\0")[1])
    assert histograms <= {
        (name, exemplar.trace_id)
        for point in receiver.points
        for exemplar in point.exemplars
        for (name, _) in wire.pushed([point])
    }
    assert {span.span_id for span in spans.values()} >= {
        exemplar.span_id for point in receiver.points for exemplar in point.exemplars if exemplar.span_id
    }


def test_unsampled_calls_have_no_exemplar(
    environment: Callable[[str], Environment], receiver: OtlpReceiver, free_port: int
) -> None:
    env = {
        "AGENT_OTEL": "1",
        "AGENT_OTEL_PROMETHEUS_PORT": str(free_port),
        "OTEL_TRACES_SAMPLER": "always_off",
        **receiver.environment(),
    }
    child = environment("bare").run(_PROGRAM, env=env, check=True, cwd=ROOT)

    scraped = wire.scraped(child.stdout.split("\0")[1])
    assert 3 == scraped[key("agent_otel_tool_result_size_bytes_count", **_SEARCH)]
    assert set() == wire.exemplars(child.stdout.split("\0")[1])
    assert [] == receiver.wait_for_spans(1, timeout=0)
