"""After a truncated result, the agent has to paginate: «did the agent paginate?» is a property that a test can check.

A support agent looks orders up. The bug cuts the result to 16,000 characters and says nothing; the model answers from
half of a JSON document. The fix returns pages, each a whole document with an opaque cursor.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from loop import complete

import agent_otel
from agent_otel.testing import call

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing import AgentRun
    from agent_otel.testing.servers.replies import Json, Reply, ToolCall

ORDERS = [{"order_id": f"o-{number}", "state": "delivered", "note": "x" * 300} for number in range(100)]
ORDERS[-1]["state"] = "lost"
PAGE = 20


def bug(customer: str, cursor: str = "") -> str:
    """Look the orders of a customer up."""
    return json.dumps({"customer": customer, "rows": ORDERS, "cursor": cursor})[:16_000]


def fix(customer: str, cursor: str = "") -> str:
    """Look the orders of a customer up, a page at a time; next_cursor leads to the next page."""
    first = int(cursor or 0)
    following = str(first + PAGE) if first + PAGE < len(ORDERS) else None
    return json.dumps({"customer": customer, "rows": ORDERS[first : first + PAGE], "next_cursor": following})


def careful(request: Json) -> Reply:
    """Ask for the next page where a result names one; half of a document names none."""
    last = request["messages"][-1]["content"]
    try:
        cursor = json.loads(last)["next_cursor"]
    except ValueError:
        cursor = None
    if cursor:
        return look_up(cursor=cursor)
    return "The last order is lost." if '"lost"' in last else "All are delivered."


def look_up(**more: str) -> list[ToolCall]:
    """Return the call of the tool."""
    return [call("get_orders", customer="c-7", **more)]


@pytest.fixture(params=[bug, fix])
def answer(request: pytest.FixtureRequest, model: Callable[..., object], agent_run: AgentRun) -> str:
    """Return the answer of the agent, which ran with the tool as it was and as it is."""
    del agent_run  # records from here on
    handler = request.param
    model(look_up(), *[careful] * 5)
    get_orders = agent_otel.tool(name="get_orders")(handler)
    get_orders.__name__ = "get_orders"
    return complete([{"role": "user", "content": "Where are my orders?"}], get_orders)


def test_no_result_is_cut(answer: str, agent_run: AgentRun) -> None:
    agent_run.assert_no_cuts("get_orders")
    assert agent_run.tools["get_orders"].max_result_bytes < 16_000
    assert answer == "The last order is lost."


@pytest.mark.usefixtures("answer")
def test_the_agent_paginates(agent_run: AgentRun) -> None:
    agent_run.assert_paginated_after_cut()


@pytest.mark.usefixtures("answer")
def test_no_answer_is_built_on_a_fragment(agent_run: AgentRun) -> None:
    agent_run.assert_answer_complete()
