"""Fireworks' SDK: made by the generator of OpenAI's and Anthropic's, with chat completions and messages as theirs.

One function sends both: the path decides which adapter reads a request, and the shape of a response which reads that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core.plain import fields
from agent_otel.core.types import Invocation, ModelReader, ModelRequest
from agent_otel.integrations.model_sdks import anthropic, openai, stainless
from agent_otel.integrations.model_sdks.stainless import base_client, body_of, reword_body
from agent_otel.integrations.registry.entries import Integration

if TYPE_CHECKING:
    from collections.abc import Callable

ENTRY = Integration(
    "fireworks",
    distribution="fireworks-ai",
    minimum="1.0",
    tested="1.2",
    uncovered="completions of a text; embeddings",
    sites=(base_client("fireworks"),),
)


def _of(invocation: Invocation) -> ModelReader:
    """Return the reader of a request by its path."""
    path = invocation.arg(1, "options").url.partition("?")[0]
    return anthropic.request if path.endswith("/messages") else openai.request


def _request(invocation: Invocation) -> ModelRequest | None:
    return _of(invocation).request(invocation)


def _asks(response: Any) -> bool | None:
    asks = openai.asks(response)
    return anthropic.asks(response) if asks is None else asks


def _ends(item: Any) -> bool:
    return openai.ends(item) or anthropic.ends(item)


def _rewrite(invocation: Invocation, view: Callable[..., Any]) -> None:
    if (rewrite := _of(invocation).rewrite) is not None:
        rewrite(invocation, view)


def _answer_only(invocation: Invocation, note: str) -> None:
    if (answer_only := _of(invocation).answer_only) is not None:
        answer_only(invocation, note)


def _body(invocation: Invocation) -> tuple[str, dict[str, Any]] | None:
    exchange = _of(invocation).exchange
    return None if exchange is None or _is_text(invocation) else exchange.body(invocation)


def _is_text(invocation: Invocation) -> bool:
    """Return True for streamed messages: the SDK returns the text of the stream, in which no call can be answered."""
    is_streamed = fields(body_of(invocation.arg(1, "options"))).get("stream") is True
    return is_streamed and _of(invocation) is anthropic.request


def _reword(invocation: Invocation, reword: Callable[[str], str]) -> None:
    if _is_text(invocation):
        reword_body(invocation, reword)
    elif anthropic.exchange.reword is not None:
        anthropic.exchange.reword(invocation, reword)


exchange = anthropic.exchange._replace(body=_body, reword=_reword)
request = ModelReader(
    *(_request, anthropic.usage, _asks, stainless.watch, _ends),
    rewrite=_rewrite,
    answer_only=_answer_only,
    exchange=exchange,
)
refused, delay = stainless.refused, stainless.delay
