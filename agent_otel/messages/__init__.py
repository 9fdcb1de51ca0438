"""Tool calls and results independent of their format, and the interface of a provider's format.

All functions read and return plain data: dictionaries as JSON has them. They never change what they get.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from agent_otel.messages.fields import fields, listed, names_of, without

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_otel.messages.fields import Path

Body = dict[str, Any]

#: Kinds of a stream's items. ``NEUTRAL``: neither text for the user nor a tool call, such as the beginning, reasoning
#: and the end.
NEUTRAL, TEXT, CALL = "neutral", "text", "call"


class RequestedCall(NamedTuple):
    """A tool call in a message. ``arguments`` stand at ``path``: a mapping, JSON text, or ``free`` text."""

    path: Path
    id: str | None
    name: str | None
    arguments: Any
    free: bool = False


class AnsweredCall(NamedTuple):
    """A tool's result in a message. ``content`` stands at ``path``: text, blocks, or a mapping.

    ``failed`` is the message's own error flag, or None if its format has none.
    """

    path: Path
    id: str | None
    name: str | None
    content: Any
    failed: bool | None = None


class Transcript(NamedTuple):
    """The calls and results of one message, and whether the user sent it. ``id`` is the message's own id."""

    asked: tuple[RequestedCall, ...] = ()
    answered: tuple[AnsweredCall, ...] = ()
    by_user: bool = False
    id: str | None = None


class Tool(NamedTuple):
    """A tool to offer: its name, its description, and the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class Call(NamedTuple):
    """A tool call in a response; ``arguments`` are JSON text or a dictionary.

    ``kind`` is the type of the call where the format has several.
    """

    id: str | None
    name: str
    arguments: Any
    kind: str = ""


class Answer(NamedTuple):
    """The answer to a call: text, and the same as a dictionary."""

    call: Call
    data: dict[str, Any]

    @property
    def text(self) -> str:
        """The answer as compact JSON."""
        return json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))


class Format(Protocol):
    """The requests, responses and streams of a provider."""

    #: Key of the body under which the messages are.
    messages: ClassVar[str]
    #: Fields about tools, and about the schema of the answer, which a request for a text does not have.
    of_tools: ClassVar[tuple[str, ...]]
    #: Keys in a tool below which its name is, and the key of a tool that carries a cache point.
    named_below: ClassVar[tuple[str, ...]] = ()
    cache_point: ClassVar[str] = ""
    #: The types of a stream's first events, the type of an event that begins an output item or a content block, and the
    #: key of an event's place.
    first_events: ClassVar[tuple[str, ...]] = ()
    begins: ClassVar[str] = ""
    place: ClassVar[str] = ""

    def asking(self, body: Mapping[str, Any], instructions: str, prompt: str) -> Body:
        """Return a request with instructions and a text in place of the messages, without tools and schema."""
        messages = [self.statement(prompt, "user")]
        return {**without(body, *self.of_tools), **self.system(instructions), self.messages: messages}

    def system(self, instructions: str) -> Body:
        """Return the field of a request that has the system prompt."""
        return {"system": instructions}

    def answer(self, response: Mapping[str, Any]) -> str:
        """Return the text of a response."""

    def pair(self, call_id: str, name: str, result: str) -> list[Any]:
        """Return a call without arguments and its result."""

    def statement(self, words: str, role: str = "assistant") -> Any:
        """Return a message of the model, or of another role."""
        return {"role": role, "content": words}

    def takes(self, body: Mapping[str, Any], name: str) -> bool:
        """Return True when a tool of this name can be offered: the request has none yet and allows tool calls."""
        return name not in names_of(body.get("tools"), *self.named_below)

    def hides(self, body: Mapping[str, Any]) -> bool:  # noqa: ARG002 - most requests are whole
        """Return True when the provider has earlier messages of the conversation, or keeps the tools from now on."""
        return False

    def fixes(self, body: Mapping[str, Any]) -> bool:  # noqa: ARG002 - as above
        """Return True when the provider has the tools, and no request can add one to them."""
        return False

    def offering(self, body: Mapping[str, Any], tool: Tool) -> Body:
        """Return a request that offers one tool more; a last tool with a cache point stays the last."""
        tools = list(listed(body.get("tools")))
        is_marked = bool(tools) and self.cache_point in fields(tools[-1])
        tools.insert(len(tools) - is_marked, self.declared(tool))
        return {**body, "tools": tools}

    def declared(self, tool: Tool) -> Body:
        """Return a tool as a request has it."""

    def closed(self, body: Mapping[str, Any]) -> Body:
        """Return a request that allows no tool call, where the format can express that."""
        return {**body, "tool_choice": "none"}

    def calls(self, response: Mapping[str, Any]) -> list[Call]:
        """Return the calls that a response makes of the program's tools."""

    def answered(self, body: Mapping[str, Any], response: Mapping[str, Any], answers: Sequence[Answer]) -> Body:
        """Return a request with the response and the answers to its calls behind the messages."""

    def kind(self, item: Mapping[str, Any]) -> str:
        """Return the kind of a stream's item."""

    def folded(self, items: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return the response that the items of a stream amount to."""

    def joined(self, item: Mapping[str, Any], passed: int) -> Mapping[str, Any] | None:
        """Return the changed values of an item behind an earlier response; None for an item to leave out.

        ``passed`` is the number of output items, or content blocks, of the earlier responses that the consumer got.
        Without places in its chunks, a format leaves them as they are.
        """
        if item.get("type") in self.first_events:
            return None
        place = item.get(self.place)
        return {self.place: place + passed} if type(place) is int else {}

    def blocks(self, items: Sequence[Mapping[str, Any]]) -> int:
        """Return the number of output items, or content blocks, that these items of a stream begin."""
        return sum(item.get("type") == self.begins for item in items)
