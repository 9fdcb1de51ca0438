"""The scripted model behind Ollama's chat, whole and streamed. Calls are matched by order: its protocol has no ids."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_otel.testing.servers.replies import pieces
from agent_otel.testing.servers.scripted import Answer, ScriptedServer, result

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_otel.testing.servers.scripted import Decider, Endpoint, Json, Reply


class OllamaServer(ScriptedServer):
    """A server of ``/api/chat`` and, whole, of ``/api/generate``."""

    def __init__(self, decider: Decider) -> None:
        self._ids: dict[str, str] = {}
        super().__init__(decider)

    def endpoints(self) -> Mapping[str, Endpoint]:
        """Return the endpoints by path."""
        return {"/api/chat": _answer, "/api/generate": _generated}

    def replied(self, request: Json, reply: Reply) -> None:
        """Remember the ids of calls, which are not sent."""
        for call in reply if isinstance(reply, list) else ():
            self._ids[_key(request, call.name, json.loads(call.arguments_text))] = call.id

    def messages(self, request: Json) -> list[Json]:
        """Return a request's messages, with the ids of the calls that the model made."""
        found: list[Json] = []
        unanswered: list[str] = []
        for message in request.get("messages", []):
            calls = [call["function"] for call in message.get("tool_calls") or ()]
            unanswered += [
                self._ids.get(_key(request, call["name"], call["arguments"]), call["name"]) for call in calls
            ]
            found.append(
                result(unanswered.pop(0), message.get("content", "")) if message["role"] == "tool" else message
            )
        return found


#: The fields at the end of an answer; times are in nanoseconds.
_END = {
    "done": True,
    "total_duration": 4_000_000,
    "load_duration": 1_000_000,
    "prompt_eval_count": 10,
    "prompt_eval_duration": 1_000_000,
    "eval_count": 2,
    "eval_duration": 2_000_000,
}


def _key(request: Json, name: str, arguments: Any) -> str:
    said = [message["content"] for message in request.get("messages", []) if message["role"] == "user"]
    return json.dumps([said, name, arguments], sort_keys=True)


def _generated(request: Json, reply: Reply) -> Answer:
    ended = {**_END, "context": [1, 2, 3]}
    whole = {"model": request["model"], "created_at": "2026-11-21T00:00:00Z", "response": str(reply), **ended}
    return Answer(json.dumps(whole).encode())


def _answer(request: Json, reply: Reply) -> Answer:
    if not request.get("stream"):
        return Answer(json.dumps(_part(request, reply, done=True)).encode())
    return Answer((json.dumps(part).encode() + b"\n" for part in _parts(request, reply)), "application/x-ndjson")


def _parts(request: Json, reply: Reply) -> Iterator[Json]:
    if isinstance(reply, str):
        for piece in pieces(reply):
            yield _part(request, piece, done=False)
    else:
        yield _part(request, reply, done=False)
    yield _part(request, "", done=True)


def _part(request: Json, reply: Reply, *, done: bool) -> Json:
    message: Json = {"role": "assistant", "content": reply if isinstance(reply, str) else ""}
    if not isinstance(reply, str):
        calls = [(call.name, json.loads(call.arguments_text)) for call in reply]
        message["tool_calls"] = [{"function": {"name": name, "arguments": arguments}} for name, arguments in calls]
    ended = {"done_reason": "stop", **_END} if done else {"done": False}
    return {"model": request["model"], "created_at": "2026-11-21T00:00:00Z", "message": message, **ended}
