"""Fireworks' SDK: the same generator and chat completions as OpenAI's, whose adapter reads it."""

from __future__ import annotations

from agent_otel.integrations.registry.entries import Candidate, Integration, Site, Wrap

ENTRY = Integration(
    "fireworks",
    distribution="fireworks-ai",
    minimum="1.0",
    tested="1.2",
    sites=(
        Site(
            Candidate(
                "fireworks._base_client",
                Wrap("SyncAPIClient.request", "request"),
                Wrap("AsyncAPIClient.request", "request"),
            ),
            adapter="model_sdks.openai",
        ),
    ),
)
