"""Groq's SDK: the same generator and chat completions as OpenAI's; a stream has its usage in a field of Groq's own."""

from __future__ import annotations

from agent_otel.core.plain import fields
from agent_otel.integrations.model_sdks import openai
from agent_otel.integrations.model_sdks.stainless import base_client
from agent_otel.integrations.registry.entries import Integration

ENTRY = Integration(
    "groq",
    minimum="0.13",
    tested="1.7",
    uncovered="embeddings, audio and batches",
    sites=(base_client("groq"),),
)


request = openai.request._replace(
    usage=lambda response: openai.usage(response) or openai.usage(fields(response).get("x_groq")),
    passes=lambda item: fields(item).get("x_groq") is None and openai.passes(item),
)
refused, delay = openai.refused, openai.delay
