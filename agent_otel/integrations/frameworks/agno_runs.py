"""Runs of agno's agents and teams; the entry is in ``agno.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel.core.plain import text
from agent_otel.core.types import AgentRun, RunReader

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation


def _run(invocation: Invocation) -> AgentRun:
    agent = invocation.instance
    session = text(invocation.kwargs.get("session_id")) or text(getattr(agent, "session_id", None))
    return AgentRun(text(getattr(agent, "name", None)), session)


run = RunReader(_run)
