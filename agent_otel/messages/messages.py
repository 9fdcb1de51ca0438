"""Messages with a role or type and content: OpenAI's chat, Anthropic, Bedrock, LangChain and compatible formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_otel.messages.fields import fields, is_list, listed, text
from agent_otel.messages.types import AnsweredCall, RequestedCall, Transcript

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_USERS: Final = ("user", "human", "HumanMessageChunk")
_MODELS: Final = ("assistant", "ai", "AIMessageChunk")
_TOOLS: Final = ("tool", "function", "ToolMessageChunk", "FunctionMessageChunk")
_OTHERS: Final = ("system", "developer", "SystemMessageChunk")
_KINDS: Final = frozenset((*_USERS, *_MODELS, *_TOOLS, *_OTHERS))


def read(message: Mapping[str, Any]) -> Transcript | None:
    """Return a message's calls and results, or None if it has none of these formats."""
    kind = message.get("role") or message.get("type")
    if type(kind) is not str or kind not in _KINDS:
        return None
    content, own = message.get("content"), text(message.get("id"))
    if kind in _TOOLS:
        status = message.get("status")
        # LangChain's messages are of status success unless something else was set: no text is the better for it.
        failed = True if status == "error" else None
        call_id, name = text(message.get("tool_call_id")), text(message.get("name")) or text(message.get("tool_name"))
        answered = (AnsweredCall(("content",), call_id, name, content, failed),)
        return Transcript((), answered, False, own)
    if kind in _USERS:
        return Transcript((), tuple(_answered(content)) if is_list(content) else (), True, own)
    asked: tuple[RequestedCall, ...] = ()
    if kind in _MODELS:
        asked = tuple(_calls(message))
        if is_list(content):
            ids = [call.id for call in asked]
            asked += tuple(call for call in _asked(content) if call.id is None or call.id not in ids)
    return Transcript(asked, (), False, own)


def _calls(message: Mapping[str, Any]) -> Iterator[RequestedCall]:
    """Yield the calls in fields beside the content."""
    calls = listed(message.get("tool_calls"))
    for place, call in enumerate(map(fields, calls)):
        call_id = text(call.get("id"))
        if "args" in call:  # LangChain's
            yield RequestedCall(("tool_calls", place, "args"), call_id, text(call.get("name")), call["args"])
            continue
        for key, argument in (("function", "arguments"), ("custom", "input")):
            inner = fields(call[key]) if key in call else {}
            if argument in inner:
                path = ("tool_calls", place, key, argument)
                yield RequestedCall(path, call_id, text(inner.get("name")), inner[argument], key == "custom")
    legacy = {} if calls else fields(message.get("function_call"))
    if "arguments" in legacy:
        yield RequestedCall(("function_call", "arguments"), None, text(legacy.get("name")), legacy["arguments"])


def _asked(content: Any) -> Iterator[RequestedCall]:
    """Yield the calls among the content's blocks, except those of tools that the provider runs itself."""
    for place, block in enumerate(map(fields, content)):
        if block.get("type") == "tool_use":
            yield RequestedCall(
                ("content", place, "input"), text(block.get("id")), text(block.get("name")), block.get("input")
            )
        elif "toolUse" in block and "type" not in (inner := fields(block["toolUse"])):
            path = ("content", place, "toolUse", "input")
            yield RequestedCall(path, text(inner.get("toolUseId")), text(inner.get("name")), inner.get("input"))


def _answered(content: Any) -> Iterator[AnsweredCall]:
    for place, block in enumerate(map(fields, content)):
        if block.get("type") == "tool_result":
            failed = block.get("is_error")
            failed = failed if type(failed) is bool else None
            yield AnsweredCall(
                ("content", place, "content"), text(block.get("tool_use_id")), None, block.get("content"), failed
            )
        elif "toolResult" in block and "type" not in (inner := fields(block["toolResult"])):
            status = inner.get("status")
            failed = status == "error" if type(status) is str else None
            path = ("content", place, "toolResult", "content")
            yield AnsweredCall(path, text(inner.get("toolUseId")), None, inner.get("content"), failed)
