"""The messages of xAI's SDK: its protocol buffers as the dictionaries of OpenAI's chat, and such dictionaries as those.

The entry is in ``xai.py``.
"""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped, unused-ignore]

from agent_otel.core.plain import fields, is_text, listed, text

# The numbers of the protocol, https://github.com/xai-org/xai-proto.
_ROLES = {1: "user", 2: "assistant", 3: "system", 4: "function", 5: "tool", 6: "developer"}
_NUMBERS = {name: number for number, name in _ROLES.items()}
_CHOICES = {1: "auto", 2: "none", 3: "required"}
_MODES = {name: number for number, name in _CHOICES.items()}
#: The types of calls that the program answers; the others are those of tools that xAI runs.
_OF_PROGRAM = (0, 1)
#: The place of a message in the request, by which a changed one keeps the fields that are not in OpenAI's chat.
_PLACE = "place"
_OTHER_TEXTS = ("reasoning_content", "encrypted_content", "tool_call_id", "name")


def as_chat(request: Any) -> dict[str, Any]:
    """Return a request as the body of a chat completion."""
    messages = request.input if hasattr(request, "input") else request.messages
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [_message(message, place) for place, message in enumerate(messages)],
    }
    if not hasattr(request, "tools"):
        return body
    choice = request.tool_choice
    if request.tools:
        body["tools"] = list(map(_tool, request.tools))
    if choice.function_name:
        body["tool_choice"] = {"type": "function", "function": {"name": choice.function_name}}
    elif choice.mode in _CHOICES:
        body["tool_choice"] = _CHOICES[choice.mode]
    return body | ({"n": request.n} if request.n > 1 else {})


def _message(message: Any, place: int) -> dict[str, Any]:
    made: dict[str, Any] = {
        "role": _ROLES.get(message.role, "user"),
        "content": _content(message.content),
        **{name: value for name in _OTHER_TEXTS if (value := getattr(message, name))},
        _PLACE: place,
    }
    if message.tool_calls:
        made["tool_calls"] = list(map(_call, message.tool_calls))
    return made


def _content(blocks: Any) -> Any:
    """Return the text of a message, or its blocks where it has an image, a file, or several texts."""
    if len(blocks) == 1 and blocks[0].WhichOneof("content") == "text":
        return blocks[0].text
    return [{"type": each.WhichOneof("content"), **_plain(each)} for each in blocks] or None


def _call(call: Any) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _tool(tool: Any) -> dict[str, Any]:
    if tool.WhichOneof("tool") != "function":
        return _plain(tool)
    function = tool.function
    try:
        parameters = json.loads(function.parameters)
    except ValueError:
        parameters = function.parameters
    described = {"description": function.description} if function.description else {}
    return {"type": "function", "function": {"name": function.name, **described, "parameters": parameters}}


def _plain(message: Any) -> dict[str, Any]:
    made: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return made


def with_body(request: Any, body: dict[str, Any]) -> Any:
    """Return a request with the messages, the further tools and the choice of a body; the given one stays as it is."""
    made = type(request)()
    made.CopyFrom(request)
    del made.messages[:]
    for message in map(fields, listed(body["messages"])):
        _add(made.messages.add(), message, request.messages)
    _put_tools(made, listed(body.get("tools")))
    choice = text(body.get("tool_choice"))
    if choice in _MODES:
        made.tool_choice.Clear()
        made.tool_choice.mode = _MODES[choice]
    return made


def _add(made: Any, message: Any, originals: Any) -> None:
    """Fill a new message; a changed one has its other fields from the original in its place."""
    place = message.get(_PLACE)
    if type(place) is int:
        made.CopyFrom(originals[place])
    before = _message(made, place) if type(place) is int else {}
    made.role = _NUMBERS.get(text(message.get("role")) or "", 1)
    if message.get("content") != before.get("content"):
        blocks = originals[place].content if type(place) is int else ()
        del made.content[:]
        _put_content(made, message.get("content"), listed(before.get("content")), blocks)
    if message.get("tool_calls") != before.get("tool_calls"):
        _put_calls(made, listed(message.get("tool_calls")))
    for name in _OTHER_TEXTS:
        value = text(message.get(name))
        if value and value != before.get(name):
            setattr(made, name, value)


def _put_content(made: Any, content: Any, before: list[Any], blocks: Any) -> None:
    """Put texts into a message, and those of its ``blocks`` that are as ``before``, such as images."""
    others = [(plain, block) for plain, block in zip(before, blocks, strict=False) if not _is_plain_text(plain)]
    for block in (content,) if is_text(content) else listed(content):
        # A message may have thousands of texts, none of which is searched for.
        original = None if _is_plain_text(block) else next((each for plain, each in others if plain == block), None)
        if original is not None:
            made.content.add().CopyFrom(original)
        elif words := text(block if is_text(block) else fields(block).get("text")):
            made.content.add().text = words


def _is_plain_text(block: Any) -> bool:
    return is_text(block) or fields(block).keys() == {"type", "text"}


def _put_calls(made: Any, calls: list[Any]) -> None:
    """Put calls into a message; those of an original keep their types."""
    kinds = [call.type for call in made.tool_calls]
    del made.tool_calls[:]
    for place, call in enumerate(map(fields, calls)):
        function = fields(call.get("function"))
        added = made.tool_calls.add()
        added.id, added.type = text(call.get("id")) or "", kinds[place] if place < len(kinds) else 1
        added.function.name = text(function.get("name")) or ""
        added.function.arguments = text(function.get("arguments")) or ""


def _put_tools(made: Any, tools: list[Any]) -> None:
    """Leave the tools that a body still has, and add those that the request does not have."""
    given = list(map(_tool, made.tools))
    if tools == given:
        return
    kept = [tool for tool, plain in zip(list(made.tools), given, strict=True) if plain in tools]
    del made.tools[:]
    made.tools.extend(kept)
    for tool in tools:
        if tool not in given:
            function, added = fields(fields(tool).get("function")), made.tools.add().function
            added.name, added.description = text(function["name"]) or "", text(function.get("description")) or ""
            added.parameters = json.dumps(function["parameters"])


def as_response(response: Any) -> dict[str, Any]:
    """Return a response, or a chunk of a stream, as a chat completion; of its outputs, the model's calls and texts."""
    outputs = list(response.outputs)
    key = "delta" if outputs and hasattr(outputs[0], "delta") else "message"
    said = [getattr(output, key) for output in outputs]
    calls = [call for each in said for call in each.tool_calls if call.type in _OF_PROGRAM]
    message: dict[str, Any] = {"role": "assistant", "content": "".join(each.content for each in said) or None}
    if calls:
        message["tool_calls"] = [{"index": call.id, **_call(call)} for call in calls]
    for name in ("reasoning_content", "encrypted_content"):
        words = "".join(getattr(each, name) for each in said)
        if words:
            message[name] = words
    return {"choices": [{key: message}] if outputs else []}
