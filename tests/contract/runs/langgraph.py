"""Agents of LangGraph, whose thread a checkpointer keeps."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver

from tests.contract.agents import langchain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

_saver = MemorySaver()


def _agent(base_url: str, tools: Sequence[Any], thread: str | None) -> Any:
    model = ChatOpenAI(model="scripted", base_url=base_url, api_key="scripted", max_retries=0)
    more: Any = {} if thread is None else {"checkpointer": _saver}
    return create_agent(model, [langchain.native(each) for each in tools], name="clerk", **more)


def _given(prompt: str, thread: str | None) -> tuple[Any, Any]:
    return {"messages": [("user", prompt)]}, {"configurable": {"thread_id": thread}} if thread else None


def run(base_url: str, tools: Sequence[Any], prompt: str, thread: str | None) -> None:
    """One run, sync."""
    _agent(base_url, tools, thread).invoke(*_given(prompt, thread))


async def arun(base_url: str, tools: Sequence[Any], prompt: str, thread: str | None) -> None:
    """One run."""
    await _agent(base_url, tools, thread).ainvoke(*_given(prompt, thread))


async def events(base_url: str, tools: Sequence[Any], prompt: str, thread: str | None) -> AsyncIterator[Any]:
    """One run, streamed."""
    async for event in _agent(base_url, tools, thread).astream(*_given(prompt, thread)):
        yield event


def left(base_url: str, tools: Sequence[Any], prompt: str) -> Any:
    """A stream in sync code after its first event."""
    stream = _agent(base_url, tools, None).stream(*_given(prompt, None))
    next(stream)
    return stream
