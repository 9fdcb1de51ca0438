"""Runs of agno's agents and teams, and where its tool calls are read; the entry is in ``agno.py``."""

from __future__ import annotations

from typing import Any

from agent_otel.core.plain import text
from agent_otel.core.types import AgentRun, Invocation, RunReader
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap
from agent_otel.integrations.runtimes.agno_sessions import SESSIONS

_ADAPTER = "frameworks.agno_runs"
_FUNCTION = "agno.tools.function"
_BESIDE = (Wrap("log_exception", "logged"), Wrap("FunctionCall._build_entrypoint_args", "building"))
# OpenTelemetry's instrumentor leaves `execute` alone where another package has wrapped it.
CALLS = Site(
    Candidate(_FUNCTION, Wrap("FunctionCall._execute", "execute"), Wrap("FunctionCall._aexecute", "execute"), *_BESIDE),
    Candidate(_FUNCTION, Wrap("FunctionCall.execute", "execute"), Wrap("FunctionCall.aexecute", "execute"), *_BESIDE),
)
# The functions behind a run and behind its continuation, inside of the methods that other instrumentations wrap.
_BEHIND = tuple(
    Wrap(target, "dispatched")
    for target in ("run_dispatch", "arun_dispatch", "continue_run_dispatch", "acontinue_run_dispatch")
)
RUNS_AND_SESSIONS = (
    Site(
        Candidate("agno.agent._run", *_BEHIND),
        Candidate("agno.agent.agent", Wrap("Agent.run", "run"), Wrap("Agent.arun", "run")),
        adapter=_ADAPTER,
    ),
    Site(
        Candidate("agno.team._run", *_BEHIND),
        Candidate("agno.team.team", Wrap("Team.run", "run"), Wrap("Team.arun", "run")),
        adapter=_ADAPTER,
    ),
    *SESSIONS,
)
# Make a span of each run.
_ALSO_TRACED_BY = (
    "openinference.instrumentation.agno:AgnoInstrumentor",
    "opentelemetry.instrumentation.agno:AgnoInstrumentor",
    "opentelemetry.instrumentation.genai.agno:AgnoInstrumentor",
)


def _run(invocation: Invocation) -> AgentRun:
    return _of(invocation.instance, invocation)


def _dispatched(invocation: Invocation) -> AgentRun:
    agent = invocation.arg(0, "agent")
    return _of(invocation.kwargs.get("team") if agent is None else agent, invocation)


def _of(agent: Any, invocation: Invocation) -> AgentRun:
    session = text(invocation.kwargs.get("session_id")) or text(getattr(agent, "session_id", None))
    return AgentRun(text(getattr(agent, "name", None)), session)


run = RunReader(_run, also_traced_by=_ALSO_TRACED_BY)
dispatched = RunReader(_dispatched, also_traced_by=_ALSO_TRACED_BY)
