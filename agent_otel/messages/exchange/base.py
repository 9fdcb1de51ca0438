"""The interface of a provider's format for exchanges: a tool is offered, its calls are read, their answers are added.

All functions read and return plain data: dictionaries as JSON has them. They never change what they get.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from agent_otel.messages.fields import fields, listed, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Body = dict[str, Any]

#: Kinds of a stream's items. ``NEUTRAL``: neither text for the user nor a tool call, such as the beginning, reasoning
#: and the end.
NEUTRAL, TEXT, CALL = "neutral", "text", "call"


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

    def takes(self, body: Mapping[str, Any], name: str) -> bool:
        """Return True when a tool of this name can be offered: the request has none yet and allows tool calls."""

    def hides(self, body: Mapping[str, Any]) -> bool:  # noqa: ARG002 - most requests are whole
        """Return True when the provider has earlier messages of the conversation, or keeps the tools from now on."""
        return False

    def fixes(self, body: Mapping[str, Any]) -> bool:  # noqa: ARG002 - as above
        """Return True when the provider has the tools, and no request can add one to them."""
        return False

    def offering(self, body: Mapping[str, Any], tool: Tool) -> Body:
        """Return a request that offers one tool more."""

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

    def joined(self, item: Mapping[str, Any], passed: int) -> Mapping[str, Any] | None:  # noqa: ARG002 - as above
        """Return the changed values of an item behind an earlier response; None for an item to leave out.

        ``passed`` is the number of output items, or content blocks, of the earlier responses that the consumer got.
        Without places in its chunks, a format leaves them as they are.
        """
        return {}

    def blocks(self, items: Sequence[Mapping[str, Any]]) -> int:  # noqa: ARG002 - as above
        """Return the number of output items, or content blocks, that these items of a stream begin."""
        return 0


def without_nulls(value: Mapping[str, Any]) -> Body:
    """Return the fields of a message without those that are null."""
    return {name: each for name, each in value.items() if each is not None}


def names_of(tools: object, *path: str) -> set[str | None]:
    """Return the names of tools, below a path of keys in each."""
    found = set()
    for tool in map(fields, listed(tools)):
        for key in path:
            tool = fields(tool.get(key))  # noqa: PLW2901 - one level down
        found.add(text(tool.get("name")))
    return found
