"""Fireworks' SDK: the same generator and chat completions as OpenAI's, whose adapter reads it."""

from __future__ import annotations

from agent_otel.integrations.model_sdks.stainless import base_client
from agent_otel.integrations.registry.entries import Integration, Site

ENTRY = Integration(
    "fireworks",
    distribution="fireworks-ai",
    minimum="1.0",
    tested="1.2",
    uncovered="`messages`; completions of a text; embeddings",
    sites=(Site(base_client("fireworks"), adapter="model_sdks.openai"),),
)
