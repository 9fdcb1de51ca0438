"""The series of the parts of requests stay bound from request to request, each with its own part and tool."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from agent_otel.telemetry.metrics import Metrics
from agent_otel.telemetry.sinks.prometheus import PrometheusSink

SYSTEM, A, B = ("system", ""), ("tool_results", "a"), ("tool_results", "b")


def test_models_above_the_limit_share_their_series_and_are_counted() -> None:
    registry = CollectorRegistry()
    sink = PrometheusSink(registry)
    metrics = Metrics([sink], 10_000)
    for number in range(60):
        metrics.model(f"m{number}").tokens.add([SYSTEM], [1])
    held = len(sink._metrics["agent_otel.tool.context.tokens"]._unsettled)  # type: ignore[union-attr]
    for _ in range(100):
        metrics.model("m59").tokens.add([SYSTEM], [1])
    assert len(sink._metrics["agent_otel.tool.context.tokens"]._unsettled) == held  # type: ignore[union-attr]
    labels = {"gen_ai_tool_name": "", "gen_ai_request_model": "_other", "part": "system"}
    assert registry.get_sample_value("agent_otel_tool_context_tokens_total", labels) == 110


def test_conversations_with_other_orders_of_parts_take_turns() -> None:
    registry = CollectorRegistry()
    series = Metrics([PrometheusSink(registry)], 10_000).model("m")
    for _ in range(2):
        series.tokens.add([SYSTEM, A], [1, 2])
        series.tokens.add([A, B, SYSTEM], [10, 20, 0])
        series.tokens.add([A, B, SYSTEM], [100, 0, 300])

    def counted(name: str, part: str, tool: str) -> float | None:
        labels = {"gen_ai_tool_name": tool, "gen_ai_request_model": "m", "part": part}
        return registry.get_sample_value(f"agent_otel_tool_context_{name}_total", labels)

    assert [counted("tokens", *key) for key in (SYSTEM, A, B)] == [602, 224, 40]
    assert [counted("cost", *key) for key in (SYSTEM, A, B)] == [None, None, None]
