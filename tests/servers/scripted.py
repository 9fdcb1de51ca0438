"""What the scripted servers of other providers share: requests are kept as they came and decided on in OpenAI's shape.

A decider that is written for one provider's chat completions serves them all: each server shows it a request as
messages with roles, the tools' results by call id among them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from examples.local_servers.web import Answer, LoopbackServer
from tests.servers.model import Decider, Json, Reply, tool_results

if TYPE_CHECKING:
    from collections.abc import Mapping

    from examples.local_servers.model import Endpoint
    from examples.local_servers.web import Route

__all__ = ["Decider", "Json", "Reply", "ScriptedServer", "result"]


class ScriptedServer(LoopbackServer):
    """Serves its endpoints; ``requests`` holds every body they got, parsed."""

    def __init__(self, decider: Decider) -> None:
        self.requests: list[Json] = []
        self._decider = decider
        super().__init__({path: self._route(endpoint) for path, endpoint in self.endpoints().items()})

    def endpoints(self) -> Mapping[str, Endpoint]:
        """What answers on which path."""
        raise NotImplementedError

    @property
    def base_url(self) -> str:
        """What a client takes as its base URL."""
        return self.url

    def messages(self, request: Json) -> list[Json]:
        """A request's messages in the shape of OpenAI's chat completions."""
        raise NotImplementedError

    def replied(self, request: Json, reply: Reply) -> None:
        """Take note of what the model says."""

    def tool_results(self) -> dict[str, str]:
        """Tool results by call id over all requests; a result sent more than once counts as it was sent last."""
        found: dict[str, str] = {}
        for request in self.requests:
            found.update(tool_results({"messages": self.messages(request)}))
        return found

    def _route(self, endpoint: Endpoint) -> Route:
        def answer(body: bytes) -> Answer:
            request = json.loads(body)
            self.requests.append(request)
            try:
                reply = self._decider({"messages": self.messages(request)})
            except Exception as error:
                message = f"the script failed, {type(error).__name__}: {error}"
                return Answer(json.dumps({"error": {"message": message}}).encode(), status=400)
            self.replied(request, reply)
            return endpoint(request, reply)

        return answer


def result(call_id: str, content: object) -> Json:
    """A tool's result as a message of OpenAI's."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}
