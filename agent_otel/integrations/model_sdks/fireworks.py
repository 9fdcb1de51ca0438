"""Fireworks' SDK: made by the generator of OpenAI's and Anthropic's, with chat completions and messages as theirs.

One function sends both: the path decides how a request is read, and the shape of a response how that is.
"""

from __future__ import annotations

from typing import Any

from agent_otel._internal.object_kinds import fields
from agent_otel.integrations.model_sdks import stainless
from agent_otel.integrations.model_sdks.stainless import base_client, delay, refused
from agent_otel.integrations.registry import Integration
from agent_otel.integrations.request_bodies import MESSAGES, form_at

__all__ = ["ENTRY", "delay", "refused", "request"]

ENTRY = Integration(
    "fireworks",
    distribution="fireworks-ai",
    minimum="1.0",
    tested="1.2",
    uncovered="completions of a text; embeddings",
    sites=(base_client("fireworks"),),
)


def _is_text(options: Any) -> bool:
    """Return True for streamed messages: the SDK returns the text of the stream."""
    return form_at(options.url) is MESSAGES and fields(stainless.body_of(options)).get("stream") is True


request = stainless.reader(lambda options: form_at(options.url), is_text=_is_text)
