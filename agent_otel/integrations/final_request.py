"""Changes that turn a model request into the last one of a run: the model calls no tool and answers.

The note goes into the system message at the beginning: several servers reject one that follows other messages. The
tools stay in the request, because providers reject calls in the history of a request without tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel.core import tool_names
from agent_otel.core.plain import fields, is_dict, listed, text

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
        return [_with_content(messages[0], joined(first.get("content"), note)), *messages[1:]]
    return [{"role": "system", "content": note} if make is None else make(), *messages]


def _with_content(message: Any, content: Any) -> Any:
    if is_dict(message):
        return {**fields(message), "content": content}
    return message.model_copy(update={"content": content})


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
    outputs = [tool for tool in tools if not _is_called(fields(tool))]
    return {"tools": outputs} if is_forced(choice) and outputs else {"tool_choice": none}


def is_forced(choice: object) -> bool:
    """Return True for a ``tool_choice`` with which the model may only call tools."""
    return (text(choice) or text(fields(choice).get("type"))) in _REQUIRED


def _is_called(tool: Mapping[str, Any]) -> bool:
    name = _name(tool)
    return name is None or tool_names.is_called(name)


def _name(tool: Mapping[str, Any]) -> str | None:
    """Return the name of a tool, in its definition or in a choice of it; None for one without."""
    named = (text(fields(tool.get(key)).get("name")) for key in ("function", "custom"))
    return text(tool.get("name")) or next(filter(None, named), None)
