"""An agent of deepagents as it comes, which by default puts a large result into a file of its own."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deepagents import create_deep_agent
from langchain_openai import ChatOpenAI

from tests.contract.agents import langchain

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIG: Any = {"configurable": {"thread_id": "thread-1"}}


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    del setting
    model = ChatOpenAI(model="scripted", base_url=base_url, api_key="scripted", max_retries=0)
    agent = create_deep_agent(model, [langchain.native(each) for each in tools])
    state = await agent.ainvoke({"messages": [("user", prompt)]}, CONFIG)
    return str(state["messages"][-1].content)
