"""How remedies change a model request: the argument with its body, and the change for the last request of a run.

In a last request the model calls no tool and answers. The note goes into the system message at the beginning: several
servers reject one that follows other messages. The tools stay in the request, because providers reject calls in the
history of a request without tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agent_otel._internal.object_kinds import fields, is_dict, listed, text
from agent_otel.core import tool_names
from agent_otel.core.types import Exchange, Invocation, ModelReader
from agent_otel.messages.fields import without

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Arguments of SDKs' functions that concern tools or the form of the answer.
OF_ANSWERS = (
    *("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "response_format", "n", "stop"),
    *("logprobs", "top_logprobs", "prediction"),
)

_SYSTEMS = ("system", "developer")
_REQUIRED = ("required", "REQUIRED", "any", "tool", "function", "custom")


def joined(before: Any, note: str) -> Any:
    """Return a system text, or a list of blocks, with the note behind it."""
    if text(before):
        return f"{text(before)}\n\n{note}"
    blocks = listed(before)
    return [*blocks, {"type": "text", "text": note}] if blocks else note


def with_system(messages: list[Any], note: str, make: Callable[[], Any] | None = None) -> list[Any]:
    """Return chat messages with the note in their first system message, which ``make`` returns where there is none."""
    first = fields(messages[0]) if messages else {}
    if text(first.get("role")) in _SYSTEMS:
        content = {"content": joined(first.get("content"), note)}
        noted = {**first, **content} if is_dict(messages[0]) else messages[0].model_copy(update=content)
        return [noted, *messages[1:]]
    return [{"role": "system", "content": note} if make is None else make(), *messages]


def tool_fields(body: Mapping[str, Any], none: Any = "none") -> dict[str, Any]:
    """Return the fields of a request that forbid tool calls; ``none`` is the provider's value of ``tool_choice``.

    Where the program requires a call, the answer itself is a call of an output tool: those that no adapter has called
    stay usable. Where it requires one of them by name, providers demand that this one is among the tools.
    """
    if listed(body.get("functions")):
        return {"function_call": "none"}
    tools, choice = listed(body.get("tools")), body.get("tool_choice")
    if not tools:
        return {}
    if is_forced(choice) and (named := _name(fields(choice))) is not None:
        return {"tool_choice": none} if tool_names.is_called(named) else {}
    named_tools = [(tool, _name(fields(tool))) for tool in tools]
    outputs = [tool for tool, name in named_tools if name is not None and not tool_names.is_called(name)]
    return {"tools": outputs} if is_forced(choice) and outputs else {"tool_choice": none}


def is_forced(choice: object) -> bool:
    """Return True for a ``tool_choice`` with which the model may only call tools."""
    return (text(choice) or text(fields(choice).get("type"))) in _REQUIRED


def _name(tool: Mapping[str, Any]) -> str | None:
    """Return the name of a tool, in its definition or in a choice of it; None for one without."""
    named = (text(fields(tool.get(key)).get("name")) for key in ("function", "custom"))
    return text(tool.get("name")) or next(filter(None, named), None)


class BodyArgument(NamedTuple):
    """The argument that has the body, as a dictionary that the SDK makes for a request: its keys are given."""

    place: int
    name: str
    model: str
    messages: str = "messages"

    def rewrite(self, invocation: Invocation, view: Callable[..., Any]) -> None:
        """Put a view in the place of the messages."""
        body = invocation.arg(self.place, self.name)
        if is_dict(body) and type(fields(body).get(self.messages)) is list:
            body[self.messages] = view(body[self.messages])

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
        names = ("tools", "functions", "tool_choice", "n")
        named = {name: given[name] for name in names if given.get(name) is not None}
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
        invocation.args = invocation.args[: self.place]
        invocation.kwargs = {**invocation.kwargs, **body}

    def apart(self, invocation: Invocation, body: dict[str, Any], model: str) -> Invocation:
        """Return a call with other messages and without tools."""
        own = without(invocation.kwargs, *OF_ANSWERS)
        args, named = ((), {"model": model}) if model else (invocation.args[: self.place], {})
        return Invocation(invocation.instance, args, {**own, "messages": body["messages"], **named})

    def exchange(self, plain: Callable[[Any], Any]) -> Exchange:
        """Return the exchange of the function."""
        return Exchange(self.body, self.put, plain, apart=self.apart)

    def reader(self, *reads: Any, **others: Any) -> ModelReader:
        """Return the reader of the function."""
        return ModelReader(*reads, **{"rewrite": self.rewrite, "answer_only": self.answer_only, **others})
