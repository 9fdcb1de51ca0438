"""LangGraph's runs; the entry and the checkpoints are in ``runtimes/langgraph.py``, the tools in ``langchain.py``."""

from __future__ import annotations

from typing import Any

from agent_otel.core import handler
from agent_otel.core.plain import fields, identity, text
from agent_otel.core.types import AgentRun, Invocation, RunReader

#: The name of a graph that the program gave none.
_UNNAMED = "LangGraph"
# Open a span for each run of LangChain's.
_ALSO_TRACED_BY = (
    "openinference.instrumentation.langchain:LangChainInstrumentor",
    "opentelemetry.instrumentation.genai.langchain:LangChainInstrumentor",
    "opentelemetry.instrumentation.langchain:LangchainInstrumentor",
)


def _run(invocation: Invocation) -> AgentRun | None:
    """Read the graph's name and thread; report the name for the thread that its savers and its subgraphs' write to."""
    graph = invocation.instance
    name = text(graph.name)
    agent = None if name == _UNNAMED else name
    for config in (invocation.arg(1, "config"), graph.config):
        configurable = fields(fields(config).get("configurable"))
        if text(configurable.get("checkpoint_ns")):
            return None  # inside another graph
        thread_id = identity(configurable.get("thread_id"))
        if thread_id is not None:
            handler.execution_named(thread_id, graph.name)
            return AgentRun(agent, thread_id)
    return AgentRun(agent)


def _pauses(value: Any) -> bool:
    """Return true for a state, or an item of a stream, with an interrupt; with several modes, an item is a tuple."""
    states = value if type(value) is tuple else (value,)
    return any(type(state) is dict and "__interrupt__" in state for state in states)


run = RunReader(_run, pauses=_pauses, also_traced_by=_ALSO_TRACED_BY)
