"""Together's SDK: the same generator and chat completions as OpenAI's, whose adapter reads it."""

from __future__ import annotations

from agent_otel.integrations.model_sdks.stainless import base_client
from agent_otel.integrations.registry.entries import Integration, Site

ENTRY = Integration(
    "together",
    distribution="together",
    minimum="2.0",
    tested="3.1",
    uncovered="completions of a text, embeddings and images",
    sites=(Site(base_client("together"), adapter="model_sdks.openai"),),
)
