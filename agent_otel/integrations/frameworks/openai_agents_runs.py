"""Runs of OpenAI's Agents SDK; the entry is in ``openai_agents.py``."""

from __future__ import annotations

from typing import Any

from agent_otel.core.plain import text
from agent_otel.core.types import AgentRun, Invocation, RunReader
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap

RUNS = Site(
    Candidate("agents.run", *(Wrap(f"AgentRunner.{way}", "run") for way in ("run", "run_sync", "run_streamed"))),
    adapter="frameworks.openai_agents_runs",
)

# Make a span of each trace of the SDK's own.
_ALSO_TRACED_BY = (
    "openinference.instrumentation.openai_agents:OpenAIAgentsInstrumentor",
    "opentelemetry.instrumentation.genai.openai_agents:OpenAIAgentsInstrumentor",
    "opentelemetry.instrumentation.openai_agents:OpenAIAgentsInstrumentor",
)


def _run(invocation: Invocation) -> AgentRun:
    """Read a run's agent, and its group, session or conversation."""
    named = invocation.kwargs
    ids = (
        getattr(named.get("run_config"), "group_id", None),
        getattr(named.get("session"), "session_id", None),
        named.get("conversation_id"),
    )
    conversation = next(filter(None, map(text, ids)), None)
    return AgentRun(getattr(invocation.arg(0, "starting_agent"), "name", None), conversation)


def _goes_on(result: Any) -> Any:
    """Return the task of a streamed run; up to 0.8 it has another name."""
    return getattr(result, "run_loop_task", None) or getattr(result, "_run_impl_task", None)


run = RunReader(_run, _goes_on, also_traced_by=_ALSO_TRACED_BY)
