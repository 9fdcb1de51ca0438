"""Span attributes and metrics of a tool call, made of plain data without a framework."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from agent_otel import semconv, settings
from agent_otel.core.execution_state import ExecutionState
from agent_otel.core.payload_cap import Budget
from agent_otel.core.thread.tool_definitions import Change
from agent_otel.core.tool_invocation import ToolInvocation, record_metrics, span_attributes, start_attributes
from agent_otel.core.types import HANDED_BACK, PRODUCED, Remedied, Replacement, ToolCall, ToolResult
from agent_otel.measure.size import Size
from agent_otel.telemetry.setup import Telemetry
from agent_otel.telemetry.sinks.otel import OTelSink

REF = "claim://run/search/call_1"
STORED = Remedied(Replacement("beginning", {}), "claim_check", 32_000, REF)


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def out(reader: InMemoryMetricReader) -> Telemetry:
    """Telemetry with its own meter, and no environment."""
    chosen = dataclasses.replace(settings.Settings(), log_large_results=False, large_result_bytes=65_536)
    return Telemetry(chosen, None, [OTelSink(MeterProvider([reader]).get_meter("test"))])


def made(out: Telemetry, **readings: Any) -> ToolInvocation:
    """Return a call that has ended, with these readings."""
    call = ToolInvocation(ToolCall("search", {"q": "x"}, "call_1", execution="run"), out, ())
    call.args_hash, call.known_budget = "5f2b8c1d9e0a", Budget(100_000, "payload")
    for name, value in readings.items():
        setattr(call, name, value)
    return call


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        pytest.param(
            {"produced": Size(1200, exact=True), "characters": 1001},
            {"bytes": 1200, "estimated_tokens": 251, "truncated": False},
            id="whole",
        ),
        pytest.param(
            {"produced": Size(300, exact=False), "characters": 300},
            {"bytes": 300, "estimated_tokens": 75, "truncated": False, "estimated": True},
            id="a lower bound",
        ),
        pytest.param(
            {"produced": Size(400, exact=True), "characters": 400, "cuts": (("tool", "marker"),)},
            {"bytes": 400, "estimated_tokens": 100, "truncated": True, "truncation.layer": "tool",
             "truncation.reason": "marker"},
            id="cut by the tool",
        ),
        pytest.param(
            {"produced": Size(65_536, exact=True), "characters": 65_536, "cuts": (("tool", "suspected"),)},
            {"bytes": 65_536, "estimated_tokens": 16_384, "truncated": False, "truncation.layer": "tool",
             "truncation.reason": "suspected"},
            id="as long as a known cap",
        ),
        pytest.param(
            {"produced": Size(5000, exact=True), "characters": 5000, "handed": 1000,
             "cuts": (("tool", "marker"), ("framework", "shrunk"))},
            {"bytes": 5000, "estimated_tokens": 1250, "truncated": True, "handed_back_bytes": 1000,
             "truncation.layer": "framework", "truncation.reason": "shrunk",
             "truncation.cuts": ["tool marker", "framework shrunk"]},
            id="cut again by the framework",
        ),
        pytest.param(
            {"produced": Size(200_890, exact=True), "characters": 200_890, "handed": 32_000, "remedied": STORED,
             "cuts": (("remedy", "claim_check"),)},
            {"bytes": 200_890, "estimated_tokens": 50_223, "truncated": True, "handed_back_bytes": 32_000,
             "ref": REF, "truncation.layer": "remedy", "truncation.reason": "claim_check"},
            id="stored",
        ),
        pytest.param({"failed": Size(700, exact=True), "handed": 700}, {"handed_back_bytes": 700}, id="raised"),
    ],
)  # fmt: skip
@pytest.mark.shows("001.attributes")
def test_span_attributes(out: Telemetry, readings: dict[str, Any], expected: dict[str, Any]) -> None:
    expected = {**expected, "budget_bytes": 100_000, "budget_layer": "payload"}

    assert span_attributes(made(out, **readings)) == {f"tool.result.{name}": value for name, value in expected.items()}


def test_span_attributes_before_the_handler_runs(out: Telemetry) -> None:
    state = ExecutionState()
    state.carries = (1_500_000, 2_097_152, 3)

    assert start_attributes(made(out.of(("clerk", "audit")), args_bytes=9, followup="paginated", state=state)) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.agent.name": "clerk",
        "gen_ai.workflow.name": "audit",
        "gen_ai.conversation.id": "run",
        "tool.name": "search",
        "tool.args_hash": "5f2b8c1d9e0a",
        "tool.args.bytes": 9,
        "tool.followup": "paginated",
        "workflow.payload.bytes": 1_500_000,
        "workflow.payload.cap_bytes": 2_097_152,
        "workflow.payload.utilization": 1_500_000 / 2_097_152,
        "workflow.payload.turns_to_cap": 3,
    }


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        pytest.param(
            {"produced": Size(1200, exact=True)},
            {"agent_otel.tool.result.size": 1200, "agent_otel.tool.args.size": 9, "gen_ai.execute_tool.duration": 0.5},
            id="whole",
        ),
        pytest.param(
            {"produced": Size(200_890, exact=True), "remedied": STORED, "repeated": True,
             "cuts": (("remedy", "claim_check"),)},
            {"agent_otel.tool.result.size": 200_890, "agent_otel.tool.results.large": 1,
             "agent_otel.tool.results.truncated": 1, "agent_otel.tool.repeats": 1,
             "agent_otel.context.removed": 168_890},
            id="stored, and asked before",
        ),
        pytest.param(
            {"produced": Size(100_001, exact=True), "followup": "narrowed", "change": Change(("a",), ("b",))},
            {"agent_otel.tool.results.over_budget": 1, "agent_otel.tool.followups": 1,
             "agent_otel.tool.result.shape_changes": 1},
            id="above its budget, of another shape",
        ),
        pytest.param(
            {"failed": Size(300_000, exact=True), "handed": 300_000, "error_type": "TimeoutError"},
            {"agent_otel.tool.result.size": None, "agent_otel.tool.results.large": 1,
             "agent_otel.tool.results.over_budget": 1},
            id="a failure with a long text",
        ),
        pytest.param(
            {"told": (("", {}, (semconv.LIMITS_HIT, 1, "tool_calls")),), "error_type": "limit_reached"},
            {"agent_otel.limits.hit": 1, "agent_otel.tool.result.size": None},
            id="skipped",
        ),
    ],
)  # fmt: skip
def test_metrics(
    out: Telemetry, reader: InMemoryMetricReader, readings: dict[str, Any], expected: dict[str, Any]
) -> None:
    record_metrics(made(out, args_bytes=9, **readings), 0.5, None)

    found = _sums(reader)
    assert {name: found.get(name) or None for name in expected} == expected


def _sums(reader: InMemoryMetricReader) -> dict[str, float]:
    """Return the sum of each metric over its series."""
    found: dict[str, float] = {}
    data = reader.get_metrics_data()
    for metric in data.resource_metrics[0].scope_metrics[0].metrics if data is not None else ():
        points: Any = metric.data.data_points
        values: list[float] = [getattr(point, "sum", getattr(point, "value", 0)) for point in points]
        found[metric.name] = sum(values)
    return found


@pytest.mark.shows("001.tool_cuts")
def test_a_tool_that_returns_fifty_rows_of_more_each_time_is_suspected(
    out: Telemetry, reader: InMemoryMetricReader
) -> None:
    reasons = []
    for number in range(4):
        call = ToolInvocation(ToolCall("list_orders", {"customer": number}, f"call_{number}"), out, ())
        call.read(PRODUCED, ToolResult({"orders": [{"id": row} for row in range(400)][:50], "total": 400}))
        record_metrics(call, 0.5, None)
        attributes = span_attributes(call)
        assert attributes["tool.result.truncated"] is False
        reasons.append(attributes.get("tool.result.truncation.reason"))
    assert reasons == [None, None, "suspected", "suspected"]
    assert _sums(reader)["agent_otel.tool.results.suspected"] == 2


def test_what_is_handed_back_after_a_failure_is_its_size_unless_a_remedy_replaced_it(out: Telemetry) -> None:
    call = made(out, raised=True)
    call.read(HANDED_BACK, ToolResult("x" * 10))
    assert (Size(10, exact=True), 10, None) == (call.failed, call.handed, call.produced)
    replaced = made(out, raised=True, remedied=STORED)
    replaced.read(HANDED_BACK, ToolResult("x" * 10))
    assert (None, 10) == (replaced.failed, replaced.handed)
