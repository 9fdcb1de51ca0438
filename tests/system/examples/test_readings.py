"""The pages of metrics that the examples read."""

from __future__ import annotations

from examples.repository_agent.readings import Scrape, scrape

METRICS = """\
# TYPE agent_otel_tool_repeats counter
agent_otel_tool_repeats_total{gen_ai_tool_name="read"} 2.0
agent_otel_tool_repeats_total{gen_ai_tool_name="find"} 1.0
"""


def test_samples_are_added_up_by_a_label() -> None:
    repeats = Scrape(METRICS).by("agent_otel_tool_repeats_total", "gen_ai_tool_name")
    assert {"read": 2.0, "find": 1.0} == repeats


def test_a_page_that_is_not_served_is_empty() -> None:
    assert Scrape("") == scrape("http://127.0.0.1:9/metrics")
