"""Azure Durable Functions, in the real Python worker of Azure Functions."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, ClassVar

from tests.contract.runtimes.suite import Case, Payload, RuntimeContract

if TYPE_CHECKING:
    from tests.contract.runtimes.suite import Runs


class TestAzureDurable(RuntimeContract):
    """The Functions host is played by the program: no package has it."""

    program = "azure_durable"
    environment = "azure-durable"
    runtime = "azure-durable"
    integrations: ClassVar = {
        "azure-durable": [
            "azure.durable_functions.orchestrator:Orchestrator.handle",
            "azure_functions_runtime.handle_event:invocation_request",
            "azure_functions_runtime:invocation_request",
        ],
    }
    without = ("retry",)  # the host makes another attempt, and does not tell the worker
    own: ClassVar = {
        "tool in an orchestrator": Case(
            "searching",
            {"n": 1005},
            1005,
            (Payload("searching", "", "input", 11), Payload("searching", "", "output", 4)),
            (),
        ),
    }

    def test_each_history_is_counted_once(self, runs: Runs, case_name: str) -> None:
        case = runs.on["cases"][case_name]
        (sent,) = (span["attributes"]["sent"] for span in case["spans"] if span["name"] == "host")
        counted: Counter[str] = Counter()
        for metric in case["metrics"]:
            if metric["name"] == "agent_otel.workflow.history.size":
                counted.update(count=metric["count"], sum=metric["sum"])
        assert {"count": len(sent), "sum": sum(sent)} == counted

    def test_a_tool_in_an_orchestrator_is_not_measured(self, runs: Runs) -> None:
        """Its code runs again with each call."""
        case = runs.on["cases"]["tool in an orchestrator"]
        assert [span for span in case["spans"] if span["name"].startswith("execute_tool")] == []
