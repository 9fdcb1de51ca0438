"""A field is renamed, calls are mis-formatted, retries burn the budget.

The vendor of a tool renames a field. Nothing raises: the model does not find the field, and calls the tool again. The
snapshot in ``agent_otel_contracts`` holds the keys of the results and the tool's arguments, and the test names the key.
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
    from agent_otel.testing.servers.replies import Json, Reply

MOST_CALLS = 3


def bug(query: str) -> str:
    """Search the orders."""
    return json.dumps({"rows": [{"order_ref": "o-1", "state": query}], "total": 1})


def fix(query: str) -> str:
    """Search the orders."""
    return json.dumps({"rows": [{"order_id": "o-1", "state": query}], "total": 1})


def insistent(request: Json) -> Reply:
    """Call the tool again until a result has an ``order_id``."""
    results = [message["content"] for message in request["messages"] if message["role"] == "tool"]
    if "order_id" in results[-1]:
        return "The order is o-1."
    return [call("search_orders", query="open")] if len(results) < MOST_CALLS else "I cannot find the order."


@pytest.fixture(params=[bug, fix], autouse=True)
def answer(request: pytest.FixtureRequest, model: Callable[..., object], agent_run: AgentRun) -> str:
    """Return the answer of the agent, which ran with the vendor's new tool and with the old one."""
    del agent_run  # records from here on
    model([call("search_orders", query="open")], *[insistent] * MOST_CALLS)
    search_orders = agent_otel.tool(name="search_orders")(request.param)
    search_orders.__name__ = "search_orders"
    return complete([{"role": "user", "content": "Which order is open?"}], search_orders)


def test_the_tool_is_as_its_snapshot(agent_run: AgentRun) -> None:
    agent_run.assert_contract("search_orders")


def test_no_call_is_repeated(agent_run: AgentRun) -> None:
    agent_run.assert_no_repeats()
