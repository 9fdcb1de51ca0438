"""A durable step whose output a later model request holds is a tool call, on Temporal's real server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.openai import OpenAIServer, Reply, ToolCall, tool_results
from tests.contract.suite import QUIET
from tests.system.engines import temporal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

PROGRAM = "import runpy; runpy.run_module('tests.contract.runtimes.programs.temporal_tools', run_name='__main__')"
TRAVEL, SUPPORT = "Travel", "Support"


def _rows(name: str, to: str) -> list[str]:
    return [f"{name} number {n} in {to} costs {n * 17} dollars" for n in range(40)]


def _json_bytes(name: str, to: str) -> int:
    return len(json.dumps({"tool": name, "rows": _rows(name, to)}, separators=(",", ":")))


def _decide(request: dict[str, Any]) -> Reply:
    if not request.get("tools") or tool_results(request):
        return "done"
    return [ToolCall("call_1", "search_flights", '{"to":"Rome"}')]


@pytest.mark.parametrize(
    ("kind", "environment_name", "workflow", "expected", "parents"),
    [
        (
            *("dynamic", "temporal-agents", TRAVEL),
            # The history has one, two and three entries before the calls.
            {
                "flights": (2, _json_bytes("flights", "Rome 1") + _json_bytes("flights", "Rome 3")),
                "hotels": (1, _json_bytes("hotels", "Rome 2")),
            },
            ["execute_activity flights", "execute_activity flights", "execute_activity hotels"],
        ),
        (
            *("plugin", "temporal-openai-agents", SUPPORT),
            {"search_flights": (1, len("\n".join(_rows("flight", "Rome"))))},
            ["execute_activity search_flights"],
        ),
    ],
)
def test_a_tool_that_is_an_activity(  # noqa: PLR0913, PLR0917 - a row
    environment: Callable[[str], Environment],
    kind: str,
    environment_name: str,
    workflow: str,
    expected: dict[str, tuple[int, int]],
    parents: list[str],
) -> None:
    with temporal.server() as server, OpenAIServer(_decide) as model:
        child = environment(environment_name).run(
            PROGRAM, server.address, model.base_url, kind, env={**QUIET, "AGENT_OTEL": "1"}, timeout=100, check=True
        )
    metrics, spans, errors = json.loads(child.stdout.splitlines()[-1])
    assert errors == {}

    def of_tools(name: str) -> dict[str, Any]:
        return {m["attributes"]["gen_ai.tool.name"]: m for m in metrics if m["name"] == f"agent_otel.tool.{name}"}

    sizes, delivered = of_tools("result.size"), of_tools("result.delivered")
    assert {tool: (m["count"], m["sum"]) for tool, m in sizes.items() if m["count"]} == expected
    assert {tool: m["sum"] for tool, m in delivered.items()} == {tool: size for tool, (_, size) in expected.items()}
    assert {m["attributes"]["gen_ai.workflow.name"] for m in sizes.values()} == {workflow}
    (calls,) = [m for m in metrics if m["name"] == "agent_otel.execution.tool_calls"]
    assert calls["sum"] == len(parents)
    assert not [m for m in metrics if m["name"].endswith(("history.lost", "unmatched")) and m["sum"]]
    tools = [span for span in spans if span["name"].startswith("execute_tool")]
    assert sorted(span["parent"] for span in tools) == parents
    assert {span["attributes"]["tool.result.seen_at"] for span in tools} == {"step"}
