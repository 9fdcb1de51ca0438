"""The bodies of model requests by format: how they are read, and how remedies change them.

In the last request of a run the model calls no tool and answers. The note goes into the system message at the
beginning: several servers reject one that follows other messages. The tools stay in the request, because providers
reject calls in the history of a request without tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agent_otel._internal.object_kinds import fields, is_dict, listed, text
from agent_otel.core import tool_names
from agent_otel.core.thread.request_prefix import Messages
from agent_otel.core.types import Exchange, Invocation, ModelReader, ModelRequest
from agent_otel.messages import anthropic, openai
from agent_otel.messages.fields import is_continued, is_kept, without

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Body = dict[str, Any]

#: Arguments of SDKs' functions that concern tools or the form of the answer.
OF_ANSWERS = (
    *("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "response_format", "n", "stop"),
    *("logprobs", "top_logprobs", "prediction"),
)

_SYSTEMS = ("system", "developer")
_REQUIRED = ("required", "REQUIRED", "any", "tool", "function", "custom")


def joined(before: Any, note: str) -> Any:
    """Return a system text, or a list of blocks, with the note at the end."""
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

    Where the program requires a call, the answer itself is a call of an output tool: tools that no adapter has called
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
    """Return True for a ``tool_choice`` that lets the model only call tools."""
    return (text(choice) or text(fields(choice).get("type"))) in _REQUIRED


def _name(tool: Mapping[str, Any]) -> str | None:
    """Return the name of a tool, in its definition or in a choice of it; None for one without."""
    named = (text(fields(tool.get(key)).get("name")) for key in ("function", "custom"))
    return text(tool.get("name")) or next(filter(None, named), None)


def chat(body: Any) -> Messages:
    """Read the body of a chat completion, as many providers have it: dictionaries or objects."""
    body = fields(body)
    return Messages(openai.chat_head(body), listed(body.get("messages")), openai.chat_parts)


def chat_request(body: Mapping[str, Any]) -> ModelRequest:
    """Read the body of a chat completion with its model, its choice of tools and the number of answers."""
    answers = body.get("n")
    answers = answers if type(answers) is int else 1
    return ModelRequest(chat(body), model=body.get("model"), must_call=openai.must_call(body), answers=answers)


def responses(body: Mapping[str, Any]) -> ModelRequest:
    """Read the body of a request to the Responses API."""
    parts = Messages(openai.items_head(body), listed(body.get("input")), openai.item_parts)
    return ModelRequest(parts, is_continued(body), model=body.get("model"), must_call=openai.must_call(body))


def messages(body: Mapping[str, Any]) -> ModelRequest:
    """Read the body of a request for Anthropic's messages, which other platforms have as well."""
    parts = Messages(anthropic.head(body), listed(body.get("messages")), anthropic.parts)
    # A container that is used again has the data of earlier requests.
    container = body.get("container")
    continued = text(container) is not None or text(fields(container).get("id")) is not None or is_kept(body)
    return ModelRequest(parts, continued, model=body.get("model"), must_call=is_forced(body.get("tool_choice")))


def _answer_chat(body: Body, note: str) -> Body:
    return {**body, "messages": with_system(listed(body.get("messages")), note), **tool_fields(body)}


def _answer_items(body: Body, note: str) -> Body:
    if body.get("prompt") and not listed(body.get("tools")):  # instructions and tools are the provider's
        message = {"role": "developer", "content": note}
        return {**body, "input": [*listed(body.get("input")), message], "tool_choice": "none"}
    # Instructions apply to this request alone, also where the provider keeps the conversation.
    return {**body, "instructions": joined(body.get("instructions"), note), **tool_fields(body)}


def _answer_message(body: Body, note: str) -> Body:
    none = {"type": "none"}
    if not is_kept(body):
        return {**body, "system": joined(body.get("system"), note), **tool_fields(body, none)}
    *before, last = listed(body["messages"])
    last = {**fields(last), "content": joined(fields(last).get("content"), note)}
    return {**body, "messages": [*before, last], "tool_choice": none}


class Form(NamedTuple):
    """A format: its name in `agent_otel.messages`, the reader of a body, and the change for the last request of a run.

    Without a name, a request is not sent again. ``keeps`` returns facts about the provider's memory that a view needs.
    """

    name: str
    read: Callable[[Body], ModelRequest]
    answer_only: Callable[[Body, str], Body] = lambda body, _: body
    keeps: Callable[[Body], dict[str, bool]] = lambda _: {}
    messages: str = "messages"


CHAT = Form("chat", chat_request, _answer_chat)
RESPONSES = Form("responses", responses, _answer_items, lambda body: {"kept": is_continued(body)}, "input")
MESSAGES = Form(
    "anthropic", messages, _answer_message, lambda body: {"cached": anthropic.is_cached(body), "kept": is_kept(body)}
)
_PATHS = {"/chat/completions": CHAT, "/responses": RESPONSES, "/v1/messages": MESSAGES}


def form_at(url: str) -> Form | None:
    """Return the format of requests to a URL or a path; None for others."""
    path = url.partition("?")[0]
    return next((form for end, form in _PATHS.items() if path.endswith(end)), None)


def reading(
    find: Callable[[Invocation], tuple[Form, Body] | None], put: Callable[[Invocation, Body], None]
) -> dict[str, Any]:
    """Return the functions of a `ModelReader` that read and change the body which ``find`` returns with its format."""

    def request(invocation: Invocation) -> ModelRequest | None:
        found = find(invocation)
        return None if found is None else found[0].read(found[1])

    def rewrite(invocation: Invocation, view: Callable[..., Any]) -> None:
        form, body = find(invocation) or (CHAT, {})
        before = body.get(form.messages)
        if type(before) is list and (made := view(before, **form.keeps(body))) is not before:
            put(invocation, {**body, form.messages: made})

    def answer_only(invocation: Invocation, note: str) -> None:
        found = find(invocation)
        if found is not None:
            put(invocation, found[0].answer_only(found[1], note))

    request.__module__ = find.__module__  # the core knows the adapter by it
    return {"request": request, "rewrite": rewrite, "answer_only": answer_only}


class BodyArgument(NamedTuple):
    """The argument that has the body, as a dictionary that the SDK makes for a request: its keys are given."""

    place: int
    name: str
    model: str
    messages: str = "messages"

    def rewrite(self, invocation: Invocation, view: Callable[..., Any]) -> None:
        """Replace the messages with a view."""
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
        """Replace the messages with a view."""
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
