"""Runs of agno's agents and teams; the entry is in ``agno.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel.core.plain import text
from agent_otel.core.types import AgentRun, RunReader
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap
from agent_otel.integrations.runtimes.agno_sessions import SESSIONS

if TYPE_CHECKING:
    from agent_otel.core.types import Invocation

_ADAPTER = "frameworks.agno_runs"
RUNS_AND_SESSIONS = (
    Site(Candidate("agno.agent.agent", Wrap("Agent.run", "run"), Wrap("Agent.arun", "run")), adapter=_ADAPTER),
    Site(Candidate("agno.team.team", Wrap("Team.run", "run"), Wrap("Team.arun", "run")), adapter=_ADAPTER),
    *SESSIONS,
)
# Make a span of each run.
_ALSO_TRACED_BY = (
    "openinference.instrumentation.agno:AgnoInstrumentor",
    "opentelemetry.instrumentation.agno:AgnoInstrumentor",
)


def _run(invocation: Invocation) -> AgentRun:
    agent = invocation.instance
    session = text(invocation.kwargs.get("session_id")) or text(getattr(agent, "session_id", None))
    return AgentRun(text(getattr(agent, "name", None)), session)


run = RunReader(_run, also_traced_by=_ALSO_TRACED_BY)
