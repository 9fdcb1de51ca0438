"""The series of payloads and of rarely used counters, as a scrape shows them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from agent_otel import semconv
from agent_otel.telemetry.metrics import Metrics
from agent_otel.telemetry.sinks.prometheus import PrometheusSink

RUNTIME = {"workflow_runtime": "temporal"}
WORKFLOW = {**RUNTIME, "gen_ai_agent_name": "clerk", "gen_ai_workflow_name": "audit"}


def test_sizes_and_utilization_by_direction_and_cap() -> None:
    registry = CollectorRegistry()
    metrics = Metrics([PrometheusSink(registry)], 10_000, run=("clerk", "audit"))
    state = metrics.payload("temporal", "read", "state")
    # Utilization: below the near ratio, at it, at the cap, and above the cap. The last payload has no cap.
    for payload_bytes, cap_bytes in ((79, 100), (80, 100), (100, 100), (101, 100), (7, None)):
        state.payload(payload_bytes, cap_bytes, 0.8, None)
    metrics.payload("temporal", "write", "state").payload(10, 40, 0.8, None)
    metrics.payload("temporal", "", semconv.HISTORY).payload(5_000, None, 0.8, None)

    def sample(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"agent_otel_workflow_{name}", labels)

    read = {**WORKFLOW, "workflow_activity": "read", "direction": "state"}
    assert 5 == sample("payload_size_bytes_count", **read)
    assert 79 + 80 + 100 + 101 + 7 == sample("payload_size_bytes_sum", **read)
    # The utilization has no activity: four payloads of one activity and a quarter of the other cap.
    assert 0.79 + 0.8 + 1 + 1.01 + 0.25 == sample("payload_utilization_sum", **WORKFLOW, direction="state")
    assert [2, 1, 0] == [sample(f"payload_{name}_total", **read) for name in ("near_cap", "over_cap", "rejected")]
    assert 40 == sample("payload_cap_bytes", **RUNTIME, direction="state")
    # The history has its own metric, without activity and direction, and none of payloads.
    assert 5_000 == sample("history_size_bytes_sum", **WORKFLOW)
    history = {**WORKFLOW, "workflow_activity": "", "direction": "history"}
    assert sample("payload_size_bytes_sum", **history) is None
    assert 0 == sample("payload_over_cap_total", **history)


def test_counters_of_remedies_count_each_event_once() -> None:
    registry = CollectorRegistry()
    metrics = Metrics([PrometheusSink(registry)], 10_000)
    metrics.record(semconv.CONTEXT_SUMMARIES, 1, "stored")
    metrics.record(semconv.LIMITS_HIT, 1, "tool_calls")
    metrics.record(semconv.POLICY_DENIED, 1, "search", "tools", "enforce")
    metrics.record(semconv.TOOL_FOLLOWUPS, 1, "search", "narrowed")
    counted = {sample.name: sample.value for family in registry.collect() for sample in family.samples if sample.value}
    assert {
        "agent_otel_context_summaries_total": 1,
        "agent_otel_limits_hit_total": 1,
        "agent_otel_policy_denied_total": 1,
        "agent_otel_tool_followups_total": 1,
    } == counted
