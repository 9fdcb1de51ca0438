"""OpenAI's chat completions and Responses, and the providers with nearly the same shape: Mistral, Ollama and Cohere."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal.object_kinds import attributes, given, is_dict, is_text, plain_text
from agent_otel._internal.object_kinds import listed as elements
from agent_otel.core.types import RequestPart
from agent_otel.messages import CALL, NEUTRAL, TEXT, Answer, Body, Call, Format, RequestedCall, Tool
from agent_otel.messages.fields import fields, first, is_kept, is_list, listed, text, text_of, without, without_nulls
from agent_otel.semconv import ASSISTANT, COMPACTION, SYSTEM, TOOL_CALL_ARGUMENTS, TOOL_RESULTS, TOOLS, USER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


#: Types of blocks that streams bring in pieces.
_IN_PIECES: Final = ("thinking", "text")
#: Their fields that grow, and the fields of a message that hold such blocks.
_GROWING: Final = ("thinking", "text", "signature")
_OF_BLOCKS: Final = ("content", "thinking_blocks")
#: The field of the arguments by the field that has a call.
_ARGUMENTS: Final = (("function", "arguments"), ("custom", "input"))


class Chat(Format):
    """Chat completions."""

    messages = "messages"
    of_tools = (
        *("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "response_format", "n", "stop"),
        *("logprobs", "top_logprobs", "modalities", "audio", "prediction", "web_search_options", "format"),
    )
    named_below = ("function",)

    def asking(self, body: Mapping[str, Any], instructions: str, prompt: str) -> Body:
        """Put the instructions into the first message."""
        messages = [self.statement(instructions, "system"), self.statement(prompt, "user")]
        return {**without(body, *self.of_tools), "messages": messages}

    def answer(self, response: Mapping[str, Any]) -> str:
        """Return the text of the first choice."""
        return text_of(self._message(response).get("content"))

    def pair(self, call_id: str, name: str, result: str) -> list[Any]:
        """Return a message with the call and one with the result."""
        asked = {"role": "assistant", "content": None, "tool_calls": [chat_call(call_id, name, "{}")]}
        return [asked, self._result(Call(call_id, name, "{}"), result)]

    def takes(self, body: Mapping[str, Any], name: str) -> bool:
        """Return True unless the tool is there, several choices are asked for, or calls are switched off."""
        if body.get("n") not in (None, 1) or body.get("functions") or body.get("tool_choice") == "none":
            return False
        return super().takes(body, name)

    def declared(self, tool: Tool) -> Body:
        """Return a function."""
        return {"type": "function", "function": tool._asdict()}

    def calls(self, response: Mapping[str, Any]) -> list[Call]:
        """Return the calls of the first choice."""
        found = []
        for call in map(fields, listed(self._message(response).get("tool_calls"))):
            function = fields(call.get("function")) or fields(call.get("custom"))
            found.append(Call(text(call.get("id")), text(function.get("name")) or "", function.get("arguments")))
        return found

    def answered(self, body: Mapping[str, Any], response: Mapping[str, Any], answers: Sequence[Answer]) -> Body:
        """Add the model's message, and a message of each answer."""
        message = {"role": "assistant", **without_nulls(self._message(response))}
        message.pop("parsed", None)  # the SDK's own, as are the parsed arguments of calls
        if listed(message.get("tool_calls")):
            message["tool_calls"] = list(map(_call, listed(message["tool_calls"])))
        results = [self._result(answer.call, answer.text) for answer in answers]
        return {**body, "messages": [*listed(body.get("messages")), message, *results]}

    def kind(self, item: Mapping[str, Any]) -> str:
        """Return the kind of a chunk."""
        delta = self._delta(item)
        if listed(delta.get("tool_calls")):
            return CALL
        return TEXT if text(delta.get("content")) else NEUTRAL

    def folded(self, items: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Join the chunks' texts, and the calls by their indexes."""
        message: Body = {}
        calls: dict[Any, Body] = {}
        for delta in map(self._delta, items):
            for key, value in delta.items():
                if key == "tool_calls":
                    for place, piece in enumerate(map(fields, listed(value))):
                        _add_call(calls, piece, place)
                elif key in _OF_BLOCKS and (is_list(value) or is_list(message.get(key))):
                    message[key] = _with_pieces(_as_blocks(message.get(key)), _as_blocks(value))
                elif type(value) is str and key != "role":
                    message[key] = (message.get(key) or "") + value
                elif value is not None:
                    message[key] = value
        if calls:
            message["tool_calls"] = list(calls.values())
        return {"choices": [{"message": message}]}

    @staticmethod
    def _message(response: Mapping[str, Any]) -> Mapping[str, Any]:
        return first(response, "choices", "message")

    @staticmethod
    def _delta(item: Mapping[str, Any]) -> Mapping[str, Any]:
        return first(item, "choices", "delta")

    @staticmethod
    def _result(call: Call, result: str) -> Body:
        return {"role": "tool", "tool_call_id": call.id, "content": result}


def _call(given: Any) -> Any:
    """Return a call without the arguments that the SDK has parsed."""
    function = fields(fields(given).get("function"))
    return {**given, "function": without(function, "parsed_arguments")} if "parsed_arguments" in function else given


def chat_call(call_id: str, name: str, arguments: Any) -> Body:
    """Return a call as a message of a chat has it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _as_blocks(value: Any) -> list[Any]:
    """Return a content as blocks: a text is one."""
    if is_list(value):
        return [*listed(value)]
    return [{"type": "text", "text": value}] if value else []


def _with_pieces(blocks: list[Any], pieces: list[Any]) -> list[Any]:
    """Return the blocks with further pieces: of thinking and of text, several are one block until it is signed."""
    found = list(blocks)
    for each in pieces:
        piece, last = fields(each), fields(found[-1]) if found else {}
        if not piece:
            found.append(each)
        elif piece.get("type") in _IN_PIECES and last.get("type") == piece["type"] and not last.get("signature"):
            found[-1] = {**last, **{name: _longer(name, last.get(name), value) for name, value in piece.items()}}
        else:
            found.append({**piece})
    return found


def _longer(name: str, before: Any, value: Any) -> Any:
    if name in _GROWING and is_list(before) and is_list(value):
        return _with_pieces([*before], [*value])
    if name in _GROWING and type(before) is str and type(value) is str:
        return before + value
    return before if value is None else value


def _add_call(calls: dict[Any, Body], piece: Mapping[str, Any], place: int) -> None:
    """Add a piece of a call to the call with its index."""
    function = fields(piece.get("function"))
    index = piece.get("index")
    call = calls.setdefault(place if index is None else index, {"type": "function", "function": {"arguments": ""}})
    rest = {name: value for name, value in piece.items() if name not in ("index", "function") and value is not None}
    call.update(rest)
    inner = call["function"]
    for name, value in function.items():
        if name == "arguments" and type(value) is str:
            inner[name] = (inner[name] if type(inner[name]) is str else "") + value
        elif value is not None:
            inner[name] = value


class Mistral(Chat):
    """Mistral's chat completions, whose results also have the tool's name."""

    def pair(self, call_id: str, name: str, result: str) -> list[Any]:
        """Return the messages; one with a call has an empty text."""
        asked, answer = super().pair(call_id, name, result)
        return [{**asked, "content": ""}, answer]

    @staticmethod
    def _result(call: Call, result: str) -> Body:
        return {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": result}


class Ollama(Chat):
    """Ollama's chat: no choices, no call ids, arguments as objects."""

    def pair(self, call_id: str, name: str, result: str) -> list[Any]:
        """Return the messages without an id."""
        asked = self.statement("") | {"tool_calls": [{"function": {"name": name, "arguments": {}}}]}
        return [asked, self._result(Call(call_id, name, {}), result)]

    @staticmethod
    def _message(response: Mapping[str, Any]) -> Mapping[str, Any]:
        return fields(response.get("message"))

    @staticmethod
    def _delta(item: Mapping[str, Any]) -> Mapping[str, Any]:
        return without_nulls(fields(fields(item).get("message")))

    @staticmethod
    def _result(call: Call, result: str) -> Body:
        return {"role": "tool", "tool_name": call.name, "content": result}

    def folded(self, items: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Join the parts' texts and calls; each part has whole calls."""
        message: Body = {}
        calls: list[Any] = []
        for delta in map(self._delta, items):
            calls += listed(delta.get("tool_calls"))
            for key in ("content", "thinking"):
                if text(delta.get(key)):
                    message[key] = message.get(key, "") + delta[key]
        return {"message": {"role": "assistant", **message, **({"tool_calls": calls} if calls else {})}}


class Cohere(Chat):
    """Whole responses of Cohere's chat, version 2: no choices, and its own words for the choice of tools."""

    def takes(self, body: Mapping[str, Any], name: str) -> bool:
        """Return True unless the tool is there, or calls are switched off."""
        return body.get("tool_choice") != "NONE" and super().takes(body, name)

    def closed(self, body: Mapping[str, Any]) -> Body:
        """Switch tool calls off."""
        return {**body, "tool_choice": "NONE"}

    _message = staticmethod(Ollama._message)  # noqa: SLF001 - of this module


#: Items whose id is not required.
_FREE_OF_IDS: Final = ("message", "function_call", "custom_tool_call")
#: Types of calls that the program answers, and of items that it alone can answer: with a picture, or by asking.
_CALLS: Final = ("function_call", "custom_tool_call", "shell_call", "local_shell_call", "apply_patch_call")
_LEFT_OUT: Final = ("computer_call", "mcp_approval_request")
_TERMINAL: Final = ("response.completed", "response.incomplete", "response.failed")


def _item(item: Any) -> Body:
    """Return an item of an output as the API takes it: without the fields that the SDK has parsed."""
    plain = without(without_nulls(fields(item)), "parsed_arguments")
    if plain.get("type") == "message":
        plain["content"] = [without(fields(block), "parsed") for block in listed(plain.get("content"))]
    return plain


def call_item(call_id: str, name: str, arguments: str) -> Body:
    """Return the item of a call."""
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def _is_call(item: Mapping[str, Any]) -> bool:
    """Return True for a call that the program answers; the provider runs a shell in a container itself."""
    return item.get("type") in _CALLS and fields(item.get("environment")).get("type") != "container_reference"


def _answerable(output: Sequence[Body]) -> list[Body]:
    """Return the items of an output without those that need another answer.

    Reasoning belongs to all items up to the next one, and goes where none of these stays.
    """
    kept: list[Body] = []
    reasons: list[Body] = []
    for is_reasoning, group in groupby(output, lambda item: item.get("type") == "reasoning"):
        if is_reasoning:
            reasons = list(group)
        else:
            items = [item for item in group if item.get("type") not in _LEFT_OUT]
            kept += [*reasons, *items] if items else []
            reasons = []
    return kept + reasons


def _is_bare(item: Mapping[str, Any]) -> bool:
    """Return True for reasoning that the provider looks up by its id."""
    return item.get("type") == "reasoning" and not item.get("encrypted_content")


class Responses(Format):
    """The Responses API."""

    messages = "input"
    of_tools = (
        *("tools", "tool_choice", "parallel_tool_calls", "max_tool_calls", "text", "include", "prompt", "stop"),
        *("context_management", "truncation", "top_logprobs"),
    )
    first_events = ("response.created", "response.in_progress", "response.queued")
    begins = "response.output_item.added"
    place = "output_index"

    def system(self, instructions: str) -> Body:
        """Return the field of the instructions."""
        return {"instructions": instructions}

    def answer(self, response: Mapping[str, Any]) -> str:
        """Return the texts of the messages in the output."""
        items = map(fields, listed(response.get("output")))
        return "".join(text_of(item.get("content")) for item in items if item.get("type") == "message")

    def pair(self, call_id: str, name: str, result: str) -> list[Any]:
        """Return two items."""
        return [call_item(call_id, name, "{}"), self._result(Call(call_id, name, "{}"), result)]

    def takes(self, body: Mapping[str, Any], name: str) -> bool:
        """Return True unless the tool is there, calls are switched off, or the provider answers later."""
        is_open = body.get("tool_choice") != "none" and body.get("background") is not True
        return is_open and super().takes(body, name)

    def hides(self, body: Mapping[str, Any]) -> bool:
        """Return True for a conversation at the provider, which keeps the messages and not the tools."""
        return bool(listed(body.get("tools"))) and is_kept(body)

    def fixes(self, body: Mapping[str, Any]) -> bool:
        """Return True for a prompt at the provider: its tools apply where a request has none."""
        return bool(body.get("prompt")) and not listed(body.get("tools"))

    def declared(self, tool: Tool) -> Body:
        """Return a function."""
        return {"type": "function", **tool._asdict(), "strict": False}

    def calls(self, response: Mapping[str, Any]) -> list[Call]:
        """Return the calls of functions, of custom tools and of the provider's tools that the program runs."""
        return [
            Call(text(item.get("call_id")), text(item.get("name")) or "", item.get("arguments"), item["type"])
            for item in map(fields, listed(response.get("output")))
            if _is_call(item)
        ]

    def answered(self, body: Mapping[str, Any], response: Mapping[str, Any], answers: Sequence[Answer]) -> Body:
        """Add the output and the answers; a conversation at the provider has all but the answers already."""
        items = body.get("input")
        before = listed(items) if is_list(items) else [{"role": "user", "content": items}]
        output = _answerable(list(map(_item, listed(response["output"]))))
        if body.get("store") is False and any(map(_is_bare, output)):  # the provider has kept none of them
            output = [
                without(item, "id") if item.get("type") in _FREE_OF_IDS else item
                for item in output
                if not _is_bare(item)
            ]
        said = [] if body.get("conversation") else [*before, *output]
        return {**body, "input": [*said, *(self._result(answer.call, answer.text) for answer in answers)]}

    def kind(self, item: Mapping[str, Any]) -> str:
        """Return the kind of an event; an item's kind is that of the event that begins it."""
        kind = text(item.get("type")) or ""
        if kind == self.begins:
            added = fields(item.get("item"))
            is_call = _is_call(added) or added.get("type") in _LEFT_OUT
            return CALL if is_call else TEXT if added.get("type") == "message" else NEUTRAL
        if kind.startswith(("response.function_call", "response.custom_tool_call")):
            return CALL
        return (
            TEXT if kind.startswith(("response.output_text", "response.content_part", "response.refusal")) else NEUTRAL
        )

    def folded(self, items: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return the response that the last event carries."""
        ends = (fields(item.get("response")) for item in reversed(items) if item.get("type") in _TERMINAL)
        return next(ends, {})

    @staticmethod
    def _result(call: Call, result: str) -> Body:
        kind = call.kind or "function_call"
        named = {"id" if kind == "local_shell_call" else "call_id": call.id}
        more = {"status": "failed"} if kind == "apply_patch_call" else {}
        output: Any = result
        if kind == "shell_call":
            output = [{"stdout": "", "stderr": result, "outcome": {"type": "exit", "exit_code": 1}}]
        return {"type": f"{kind}_output", **named, **more, "output": output}


def requested(message: Mapping[str, Any]) -> Iterator[RequestedCall]:
    """Yield the calls in the fields of a chat message beside its content."""
    calls = listed(message.get("tool_calls"))
    for place, call in enumerate(map(fields, calls)):
        call_id = text(call.get("id"))
        if "args" in call:  # LangChain's
            yield RequestedCall(("tool_calls", place, "args"), call_id, text(call.get("name")), call["args"])
            continue
        for key, argument in _ARGUMENTS:
            inner = fields(call[key]) if key in call else {}
            if argument in inner:
                path = ("tool_calls", place, key, argument)
                yield RequestedCall(path, call_id, text(inner.get("name")), inner[argument], key == "custom")
    legacy = {} if calls else fields(message.get("function_call"))
    if "arguments" in legacy:
        yield RequestedCall(("function_call", "arguments"), None, text(legacy.get("name")), legacy["arguments"])


_ROLES: Final = {
    "user": USER,
    "assistant": ASSISTANT,
    "system": SYSTEM,
    "developer": SYSTEM,
    "tool": TOOL_RESULTS,
    "function": TOOL_RESULTS,
}
#: Keys of the model's arguments, in the items of calls to different tools.
_ASKED: Final = ("arguments", "input", "action", "operation", "code", "queries")
#: Prefixes of ids that the API generates. Other ids are frameworks' placeholders, the same for all items.
_OWN_IDS: Final = ("msg_", "fc_", "ctc_")
_DONE: Final = "response.output_item.done"


def must_call(body: Mapping[str, Any]) -> bool:
    """Return True where the model may only call tools."""
    choice = body.get("tool_choice")
    return is_dict(choice) or plain_text(choice) == "required"


def chat_head(body: Mapping[str, Any]) -> list[RequestPart]:
    """Return the parts of a chat completion in front of its messages."""
    return [RequestPart(TOOLS, body[key]) for key in ("tools", "functions") if elements(body.get(key))]


def chat_parts(each: Any) -> Iterator[RequestPart]:
    """Yield the parts of a chat message: a dictionary or an object."""
    message = fields(each)
    role, content = message.get("role"), message.get("content")
    role = role if type(role) is str else plain_text(role) or ""
    content = content if type(content) is str else _content(content)
    if content is not None:
        # The core makes plain texts of ids and names.
        yield RequestPart(_ROLES.get(role, USER), content, message.get("tool_call_id"), message.get("name"))
    if "tool_calls" not in message and "function_call" not in message:
        return
    calls = list(map(fields, elements(message.get("tool_calls"))))
    if "function_call" in message:
        calls.append({"function": message["function_call"]})
    for call in calls:
        asked = fields(call.get("function")) or fields(call.get("custom"))
        if asked:
            arguments = asked.get("arguments")
            if type(arguments) is not str or not arguments:
                arguments = given(arguments, asked.get("input"))
            yield RequestPart(TOOL_CALL_ARGUMENTS, arguments, call.get("id"), asked.get("name"))


def _content(value: Any) -> Any:
    """Return a message's content, or None if it is missing or a sentinel of an omitted key."""
    cls = type(value)
    if issubclass(cls, tuple):
        return elements(value)
    return value if issubclass(cls, str | list | dict | int | float) else None


def items_head(body: Mapping[str, Any]) -> list[RequestPart]:
    """Return the parts of a request to the Responses API in front of its items."""
    tools, instructions, said = (body.get(key) for key in ("tools", "instructions", "input"))
    found = [RequestPart(TOOLS, tools)] if elements(tools) else []
    if is_text(instructions):
        found.append(RequestPart(SYSTEM, instructions))
    if is_text(said):
        found.append(RequestPart(USER, said))
    return found


def item_parts(each: Any) -> Iterator[RequestPart]:
    """Yield the parts of an item. The model reads each item but a reference."""
    item = fields(each)
    kind = plain_text(given(item.get("type"), "message"))
    if kind is None:
        return
    item_id = plain_text(item.get("id"))
    item_id = item_id if item_id is not None and item_id.startswith(_OWN_IDS) else None
    if kind == "message":
        role, content = plain_text(item.get("role")), _content(item.get("content"))
        if content is not None:
            yield RequestPart(_ROLES.get(role or "", USER), content, message_id=item_id)
    elif kind.endswith("_call_output") or kind == "program_output":
        call_id = plain_text(given(item.get("call_id"), item.get("id")))  # a local shell's output has its call's as id
        yield RequestPart(TOOL_RESULTS, given(_content(item.get("output")), item.get("result")), call_id or None)
    elif kind.endswith("_call"):
        asked = next((value for name in _ASKED if (value := item.get(name)) is not None), "")
        name = plain_text(item.get("name")) or kind.removesuffix("_call")
        yield RequestPart(TOOL_CALL_ARGUMENTS, asked, item.get("call_id"), name, item_id)
        # The provider ran this tool, so no call of it was measured here.
        for name in ("output", "results", "result"):
            if item.get(name) is not None:
                yield RequestPart(TOOL_RESULTS, item.get(name))
    else:
        yield from _other_parts(kind, item)


def _other_parts(kind: str, item: Mapping[str, Any]) -> Iterator[RequestPart]:
    """Yield the part of an item that is neither a message nor a call."""
    if kind in {"reasoning", COMPACTION}:
        value = given(item.get("encrypted_content"), item.get("summary"))
        yield RequestPart(ASSISTANT, value, name=COMPACTION if kind == COMPACTION else None)
    elif item.get("tools") is not None:  # that a server lists, a search has found, or the program adds
        yield RequestPart(TOOLS, elements(item["tools"]))
    elif kind != "item_reference":
        yield RequestPart(ASSISTANT, item)


def hosted(response: Any) -> Iterator[tuple[RequestPart, RequestPart]]:
    """Read the calls of MCP tools that OpenAI has made, in a response or in the event at the end of such a call."""
    known = attributes(response)
    is_event = "type" in known and plain_text(known["type"]) == _DONE
    for item in map(fields, [known.get("item")] if is_event else elements(known.get("output"))):
        output, error = item.get("output"), item.get("error")
        if plain_text(item.get("type")) == "mcp_call" and (output is not None or error is not None):
            call_id, name = item.get("id"), item.get("name")
            yield (
                RequestPart(TOOL_CALL_ARGUMENTS, given(item.get("arguments")), call_id, name),
                RequestPart(TOOL_RESULTS, given(output, error), call_id, name, failed=error is not None),
            )


def passes(item: Any) -> bool:
    """Return true for a chunk or event of a stream with neither tokens nor a call."""
    known = attributes(item)
    if known.get("usage") is not None or "response" in known or "output" in known:
        return False
    choices = known.get("choices")
    if choices:
        choice = attributes(choices[0]) if type(choices) is list else {}
        delta = attributes(choice.get("delta"))
        return not (choice.get("finish_reason") or delta.get("tool_calls") or delta.get("function_call"))
    return "type" not in known or plain_text(known["type"]) not in {_DONE, "error"}
