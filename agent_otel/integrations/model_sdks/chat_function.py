"""SDKs whose function takes the body of a request, or its messages and tools, as arguments: remedies change those."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agent_otel.core.plain import listed
from agent_otel.core.types import Invocation
from agent_otel.integrations.final_request import OF_ANSWERS, tool_fields, with_system

if TYPE_CHECKING:
    from collections.abc import Callable


class BodyArgument(NamedTuple):
    """The argument that has the body, as a dictionary that the SDK makes for a request; ``model`` is a key of it."""

    place: int
    name: str
    model: str

    def put(self, invocation: Invocation, body: dict[str, Any]) -> None:
        """Replace the body."""
        given = invocation.arg(self.place, self.name)
        given.clear()
        given.update(body)

    def apart(self, invocation: Invocation, body: dict[str, Any], model: str) -> Invocation:
        """Return a call that sends another body."""
        made = Invocation(invocation.instance, invocation.args, invocation.kwargs)
        made.put(self.place, self.name, {**body, self.model: model} if model else body)
        return made


#: The place of an argument that is given by its name only.
BY_NAME = 1_000


class ChatFunction(NamedTuple):
    """The function: the ``place`` of its messages, its format of exchanges, and its choice of no tool.

    ``plain`` returns a message or a tool as a dictionary, where the SDK has objects that remedies cannot read.
    """

    place: int = BY_NAME
    form: str = "chat"
    none: str = "none"
    plain: Callable[[Any], Any] = lambda value: value

    def messages(self, invocation: Invocation) -> list[Any]:
        """Return the messages."""
        return [self.plain(message) for message in listed(invocation.arg(self.place, "messages"))]

    def tools(self, invocation: Invocation) -> dict[str, Any]:
        """Return the arguments that concern tools."""
        given = invocation.kwargs
        named = {name: given[name] for name in ("tools", "tool_choice", "n") if given.get(name) is not None}
        return {**named, "tools": list(map(self.plain, listed(named["tools"])))} if "tools" in named else named

    def rewrite(self, invocation: Invocation, view: Callable[..., Any]) -> None:
        """Put a view in the place of the messages."""
        messages = self.messages(invocation)
        made = view(messages)
        if made is not messages:
            invocation.put(self.place, "messages", made)

    def answer_only(self, invocation: Invocation, note: str) -> None:
        """Forbid tool calls, and add the note to the system message."""
        invocation.put(self.place, "messages", with_system(self.messages(invocation), note))
        invocation.kwargs = {**invocation.kwargs, **tool_fields(self.tools(invocation), self.none)}

    def body(self, invocation: Invocation) -> tuple[str, dict[str, Any]] | None:
        """Return the format and the body of a request that can be sent again."""
        messages = self.messages(invocation)
        if not messages or len(invocation.args) > self.place + 1:
            return None
        return self.form, {**self.tools(invocation), "messages": messages}

    def put(self, invocation: Invocation, body: dict[str, Any]) -> None:
        """Replace the messages and the tools."""
        invocation.args = ()
        invocation.kwargs = {**invocation.kwargs, **body}

    def apart(self, invocation: Invocation, body: dict[str, Any], model: str) -> Invocation:
        """Return a call with other messages and without tools."""
        own = {name: value for name, value in invocation.kwargs.items() if name not in OF_ANSWERS}
        named = {"model": model} if model else {}
        return Invocation(invocation.instance, (), {**own, "messages": body["messages"], **named})
