"""Common base of the scripted servers: requests are kept as they came, and a decider sees them in OpenAI's shape.

A decider that is written for one provider's API serves them all: each server shows it a request as messages with roles,
the tools' results by call id among them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from agent_otel.testing.servers.replies import Decider, Json, Reply, tool_results
from agent_otel.testing.servers.web import Answer, LoopbackServer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_otel.testing.servers.web import Route

__all__ = ["Decider", "Endpoint", "Json", "RefusedError", "Reply", "ScriptedServer", "result"]

Endpoint: TypeAlias = Callable[[Json, Reply], Answer]


class RefusedError(Exception):
    """Raised by a decider for a request that the provider refuses, such as with 429 and the header ``retry-after``."""

    def __init__(
        self, status: int = 429, headers: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(status)
        self.answer = Answer(
            json.dumps(body or {"error": {"message": "refused", "type": "refused"}}).encode(),
            status=status,
            headers=headers or {},
        )


class ScriptedServer(LoopbackServer):
    """A server of a provider's endpoints; ``requests`` holds every body that it got, parsed."""

    def __init__(self, decider: Decider, port: int = 0) -> None:
        self.requests: list[Json] = []
        self._decider = decider
        super().__init__({path: self._route(endpoint) for path, endpoint in self.endpoints().items()}, port)

    def endpoints(self) -> Mapping[str, Endpoint]:
        """Return the endpoints by path; ``*`` in a path stands for any text."""
        raise NotImplementedError

    @property
    def base_url(self) -> str:
        """The base URL for a client."""
        return self.url

    @property
    def environment(self) -> dict[str, str]:
        """The variables that point a client at this server."""
        return {}

    def messages(self, request: Json) -> list[Json]:
        """Return a request's messages in the shape of OpenAI's chat completions."""
        raise NotImplementedError

    def seen(self, request: Json) -> Json:
        """Return the request that the decider gets."""
        return {"messages": self.messages(request)}

    def replied(self, request: Json, reply: Reply) -> None:
        """Take note of the model's reply."""

    def tool_results(self) -> dict[str, str]:
        """Return the tool results by call id over all requests, each as it was sent last."""
        return {call: text for request in self.requests for call, text in tool_results(self.seen(request)).items()}

    def _route(self, endpoint: Endpoint) -> Route:
        def answer(body: bytes) -> Answer:
            request = json.loads(body)
            self.requests.append(request)
            try:
                reply = self._decider(self.seen(request))
            except RefusedError as refused:
                return refused.answer
            except Exception as error:
                # 400 and not 500: clients retry a 500, and a fault in a script should show at once.
                message = f"the script failed, {type(error).__name__}: {error}"
                return Answer(json.dumps({"error": {"message": message}}).encode(), status=400)
            self.replied(request, reply)
            return endpoint(request, reply)

        return answer


def result(call_id: str, content: object) -> Json:
    """Return a tool's result as a message of OpenAI's."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}
