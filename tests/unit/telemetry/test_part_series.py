"""The series of the parts of requests stay bound from request to request, each with its own part and tool."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from agent_otel import semconv
from agent_otel.telemetry.metrics import Metrics
from agent_otel.telemetry.sinks.prometheus import PrometheusSink

SYSTEM, A, B = ("system", ""), ("tool_results", "a"), ("tool_results", "b")


def test_models_above_the_limit_share_their_series_and_are_counted() -> None:
    registry = CollectorRegistry()
    metrics = Metrics([PrometheusSink(registry)], 10_000)
    for number in [*range(60), *[59] * 100]:
        metrics.divide(semconv.CONTEXT_TOKENS_OF, f"m{number}", [SYSTEM], [1])
    labels = {"gen_ai_tool_name": "", "gen_ai_request_model": "_other", "part": "system"}
    assert registry.get_sample_value("agent_otel_tool_context_tokens_total", labels) == 110


def test_conversations_with_other_orders_of_parts_take_turns() -> None:
    registry = CollectorRegistry()
    metrics = Metrics([PrometheusSink(registry)], 10_000)
    for _ in range(2):
        metrics.divide(semconv.CONTEXT_TOKENS_OF, "m", [SYSTEM, A], [1, 2])
        metrics.divide(semconv.CONTEXT_TOKENS_OF, "m", [A, B, SYSTEM], [10, 20, 0])
        metrics.divide(semconv.CONTEXT_TOKENS_OF, "m", [A, B, SYSTEM], [100, 0, 300])

    def counted(name: str, part: str, tool: str) -> float | None:
        labels = {"gen_ai_tool_name": tool, "gen_ai_request_model": "m", "part": part}
        return registry.get_sample_value(f"agent_otel_tool_context_{name}_total", labels)

    assert [counted("tokens", *key) for key in (SYSTEM, A, B)] == [602, 224, 40]
    assert [counted("cost", *key) for key in (SYSTEM, A, B)] == [None, None, None]
