"""Bedrock through aiobotocore, whose client has functions of its own in place of botocore's; their adapter reads it."""

from __future__ import annotations

from agent_otel.integrations.registry.entries import Candidate, Integration, Site

ENTRY = Integration(
    "aiobotocore",
    distribution="aiobotocore",
    minimum="2.15",
    tested="3.10, Converse and InvokeModel",
    uncovered="what `bedrock` leaves out; InvokeAgentRuntime; the wait of a retry for the refusals of other requests",
    product="bedrock",
    sites=(
        Site(
            Candidate("aiobotocore.client", request="AioBaseClient._make_api_call"),
            adapter="model_sdks.bedrock",
        ),
        Site(
            Candidate("aiobotocore.endpoint", refusing="AioEndpoint._needs_retry"),
            adapter="model_sdks.bedrock",
        ),
    ),
)
