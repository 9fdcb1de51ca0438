"""Read the fields of messages, and replace values in a copy without changing the message itself."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agent_otel._internal.object_kinds import fields, is_dict, is_empty, is_text, plain_text
from agent_otel._internal.object_kinds import listed as elements

if TYPE_CHECKING:
    from collections.abc import Mapping

    #: Path of a value in a message, outermost first: keys, attribute names and list indexes.
    Path: TypeAlias = tuple[str | int, ...]

__all__ = ["changed", "fields", "is_continued", "is_kept", "is_list", "listed", "text", "text_of", "without"]
#: The field of a result that has the id of its call: at Anthropic, and in all formats.
RESULT_ID: Final = "tool_use_id"
CALL_IDS: Final = ("tool_call_id", "toolCallId", RESULT_ID, "toolUseId", "call_id", "callId")
_EARLIER: Final = ("previous_response_id", "conversation", "previous_interaction_id")


def is_list(value: Any) -> bool:
    """Return True for a plain list or tuple; no code of the value's class runs."""
    cls = type(value)
    return cls is list or cls is tuple


def listed(value: Any) -> list[Any] | tuple[Any, ...]:
    """Return the value if it is a list or tuple, else an empty tuple."""
    return value if is_list(value) else ()


def text(value: Any) -> str | None:
    """Return the value if it is a non-empty text, else None."""
    return value if type(value) is str and value else None


def first(response: Any, key: str, name: str) -> Mapping[str, Any]:
    """Return the fields of the first choice or candidate under a name."""
    choices = listed(fields(response).get(key))
    return fields(fields(choices[0]).get(name)) if choices else {}


def text_of(content: Any) -> str:
    """Return the text of a message's content: a text, or the texts of its blocks without reasoning."""
    if not is_list(content):
        return text(content) or ""
    return "".join(map(_block_text, map(fields, content)))


def _block_text(block: Mapping[str, Any]) -> str:
    """Return the text of a block. Results may have JSON (Bedrock) or a document (Cohere) instead."""
    if "json" in block:
        return json.dumps(block["json"], ensure_ascii=False, separators=(",", ":"))
    said = fields(block.get("document")).get("data") or block.get("text")
    return "" if block.get("thought") else text(said) or ""


def is_kept(body: Mapping[str, Any]) -> bool:
    """Return True where the provider keeps the conversation of a request.

    The request has an id of an earlier response or of a conversation (OpenAI's Responses, Google's interactions), or it
    continues a thread at Anthropic. A thread also has the system prompt and the tools.
    """
    if any((is_text(value) or is_dict(value)) and not is_empty(value) for value in map(body.get, _EARLIER)):
        return True
    return plain_text(fields(body.get("thread")).get("type")) == "continue"


def is_continued(body: Mapping[str, Any]) -> bool:
    """Return True where the provider has earlier messages: it keeps the conversation, or items that are referred to."""
    items = elements(body.get("input"))
    return is_kept(body) or any(plain_text(fields(item).get("type")) == "item_reference" for item in items)


def without(value: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the fields with other names than these."""
    return {name: each for name, each in value.items() if name not in names}


def without_nulls(value: Mapping[str, Any]) -> dict[str, Any]:
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


def changed(value: Any, changes: Mapping[Path, Any]) -> Any:
    """Return a copy with new values at these paths; everything outside the paths is shared with the original."""
    for path, new in changes.items():
        value = _changed_at(value, path, new)
    return value


def _changed_at(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    step, *rest = path
    return _updated(value, step, _changed_at(_inner(value, step), tuple(rest), new))


def _inner(value: Any, step: Any) -> Any:
    cls = type(value)
    if cls is dict:
        return value.get(step)
    return value[step] if cls is list or cls is tuple else fields(value).get(step)


def _updated(value: Any, step: Any, new: Any) -> Any:
    cls = type(value)
    if cls is dict:
        return {**value, step: new}
    if cls is list or cls is tuple:
        return cls([*value[:step], new, *value[step + 1 :]])
    if hasattr(cls, "model_copy"):  # pydantic
        return value.model_copy(update={step: new})
    made = copy.copy(value)
    if issubclass(cls, dict):
        dict.__setitem__(made, step, new)
    else:
        made.__dict__[step] = new  # bypasses __setattr__, so frozen classes work, too
    return made
