"""A LangChain program beside another instrumentation; prints its spans and its metrics as JSON.

Arguments: the other's instrumentor as ``module:Class``, and whether it is switched on ``before`` or ``after`` us.
"""

# In its environment the framework is there, and where types are checked it is not.
# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"

from __future__ import annotations

import asyncio
import sys
from typing import Any

from tests.system.coexistence import reporting

tracer = reporting.provide()
reporting.activate(*sys.argv[1:])

from langchain_core.messages import AIMessage, ToolCall  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langgraph.graph import MessagesState, StateGraph  # noqa: E402
from langgraph.prebuilt import ToolNode  # noqa: E402


@tool
def sync_tool(text: str) -> str:
    """Return ten times the text."""
    with tracer.start_as_current_span("body of sync_tool"):
        return text * 10


@tool
async def async_tool(text: str) -> str:
    """Return ten times the text."""
    with tracer.start_as_current_span("body of async_tool"):
        await asyncio.sleep(0)
        return text * 10


@tool
def failing_tool(text: str) -> str:
    """Raise."""
    raise ValueError(text)


def one_call(name: str) -> dict[str, list[AIMessage]]:
    """A state whose last message asks for one call."""
    call = ToolCall(name=name, args={"text": "abc"}, id=f"call_{name}", type="tool_call")
    return {"messages": [AIMessage("", tool_calls=[call])]}


graph = StateGraph(MessagesState)
graph.add_node("tools", ToolNode([sync_tool, async_tool]))
graph.set_entry_point("tools")
app = graph.compile()


def expect(found: Any) -> None:
    """The agent must see the result as it is."""
    assert "abc" * 10 == getattr(found, "content", found), found


def case(name: str, run: Any) -> None:
    """Run one case under a span of its own, so that its spans can be told from the others'."""
    with tracer.start_as_current_span(f"case {name}"):
        run()


def failing() -> None:
    """The tool's own exception arrives."""
    caught = None
    try:
        failing_tool.invoke({"text": "abc"})
    except ValueError as error:
        caught = error
    assert "abc" == str(caught)


async def parallel() -> None:
    """Three at once."""
    for found in await asyncio.gather(*(async_tool.ainvoke({"text": "abc"}) for _ in range(3))):
        expect(found)


case("sync", lambda: expect(sync_tool.invoke({"text": "abc"})))
case("async", lambda: expect(asyncio.run(async_tool.ainvoke({"text": "abc"}))))
case("sync in async", lambda: expect(asyncio.run(sync_tool.ainvoke({"text": "abc"}))))
case("graph", lambda: expect(app.invoke(one_call("sync_tool"))["messages"][-1]))
case("async graph", lambda: expect(asyncio.run(app.ainvoke(one_call("async_tool")))["messages"][-1]))
case("failing", failing)
case("parallel", lambda: asyncio.run(parallel()))

reporting.report()
