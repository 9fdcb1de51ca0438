"""An execution is one outermost run: with and without a thread, nested or parallel, however it ends."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from agent_otel.testing.servers.openai import OpenAIServer
from tests.contract import script
from tests.contract.suite import QUIET

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

Json = dict[str, Any]
_EXECUTION = "agent_otel.execution.tool_calls"


class Runs:
    """All cases. A subclass names the program under ``runs/`` and its environment."""

    agent: ClassVar[str]
    environment: ClassVar[str]
    variables: ClassVar[dict[str, str]] = {"AGENT_OTEL_MAX_TOOL_CALLS": "2"}
    #: The type of the exception that a tool raises, as the caller of the run gets it.
    error: ClassVar[str] = "BrokenError"
    #: The type of the error of a run whose consumer stops reading.
    abandoned: ClassVar[str | None] = None
    run_span: ClassVar[str] = "invoke_agent clerk"

    def test_a_run_without_a_thread_is_an_execution(self, found: Json) -> None:
        """Its repeats, limits and totals are its own."""
        assert _executions(found["plain"]) == (1, 3)
        assert _sum(found["plain"], "agent_otel.tool.repeats") == 1
        assert _sum(found["plain"], "agent_otel.limits.hit") == 1
        assert (_executions(found["plain again"]), _sum(found["plain again"], "agent_otel.tool.repeats")) == ((1, 1), 0)
        assert _sum(found["plain again"], "agent_otel.limits.hit") == 0

    def test_each_run_of_a_thread_is_an_execution_of_its_conversation(self, found: Json) -> None:
        assert _executions(found["thread"]) == _executions(found["thread again"]) == (1, 2)
        for name in ("thread", "thread again"):
            assert _sum(found[name], "agent_otel.tool.repeats") == _sum(found[name], "agent_otel.limits.hit") == 0
            assert {span["attributes"].get("gen_ai.conversation.id") for span in _ours(found[name])} == {"thread-1"}
        runs = [span for name in ("thread", "thread again") for span in _runs(found[name])]
        assert len({span["attributes"]["workflow.execution.id"] for span in runs}) == 2

    @pytest.mark.parametrize(("case", "turn"), [("plain", 1), ("thread", 1), ("thread again", 3)])
    def test_a_call_has_its_turn_and_its_tool_s_description(self, found: Json, case: str, turn: int) -> None:
        calls = [span["attributes"] for span in _ours(found[case]) if span["name"] == "execute_tool lookup"]
        assert calls
        for call in calls:
            assert call["agent_otel.conversation.turn"] == turn
            assert call["gen_ai.tool.description"] == "Look a record up."

    @pytest.mark.parametrize(
        ("case", "runs"),
        [("plain", 1), ("thread", 1), ("fails", 1), ("cancelled", 1), ("streamed", 1), ("at_once", 3)],
    )
    def test_a_run_is_a_trace(self, found: Json, case: str, runs: int) -> None:
        if case not in found:
            return
        roots = _runs(found[case])
        assert [(span["name"], span["parent"]) for span in roots] == [(self.run_span, None)] * runs
        assert {span["trace"] for span in roots} == {span["trace"] for span in _ours(found[case])}
        assert len({span["trace"] for span in roots}) == runs

    def test_runs_at_once_are_apart(self, found: Json) -> None:
        for case in {"at_once", "in threads"} & found.keys():
            assert _executions(found[case]) == (3, 6)
            assert _sum(found[case], "agent_otel.tool.repeats") == _sum(found[case], "agent_otel.limits.hit") == 0

    def test_a_failure_is_on_the_span(self, found: Json) -> None:
        for case, error in {"fails": self.error, "cancelled": "CancelledError"}.items():
            if case not in found:
                continue
            assert found[case]["error"] == error
            (run,) = _runs(found[case])
            assert run["status"] == "ERROR"
            assert run["attributes"]["error.type"].endswith(error)

    def test_an_abandoned_run_ends_without_an_error(self, found: Json) -> None:
        for case in {"abandoned", "closed"} & found.keys():
            (run,) = _runs(found[case])
            error = None if case == "closed" else self.abandoned
            assert (run["status"], run["attributes"].get("error.type")) == ("ERROR" if error else "UNSET", error)

    def test_no_run_leaves_anything_current(self, found: Json) -> None:
        for case in found.values():
            assert (case["left"], case["span"]) == ("", False)


@pytest.fixture(scope="class")
def found(request: pytest.FixtureRequest, environment: Callable[[str], Environment]) -> Json:
    """Return what the child of a class reported."""
    case = request.cls
    with OpenAIServer(script.decide) as server:
        done = environment(case.environment).run(
            "import runpy; runpy.run_module('tests.contract.runs.child', run_name='__main__')",
            case.agent,
            server.base_url,
            env={**QUIET, **case.variables, "AGENT_OTEL": "1"},
            check=True,
        )
    # A client of the SDK complains of the loops that the threads have closed.
    assert "agent_otel failed" not in done.stderr
    assert "Failed to detach context" not in done.stderr
    report: Json = json.loads(done.stdout.splitlines()[-1])
    return report


def _ours(case: Json) -> list[Json]:
    return [span for span in case["spans"] if span["scope"] == "agent_otel"]


def _runs(case: Json) -> list[Json]:
    return [span for span in _ours(case) if span["name"].startswith("invoke_agent")]


def _executions(case: Json) -> tuple[int, int]:
    found = [metric for metric in case["metrics"] if metric["name"] == _EXECUTION]
    return sum(metric["count"] for metric in found), sum(metric["sum"] for metric in found)


def _sum(case: Json, name: str) -> int:
    return sum(metric["sum"] for metric in case["metrics"] if metric["name"] == name)


class TestLangGraph(Runs):
    """``create_agent`` of LangChain."""

    agent = "langgraph"
    environment = "langchain"


class TestOpenAIAgents(Runs):
    """``Runner`` of OpenAI's Agents SDK."""

    agent = "openai_agents"
    environment = "openai-agents"
    error = "UserError"
    abandoned = "asyncio.exceptions.CancelledError"


del Runs
