"""Fireworks' SDK: made by the generator of OpenAI's and Anthropic's, with chat completions and messages as theirs.

One function sends both: the path decides which adapter reads a request, and the shape of a response which reads that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel._internal.object_kinds import fields
from agent_otel.integrations.model_sdks import anthropic, openai, stainless
from agent_otel.integrations.model_sdks.stainless import base_client, delay, refused
from agent_otel.integrations.registry.entries import Integration

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.core.types import Invocation

__all__ = ["ENTRY", "delay", "refused", "request"]

ENTRY = Integration(
    "fireworks",
    distribution="fireworks-ai",
    minimum="1.0",
    tested="1.2",
    uncovered="completions of a text; embeddings",
    sites=(base_client("fireworks"),),
)


def _of(invocation: Invocation) -> Any:
    """Return the reader of a request by its path."""
    path = invocation.arg(1, "options").url.partition("?")[0]
    return anthropic.request if path.endswith("/messages") else openai.request


def _is_text(invocation: Invocation) -> bool:
    """Return True for streamed messages: the SDK returns the text of the stream, in which no call can be answered."""
    is_streamed = fields(stainless.body_of(invocation.arg(1, "options"))).get("stream") is True
    return is_streamed and _of(invocation) is anthropic.request


def _reword(invocation: Invocation, reword: Callable[[str], str]) -> None:
    change = stainless.reword_body if _is_text(invocation) else stainless.reword_unread
    change(invocation, reword)


request = stainless.reader(
    lambda invocation: _of(invocation).request(invocation),
    lambda invocation: None if _is_text(invocation) else _of(invocation).exchange.body(invocation),
    reword=_reword,
    rewrite=lambda invocation, view: _of(invocation).rewrite(invocation, view),
    answer_only=lambda invocation, note: _of(invocation).answer_only(invocation, note),
)
