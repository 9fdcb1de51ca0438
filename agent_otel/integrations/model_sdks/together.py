"""Together's SDK: the same generator and chat completions as OpenAI's, whose adapter reads it."""

from __future__ import annotations

from agent_otel.integrations.registry.entries import Candidate, Integration, Site, Wrap

ENTRY = Integration(
    "together",
    distribution="together",
    minimum="2.0",
    tested="3.1",
    sites=(
        Site(
            Candidate(
                "together._base_client",
                Wrap("SyncAPIClient.request", "request"),
                Wrap("AsyncAPIClient.request", "request"),
            ),
            adapter="model_sdks.openai",
        ),
    ),
)
