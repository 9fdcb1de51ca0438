"""What the demo makes of spans and metrics that it read back."""

from __future__ import annotations

from typing import Any

from examples.local_servers.otlp import Span
from examples.repository_agent.readings import PARTS, Scrape, ToolRow, growth, scrape, tool_rows

METRICS = """\
# TYPE agent_otel_model_request_size_bytes histogram
agent_otel_model_request_size_bytes_bucket{{part="system",le="+Inf"}} 1.0
agent_otel_model_request_size_bytes_count{{part="system"}} 1.0
agent_otel_model_request_size_bytes_sum{{part="system"}} {system}
agent_otel_model_request_size_bytes_sum{{part="tool_results"}} {results}
# TYPE agent_otel_tool_repeats counter
agent_otel_tool_repeats_total{{gen_ai_tool_name="read"}} 2.0
"""


def execute_tool(tool: str, **attributes: Any) -> Span:
    named = {"tool.name": tool} | {f"tool.{name.replace('__', '.')}": value for name, value in attributes.items()}
    return Span(f"execute_tool {tool}", "INTERNAL", "1", "2", None, "s", "UNSET", "", 1, 2, named, {})


def test_growth_is_the_difference_between_scrapes() -> None:
    pages = [Scrape(), *(Scrape(METRICS.format(system=10 * n, results=100 * n * n)) for n in (1, 2))]
    nothing = dict.fromkeys(PARTS, 0)
    assert growth(pages) == [
        {**nothing, "system": 10, "tool_results": 100},
        {**nothing, "system": 10, "tool_results": 300},
    ]


def test_a_row_for_each_tool() -> None:
    spans = [execute_tool("read", result__bytes=size, result__truncated=False) for size in range(1, 20)]
    spans.append(
        execute_tool("read", result__bytes=100, result__truncated=True, **{"result__truncation.reason": "marker"})
    )
    failed = execute_tool("fail")
    failed.attributes["error.type"] = "GitError"
    other = Span("chat m", "CLIENT", "1", "2", None, "s", "UNSET", "", 1, 2, {}, {})
    assert tool_rows([failed, *spans, other], Scrape(METRICS.format(system=0, results=0))) == [
        ToolRow("read", 20, p50=10, p95=19, largest=100, truncated=1, reasons=("marker",), repeats=2, errors=0),
        ToolRow("fail", 1, p50=None, p95=None, largest=None, truncated=0, reasons=(), repeats=0, errors=1),
    ]


def test_a_page_that_is_not_served_is_empty() -> None:
    assert scrape("http://127.0.0.1:9/metrics") == Scrape("")
