"""A server for the APIs of several providers, on one port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel.testing.servers.anthropic import AnthropicServer, BedrockServer
from agent_otel.testing.servers.gemini import GeminiServerWithIds
from agent_otel.testing.servers.openai import CohereServer, OllamaServer, OpenAIServer
from agent_otel.testing.servers.replies import Replies
from agent_otel.testing.servers.scripted import LoopbackServer

if TYPE_CHECKING:
    from agent_otel.testing.servers.replies import Decider, Json, Reply
    from agent_otel.testing.servers.scripted import ScriptedServer


class ProvidersServer(LoopbackServer):
    """A server of OpenAI's, Anthropic's, Gemini's, Bedrock's, Cohere's, Groq's and Ollama's APIs; port 0 is a free one.

    A decider gets the request of an OpenAI client as it came, and any other as OpenAI's messages.
    """

    def __init__(self, decider: Decider, port: int = 0) -> None:
        kinds: tuple[type[ScriptedServer], ...] = (
            *(OpenAIServer, AnthropicServer, GeminiServerWithIds, BedrockServer, CohereServer, OllamaServer),
        )
        self._parts = [kind(decider) for kind in kinds]
        super().__init__({path: route for part in self._parts for path, route in part.routes.items()}, port)

    @property
    def requests(self) -> list[Json]:
        """Every body that it got, parsed: those of each API in their order."""
        return [request for part in self._parts for request in part.requests]

    @property
    def environment(self) -> dict[str, str]:
        """The variables that point the clients of all providers at this server."""
        addresses = {"OPENAI_BASE_URL": f"{self.url}/v1"}
        addresses |= dict.fromkeys(("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"), self.url)
        addresses |= dict.fromkeys(("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "CO_API_URL", "GROQ_BASE_URL"), self.url)
        addresses["OLLAMA_HOST"] = self.url
        keys = (
            *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
            *("CO_API_KEY", "GROQ_API_KEY"),
        )
        return {**addresses, **dict.fromkeys(keys, "scripted"), "AWS_DEFAULT_REGION": "us-east-1"}


def scripted(*replies: Reply | Decider, port: int = 0) -> ProvidersServer:
    """Return a server that gives the replies in order, for a ``with`` statement."""
    return ProvidersServer(Replies(*replies), port)
