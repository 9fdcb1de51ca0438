"""Exchanges with a model: each provider's format for offering a tool and answering its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_otel.messages.exchange.anthropic import Anthropic, Bedrock
from agent_otel.messages.exchange.gemini import Gemini
from agent_otel.messages.exchange.openai import Chat, Cohere, Mistral, Ollama, Responses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_otel.messages.exchange.base import Format

FORMATS: Final[Mapping[str, Format]] = {
    "chat": Chat(),
    "responses": Responses(),
    "anthropic": Anthropic(),
    "bedrock": Bedrock(),
    "gemini": Gemini(),
    "mistral": Mistral(),
    "ollama": Ollama(),
    "cohere": Cohere(),
}
