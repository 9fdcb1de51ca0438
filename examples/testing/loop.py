"""The loop of the examples' agents: the model is called until it makes no more tool calls."""

# mypy: disable-error-code="import-not-found,unused-ignore"
# The client is not installed where types are checked.

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import openai

if TYPE_CHECKING:
    from collections.abc import Callable

Message = dict[str, Any]


def complete(messages: list[Message], *tools: Callable[..., str]) -> str:
    """Append the model's messages and the tools' results, and return the answer."""
    handlers = {tool.__name__: tool for tool in tools}
    client, definitions = openai.OpenAI(), [_definition(tool) for tool in tools]
    while True:
        completion = client.chat.completions.create(
            model="scripted", messages=messages, tools=definitions or openai.omit
        )
        reply = completion.choices[0].message
        messages.append(reply.to_dict())
        if not reply.tool_calls:
            return reply.content or ""
        for call in reply.tool_calls:
            result = handlers[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def _definition(tool: Callable[..., str]) -> dict[str, Any]:
    properties = {name: {"type": "string"} for name in tool.__annotations__ if name != "return"}
    parameters = {"type": "object", "properties": properties}
    return {
        "type": "function",
        "function": {"name": tool.__name__, "description": tool.__doc__, "parameters": parameters},
    }
