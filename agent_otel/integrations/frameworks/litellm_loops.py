"""LiteLLM's loop, ``run_tool_loop``; the entry is in ``model_sdks/litellm.py``.

It gets a function of the program that makes each call and returns the message of the tool.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_otel.core.plain import fields, is_dict, text
from agent_otel.core.types import PRODUCED, Invocation, Replacement, ToolCall, ToolReader, ToolResult
from agent_otel.integrations import wrappers
from agent_otel.integrations.frameworks import litellm_harness
from agent_otel.integrations.hooks import Hook
from agent_otel.integrations.registry.entries import Candidate, Site, Wrap

if TYPE_CHECKING:
    from collections.abc import Iterable

_ADAPTER = "frameworks.litellm_loops"
_FIRST = "1.106"
_LOOPS = (Wrap("run_tool_loop", "looping"), Wrap("arun_tool_loop", "looping_async"))
LOOPS = (
    Site(Candidate("litellm.tool_loop", *_LOOPS), minimum=_FIRST, adapter=_ADAPTER),
    Site(Candidate("litellm", *_LOOPS), minimum=_FIRST, adapter=_ADAPTER),  # imported before the switch is on
    litellm_harness.LOOP,
)


def _asked_call(invocation: Invocation) -> ToolCall:
    asked = invocation.arg(0, "tool_call")
    return ToolCall(asked.function.name, asked.function.arguments, asked.id)


def _message_result(message: Any) -> ToolResult:
    return ToolResult(fields(message).get("content", ""))


def _replace_message(message: Any, replacement: Replacement, invocation: Invocation) -> dict[str, Any]:
    kept = {"role": "tool", "tool_call_id": invocation.arg(0, "tool_call").id, **fields(message)}
    return {**kept, "content": replacement.text}


def _arguments(invocation: Invocation) -> dict[str, Any]:
    """Return the model's arguments; none where they are no JSON object."""
    try:
        arguments = json.loads(text(invocation.arg(0, "tool_call").function.arguments) or "")
    except ValueError:
        return {}
    return arguments if is_dict(arguments) else {}


def _inject_asked(invocation: Invocation, values: dict[str, Any]) -> bool:
    """Put arguments into a copy of the call, which stays in the messages as it is."""
    asked = invocation.arg(0, "tool_call").model_copy(deep=True)
    asked.function.arguments = json.dumps({**_arguments(invocation), **values}, ensure_ascii=False)
    invocation.put(0, "tool_call", asked)
    return True


def _asked_parameters(invocation: Invocation) -> Iterable[str]:
    return tuple(_arguments(invocation))


_asked = ToolReader(
    PRODUCED,
    _asked_call,
    _message_result,
    replace=_replace_message,
    parameters=_asked_parameters,
    inject=_inject_asked,
)
_asked_async = _asked._replace(is_awaited=True)


def _around(reader: ToolReader) -> Hook:
    """Return a hook that measures the function which makes the calls of a loop."""

    def before(invocation: Invocation) -> None:
        execute = invocation.kwargs.get("execute_tool")
        if callable(execute):
            invocation.kwargs = {**invocation.kwargs, "execute_tool": wrappers.around(execute, reader)}

    return Hook(before)


looping = _around(_asked)
looping_async = _around(_asked_async)
