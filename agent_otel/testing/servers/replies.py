"""The script of a model: its replies, and the function that chooses the next one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

from agent_otel.messages.fields import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class ToolCall:
    """A tool call that the model makes. Arguments given as text go out as they are: models write broken JSON."""

    id: str
    name: str
    arguments: Mapping[str, Any] | str

    @property
    def arguments_text(self) -> str:
        """The arguments as the wire carries them."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


Reply: TypeAlias = str | list[ToolCall]
"""A text, or the tool calls of one turn; more than one is a parallel call."""

Decider: TypeAlias = Callable[[Json], Reply]
"""Function that gets the request's body, parsed, and returns the model's reply."""


class Replies:
    """A decider that gives the replies in order, in each conversation anew, and begins again after the last one.

    A conversation is known by the text of its first user message. A reply that is a callable gets the request.
    """

    def __init__(self, *replies: Reply | Decider) -> None:
        if not replies:
            raise ValueError("a model needs at least one reply")
        self._replies = replies
        self._given: dict[str, int] = {}
        self._latest = ""

    def __call__(self, request: Json) -> Reply:
        """Return the next reply of the request's conversation; one without a user message continues the latest."""
        self._latest = _first_user_text(request) or self._latest
        at = self._given.get(self._latest, 0)
        self._given[self._latest] = at + 1
        reply = self._replies[at % len(self._replies)]
        return reply(request) if callable(reply) else reply


def call(name: str, /, **arguments: Any) -> ToolCall:
    """Return a tool call with a new id."""
    return ToolCall(f"call_{uuid4().hex[:12]}", name, arguments)


def from_json(script: Any) -> Replies:
    """Return the replies of a script: a list of texts, and of lists of calls with ``name`` and ``arguments``.

    Raises:
        ValueError: the script has another form.
    """
    if not isinstance(script, list):
        raise ValueError("a script is a list of replies")  # noqa: TRY004 - the value of a file
    return Replies(*(reply if isinstance(reply, str) else _calls(reply) for reply in script))


def _calls(reply: Any) -> Callable[[Json], Reply]:
    """Return a reply that makes the calls, each time with new ids."""
    calls = [reply] if isinstance(reply, dict) else reply
    if not isinstance(calls, list) or not all(isinstance(one, dict) and "name" in one for one in calls):
        raise ValueError(f"a reply is a text, or a list of calls with name and arguments: {json.dumps(reply)[:80]}")
    return lambda _: [call(one["name"], **one.get("arguments", {})) for one in calls]


def _first_user_text(request: Json) -> str:
    messages: Any = request.get("messages") or request.get("input") or ()
    if isinstance(messages, str):
        return messages
    said = (text_of(one.get("content")) for one in messages if isinstance(one, dict) and one.get("role") == "user")
    return next(filter(None, said), "")


def usage(request: Json, reply: Reply) -> tuple[int, int]:
    """Return the tokens in and out by the usual rule of thumb, four characters to a token."""
    text = reply if isinstance(reply, str) else "".join(call.arguments_text for call in reply)
    return len(json.dumps(request)) // 4, len(text) // 4 + 1


def pieces(text: str) -> Iterator[str]:
    """Return two halves, so that a client has to put a streamed value together."""
    middle = len(text) // 2
    return (part for part in (text[:middle], text[middle:]) if part)


def call_once(calls: Sequence[ToolCall], final: str = "done") -> Decider:
    """Return a decider that makes the calls, in one turn, until a request carries a tool result; then ``final``."""

    def decide(request: Json) -> Reply:
        return final if tool_results(request) else list(calls)

    return decide


def chat_tool_results(request: Json) -> dict[str, str]:
    """Return the tool results in a chat request by call id, as they stood on the wire."""
    messages: list[Json] = request.get("messages") or []
    return {m["tool_call_id"]: text_of(m.get("content")) for m in messages if m.get("role") == "tool"}


def tool_results(request: Json) -> dict[str, str]:
    """Return the tool results in a request by call id, as they stood on the wire, in either of OpenAI's shapes."""
    found = chat_tool_results(request)
    items: Any = request.get("input")
    for item in items if isinstance(items, list) else ():
        if str(item.get("type")).endswith("_call_output"):
            found[item["call_id"]] = text_of(item.get("output"))
    return found
