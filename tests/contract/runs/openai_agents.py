"""Agents of OpenAI's SDK, whose thread is a session."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents import Runner, SQLiteSession

from tests.contract.agents import openai_agents

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

_sessions: dict[str, Any] = {}


def _given(base_url: str, tools: Sequence[Any], prompt: str, thread: str | None) -> tuple[tuple[Any, str], Any]:
    more = {} if thread is None else {"session": _sessions.setdefault(thread, SQLiteSession(thread))}
    return (openai_agents.make(base_url, tools, ""), prompt), more


def run(base_url: str, tools: Sequence[Any], prompt: str, thread: str | None) -> None:
    """One run, sync."""
    given, more = _given(base_url, tools, prompt, thread)
    Runner.run_sync(*given, **more)


async def arun(base_url: str, tools: Sequence[Any], prompt: str, thread: str | None) -> None:
    """One run."""
    given, more = _given(base_url, tools, prompt, thread)
    await Runner.run(*given, **more)


async def events(base_url: str, tools: Sequence[Any], prompt: str, thread: str | None) -> AsyncIterator[Any]:
    """One run, streamed."""
    given, more = _given(base_url, tools, prompt, thread)
    result = Runner.run_streamed(*given, **more)
    try:
        async for event in result.stream_events():
            yield event
    finally:
        result.cancel()
