"""A graph of a model and its tool, for the savers of LangGraph."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig  # noqa: TC002 - read at run time
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph

from tests.contract.runtimes.steps import produce

Json = dict[str, Any]


@tool
def search(n: int) -> str:
    """Find so many letters."""
    return produce(n)


def model(state: MessagesState) -> Json:
    """Ask for one search."""
    text = str(state["messages"][-1].content)
    call = {"name": "search", "args": {"n": int(text)}, "id": f"call_{len(state['messages'])}", "type": "tool_call"}
    return {"messages": [AIMessage("", tool_calls=[call])]}


def tools(state: MessagesState, config: RunnableConfig) -> Json:
    """Search."""
    return {"messages": [search.invoke(state["messages"][-1].tool_calls[0], config)]}


def graph() -> Any:
    """A model and its tool."""
    built = StateGraph(MessagesState)
    built.add_node("model", model)
    built.add_node("tools", tools)
    built.add_edge(START, "model")
    built.add_edge("model", "tools")
    return built
