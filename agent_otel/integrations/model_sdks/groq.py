"""Groq's SDK: the same generator and chat completions as OpenAI's; a stream has its usage in a field of Groq's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core.plain import fields
from agent_otel.integrations.model_sdks import openai, openai_answers
from agent_otel.integrations.model_sdks.stainless import base_client
from agent_otel.integrations.registry.entries import Integration

if TYPE_CHECKING:
    from agent_otel.core.usage import Usage

ENTRY = Integration(
    "groq",
    distribution="groq",
    minimum="0.13",
    tested="1.7",
    uncovered="embeddings, audio and batches",
    sites=(base_client("groq"),),
)


def _usage(response: Any) -> Usage | None:
    """Return the usage of a whole response, or of the last chunk of a stream."""
    return openai.usage(response) or openai.usage(fields(response).get("x_groq"))


def _passes(item: Any) -> bool:
    """Return true for a chunk with neither tokens nor a call that the provider has made."""
    return fields(item).get("x_groq") is None and openai_answers.passes(item)


request = openai.request._replace(usage=_usage, passes=_passes)
refused, delay = openai.refused, openai.delay
