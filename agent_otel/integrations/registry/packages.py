"""The module of each supported distribution that every program imports first. Strings only; read at interpreter start.

Its import checks the version, because the modules that the integrations wait for may not exist in another version.
A namespace package runs no code; the modules below it stand in its place.
"""

from __future__ import annotations

PACKAGES = {
    "agno": ("agno",),
    "anthropic": ("anthropic",),
    "aws-durable-execution-sdk-python": ("aws_durable_execution_sdk_python",),
    "botocore": ("botocore",),
    "celery": ("celery",),
    "claude-agent-sdk": ("claude_agent_sdk",),
    "crewai": ("crewai",),
    "dapr": ("dapr.ext.workflow",),
    "dapr-agents": ("dapr_agents",),
    "dbos": ("dbos",),
    "durabletask": ("durabletask",),
    "fastmcp": ("fastmcp",),
    "google-adk": ("google.adk",),
    "google-genai": ("google.genai",),
    "hatchet-sdk": ("hatchet_sdk",),
    "inngest": ("inngest",),
    "langchain-core": ("langchain_core",),
    "langgraph": ("langgraph.graph", "langgraph.pregel"),
    "langgraph-checkpoint": ("langgraph.checkpoint.base",),
    "langgraph-checkpoint-postgres": ("langgraph.checkpoint.postgres",),
    "litellm": ("litellm",),
    "mcp": ("mcp",),
    "mistralai": ("mistralai", "mistralai.client"),  # a package with code up to 1.x
    "ollama": ("ollama",),
    "openai": ("openai",),
    "openai-agents": ("agents",),
    "prefect": ("prefect",),
    "pydantic-ai-slim": ("pydantic_ai",),
    "restate-sdk": ("restate",),
    "smolagents": ("smolagents",),
    "strands-agents": ("strands",),
    "temporalio": ("temporalio",),
}
