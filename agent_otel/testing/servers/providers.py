"""The scripted model of Google's generateContent, and a server for the APIs of several providers on one port.

Gemini's calls have ids or have none, as the model likes: ``GeminiServer`` gives none, ``GeminiServerWithIds`` does.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

from agent_otel.messages.fields import text_of
from agent_otel.messages.formats import transcript
from agent_otel.messages.gemini import call_part
from agent_otel.testing.servers.anthropic import AnthropicServer, BedrockServer
from agent_otel.testing.servers.openai import CohereServer, OllamaServer, OpenAIServer
from agent_otel.testing.servers.replies import Replies, pieces, usage
from agent_otel.testing.servers.scripted import Answer, LoopbackServer, ScriptedServer, answer, result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_otel.testing.servers.replies import Decider, Json, Reply
    from agent_otel.testing.servers.scripted import Endpoint


MODEL = "gemini-scripted"
#: Tokens of the prompt that it reports as cached.
CACHED_TOKENS = 5


class GeminiServer(ScriptedServer):
    """A server of ``/v1/models/*`` and ``/v1beta``; a result is matched by its tool's name and its place."""

    ids: ClassVar[bool] = False
    variables: ClassVar[Mapping[str, str]] = {"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "scripted"}

    def __init__(self, decider: Decider) -> None:
        self._asked: dict[str, list[tuple[str, str]]] = {}
        super().__init__(decider)

    def endpoints(self) -> dict[str, Endpoint]:
        """Return both ways to generate, under the versions of the API that the SDKs use."""
        ways = {
            "generateContent": self._answer,
            "streamGenerateContent": lambda request, reply: self._answer(request, reply, streams=True),
        }
        return {f"/{version}/models/*:{way}": ways[way] for version in ("v1", "v1beta") for way in ways}

    def messages(self, request: Json) -> list[Json]:
        """Return a request's messages; results without an id get that of the call that they answer by their order."""
        found: list[Json] = []
        asked: list[tuple[str, str]] = []
        for content in request["contents"]:
            texts = text_of(content["parts"])
            if texts:
                found.append({"role": "assistant" if content.get("role") == "model" else "user", "content": texts})
                asked = list(self._asked.get(texts, asked))
            for one in transcript(content).answered:
                known = one.id or next((id_ for id_, name in asked if name == one.name), "")
                asked = [each for each in asked if each[0] != known]
                found.append(result(known, _text(one.content)))
        return found

    def replied(self, request: Json, reply: Reply) -> None:
        """Remember the ids of calls that go out without one, by the prompt that they are made for."""
        said = [message["content"] for message in self.messages(request) if message["role"] == "user"]
        if said and not isinstance(reply, str):
            self._asked[said[-1]] = [(call.id, call.name) for call in reply]

    def _answer(self, request: Json, reply: Reply, *, streams: bool = False) -> Answer:
        if isinstance(reply, str):
            parts, streamed = [{"text": reply}], [{"text": piece} for piece in pieces(reply)]
        else:
            parts = streamed = [
                call_part(call.name, json.loads(call.arguments_text), **({"id": call.id} if self.ids else {}))
                for call in reply
            ]
        chunks = (_response(request, reply, [part], is_last=part is streamed[-1]) for part in streamed)
        return answer({"stream": streams}, _response(request, reply, parts), chunks)


class GeminiServerWithIds(GeminiServer):
    """A server of the same API with an id in each call, which the answer carries back."""

    ids: ClassVar[bool] = True


def _text(response: Json) -> str:
    """Return a result's text: the value in the object that SDKs put around it, or the object itself."""
    value = response["result"] if response.keys() == {"result"} else response
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _response(request: Json, reply: Reply, parts: list[Json], *, is_last: bool = True) -> Json:
    read, wrote = usage(request, reply)
    tokens = {"promptTokenCount": read, "candidatesTokenCount": wrote, "totalTokenCount": read + wrote}
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    if is_last:
        candidate["finishReason"] = "STOP"
    return {
        "candidates": [candidate],
        "usageMetadata": {**tokens, "cachedContentTokenCount": CACHED_TOKENS},
        "modelVersion": MODEL,
    }


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
        variables = (pair for part in self._parts for pair in part.variables.items())
        return {name: value.format(url=self.url) for name, value in variables}


def scripted(*replies: Reply | Decider, port: int = 0) -> ProvidersServer:
    """Return a server that gives the replies in order, for a ``with`` statement."""
    return ProvidersServer(Replies(*replies), port)
