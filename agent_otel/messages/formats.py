"""All formats by name, and the histories in them: each message's tool calls and results by its own fields.

Messages have a role or type and content (OpenAI's chat, Anthropic, Bedrock, LangChain), or are items of OpenAI's
Responses, or contents of Gemini. Dictionaries and objects of SDKs are both read, and no framework is imported.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal.errors import ours
from agent_otel.messages import AnsweredCall, RequestedCall, Transcript, anthropic, gemini, openai
from agent_otel.messages.fields import fields, is_list, listed, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_otel.messages import Format

FORMATS: Final[Mapping[str, Format]] = {
    "chat": openai.Chat(),
    "responses": openai.Responses(),
    "anthropic": anthropic.Anthropic(),
    "bedrock": anthropic.Bedrock(),
    "gemini": gemini.Gemini(),
    "mistral": openai.Mistral(),
    "ollama": openai.Ollama(),
    "cohere": openai.Cohere(),
}

NOTHING: Final = Transcript()
_USERS: Final = ("user", "human", "HumanMessageChunk")
_MODELS: Final = ("assistant", "ai", "AIMessageChunk")
_TOOLS: Final = ("tool", "function", "ToolMessageChunk", "FunctionMessageChunk")
_OTHERS: Final = ("system", "developer", "SystemMessageChunk")
_KINDS: Final = frozenset((*_USERS, *_MODELS, *_TOOLS, *_OTHERS))
_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output")
#: Prefixes of ids that the Responses API generates. Other ids are frameworks' placeholders, the same for all items.
_OWN_IDS: Final = ("msg_", "fc_", "fco_", "ctc_", "ctco_", "rs_")
_ITEMS: Final = frozenset({"function_call", "function_call_output", "reasoning"})
_BLOCKS: Final = frozenset({"tool_use", "tool_result"})


def transcript(message: Any) -> Transcript:
    """Return a message's calls and results; none for a message that cannot be read."""
    try:
        known = fields(message)
        return gemini.transcript(known) or _item(known) or _message(known) or NOTHING
    except ours(Exception):  # a message that raises when it is read stays unchanged, like the rest of the history
        return NOTHING


def _item(item: Mapping[str, Any]) -> Transcript | None:
    """Read an item of the Responses API; None for another type. Reasoning is left alone."""
    kind = item.get("type")
    if type(kind) is not str:
        return None
    own = text(item.get("id"))
    own = own if own is not None and own.startswith(_OWN_IDS) else None
    if kind in _OUTPUTS and "output" in item:
        failed = True if item.get("status") == "failed" else None
        answered = AnsweredCall(("output",), text(item.get("call_id")), None, item["output"], failed)
        return Transcript(answered=(answered,), id=own)
    name = _CALLS.get(kind)
    if name is not None and name in item:
        free = kind == "custom_tool_call"
        asked = RequestedCall((name,), text(item.get("call_id")), text(item.get("name")), item[name], free)
        return Transcript((asked,), id=own)
    if kind == "message":
        seen = _message(item)
        return None if seen is None else seen._replace(id=own)
    return Transcript(id=own) if kind == "reasoning" else None


def _message(message: Mapping[str, Any]) -> Transcript | None:
    """Read a message with a role or type; None for another object."""
    kind = message.get("role") or message.get("type")
    if type(kind) is not str or kind not in _KINDS:
        return None
    content, own = message.get("content"), text(message.get("id"))
    if kind in _TOOLS:
        # LangChain's messages are of status success unless something else was set: no text is the better for it.
        failed = True if message.get("status") == "error" else None
        call_id, name = text(message.get("tool_call_id")), text(message.get("name")) or text(message.get("tool_name"))
        return Transcript(answered=(AnsweredCall(("content",), call_id, name, content, failed),), id=own)
    if kind in _USERS:
        return Transcript((), tuple(anthropic.answered(content)) if is_list(content) else (), True, own)
    asked: tuple[RequestedCall, ...] = ()
    if kind in _MODELS:
        asked = tuple(openai.requested(message))
        if is_list(content):
            ids = [call.id for call in asked]
            asked += tuple(call for call in anthropic.requested(content) if call.id is None or call.id not in ids)
    return Transcript(asked, id=own)


def shape_of(messages: Sequence[Any]) -> str | None:
    """Return the format of a history that has tool calls; None if no format or several formats match."""
    found = {shape for message in messages if (shape := _shape(message)) is not None}
    return found.pop() if len(found) == 1 else None


def pair(messages: Sequence[Any], call_id: str, name: str, result: str) -> list[Any]:
    """Return a call without arguments and its result in the history's format; raise KeyError for an unknown format."""
    shape = shape_of(messages) or ""
    if shape != "langchain":
        return FORMATS[shape].pair(call_id, name, result)
    classes = sys.modules["langchain_core.messages"]
    call = {"id": call_id, "name": name, "args": {}, "type": "tool_call"}
    return [
        classes.AIMessage(content="", tool_calls=[call]),
        classes.ToolMessage(content=result, tool_call_id=call_id, name=name),
    ]


def _shape(message: Any) -> str | None:
    known = fields(message)
    kind = known.get("type")
    if type(message) is not dict:
        return "langchain" if "tool_calls" in known and kind == "ai" else None
    if kind in _ITEMS:
        return "responses"
    if "tool_calls" in known:
        return "chat"
    for block in map(fields, listed(known.get("content"))):
        if block.get("type") in _BLOCKS:
            return "anthropic"
    for part in map(fields, listed(known.get("parts"))):
        if "functionCall" in part or "function_call" in part:
            return "gemini"
    return None
