"""Model clients with one way to ask: a system prompt, neutral messages, and whether the model calls a tool or answers.

The model's name tells the scripted server what to reply.
"""

# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"
# The SDKs are not installed where types are checked.

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

CALL, SAY = "call", "say"
TOOL = "search"
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}


class Call(NamedTuple):
    """A tool call that the model asks for."""

    id: str
    name: str
    arguments: dict[str, Any]


class User(NamedTuple):
    """A message of the user."""

    text: str


class Said(NamedTuple):
    """A message of the model."""

    text: str


class Result(NamedTuple):
    """A result for the model."""

    call: Call
    text: str


Message = User | Said | Call | Result


def _said(message: User | Said) -> dict[str, Any]:
    """Return a text in the form that all three APIs have."""
    return {"role": "user" if isinstance(message, User) else "assistant", "content": message.text}


class OpenAI:
    """A client of OpenAI's."""

    def __init__(self, url: str) -> None:
        import openai

        self.client = openai.OpenAI(base_url=url, api_key="scripted", max_retries=0)


class OpenAIChat(OpenAI):
    """Chat Completions."""

    def ask(
        self, system: str | None, messages: Sequence[Message], reply: str, *, tools: bool = True, forced: bool = False
    ) -> Call | None:
        """Send a request; return the call that the model asks for, None when it answers."""
        items: list[Any] = [{"role": "system", "content": system}] if system else []
        items += map(_chat, messages)
        more: dict[str, Any] = {}
        if tools:
            more["tools"] = [{"type": "function", "function": {"name": TOOL, "parameters": SCHEMA}}]
        if forced:
            more["tool_choice"] = {"type": "function", "function": {"name": TOOL}}
        answer = self.client.chat.completions.create(model=reply, messages=items, **more).choices[0].message
        for call in answer.tool_calls or ():
            return Call(call.id, call.function.name, json.loads(call.function.arguments))
        return None


def _chat(message: Message) -> dict[str, Any]:
    match message:
        case User() | Said():
            return _said(message)
        case Call(call_id, name, arguments):
            function = {"name": name, "arguments": json.dumps(arguments)}
            return {"role": "assistant", "tool_calls": [{"id": call_id, "type": "function", "function": function}]}
        case Result(call, text):
            return {"role": "tool", "tool_call_id": call.id, "content": text}


class OpenAIResponses(OpenAI):
    """Responses."""

    def ask(
        self, system: str | None, messages: Sequence[Message], reply: str, *, tools: bool = True, forced: bool = False
    ) -> Call | None:
        """Send a request; return the call that the model asks for, None when it answers."""
        more: dict[str, Any] = {"instructions": system} if system else {}
        if tools:
            more["tools"] = [{"type": "function", "name": TOOL, "parameters": SCHEMA, "strict": False}]
        if forced:
            more["tool_choice"] = {"type": "function", "name": TOOL}
        items: Any = [_item(message) for message in messages]
        for item in self.client.responses.create(model=reply, input=items, **more).output:
            if item.type == "function_call":
                return Call(item.call_id, item.name, json.loads(item.arguments))
        return None


def _item(message: Message) -> dict[str, Any]:
    match message:
        case User() | Said():
            return _said(message)
        case Call(call_id, name, arguments):
            return {"type": "function_call", "call_id": call_id, "name": name, "arguments": json.dumps(arguments)}
        case Result(call, text):
            return {"type": "function_call_output", "call_id": call.id, "output": text}


class Anthropic:
    """Messages, where a turn's messages of one side are one."""

    def __init__(self, url: str) -> None:
        import anthropic

        self.client = anthropic.Anthropic(base_url=url, api_key="scripted", max_retries=0)

    def ask(
        self, system: str | None, messages: Sequence[Message], reply: str, *, tools: bool = True, forced: bool = False
    ) -> Call | None:
        """Send a request; return the call that the model asks for, None when it answers."""
        more: dict[str, Any] = {"system": system} if system else {}
        if tools:
            more["tools"] = [{"name": TOOL, "input_schema": SCHEMA}]
        if forced:
            more["tool_choice"] = {"type": "tool", "name": TOOL}
        items: Any = [_message(message) for message in messages]
        answer = self.client.messages.create(model=reply, max_tokens=100, messages=items, **more)
        for block in answer.content:
            if block.type == "tool_use":
                return Call(block.id, block.name, block.input)
        return None


def _message(message: Message) -> dict[str, Any]:
    match message:
        case User() | Said():
            return _said(message)
        case Call(call_id, name, arguments):
            block = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
            return {"role": "assistant", "content": [block]}
        case Result(call, text):
            return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": text}]}


STACKS = {"openai_chat": OpenAIChat, "openai_responses": OpenAIResponses, "anthropic": Anthropic}
