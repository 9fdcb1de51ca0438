"""A load test of one big turn will not catch it.

A durable agent carries its state through an activity in each turn. The bug keeps every result twice: cut to 32 KiB for
the model, and whole for a debugging page. The state passes the runtime's cap after a few turns, and no test of one turn
comes near it. The fix keeps a preview in the state, and the whole result in a store under a reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from loop import complete

import agent_otel
from agent_otel.testing import call

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing import AgentRun

KIB = 1024
State = dict[str, Any]
store: dict[str, str] = {}


def bug(result: str) -> dict[str, str]:
    """Return the record of a call with its whole result."""
    return {"name": "list_pull_requests", "result": result}


def fix(result: str) -> dict[str, str]:
    """Return the record of a call with a preview, and a reference to the result."""
    reference = f"tool-result/{len(store)}"
    store[reference] = result
    return {"name": "list_pull_requests", "preview": result[: 4 * KIB], "result_ref": reference}


def turn(state: State, record: Callable[[str], dict[str, str]], kib: int) -> None:
    """Make one turn of the agent, with a result of so many KiB, and carry its state to the next activity."""

    @agent_otel.tool
    def list_pull_requests(page: str) -> str:
        """List the pull requests of a page."""
        result = f"page {page}: " + "x" * kib * KIB
        state["calls"].append(record(result))
        return result[: 32 * KIB] + " [cut]"

    state["messages"].append({"role": "user", "content": "What is new?"})
    complete(state["messages"], list_pull_requests)
    agent_otel.payload(state, runtime="dapr", direction="input", workflow="triage", activity="turn")


@pytest.fixture
def state(model: Callable[..., object]) -> State:
    """Return the state of an agent whose model looks at one page in each turn."""
    pages = iter(range(1, 100))
    model(lambda _: [call("list_pull_requests", page=str(next(pages)))], "Nothing is urgent.")
    return {"messages": [], "calls": []}


@pytest.mark.parametrize("record", [bug, fix])
def test_one_big_turn_passes_with_the_bug(agent_run: AgentRun, state: State, record: Callable[..., Any]) -> None:
    turn(state, record, kib=1_500)
    assert max(agent_run.payload_bytes["dapr", "triage", "turn", "input"]) < 2 * KIB * KIB


@pytest.mark.parametrize("record", [bug, fix])
def test_room_for_fifty_turns(agent_run: AgentRun, state: State, record: Callable[..., Any]) -> None:
    for _ in range(3):
        turn(state, record, kib=200)
    agent_run.assert_turns_to_cap(runtime="dapr", at_least=50)
