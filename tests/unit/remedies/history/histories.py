"""Histories in every shape, from one description of turns, for tests that hold for all of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True)
class Asked:
    """A call with its result; None where it has none."""

    id: str
    tool: str
    arguments: dict[str, Any]
    result: str | None


@dataclass(frozen=True)
class Turn:
    """The calls of one response of a model, and what the user says after their results."""

    calls: tuple[Asked, ...]
    user: str | None = None


def chat(turn: Turn) -> list[Any]:
    """OpenAI's chat."""
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": json.dumps(call.arguments)}}
        for call in turn.calls
    ]
    answers = [
        {"role": "tool", "tool_call_id": call.id, "content": call.result}
        for call in turn.calls
        if call.result is not None
    ]
    asked = {"role": "assistant", "content": None, "tool_calls": calls}
    return [asked, *answers, *_user(turn, {"role": "user", "content": turn.user})]


def responses(turn: Turn) -> list[Any]:
    """OpenAI's Responses API, with an item of reasoning between the calls."""
    made: list[Any] = []
    for call in turn.calls:
        made.append({"type": "reasoning", "summary": [], "encrypted_content": "c2ln"})
        arguments = json.dumps(call.arguments)
        made.append({"type": "function_call", "call_id": call.id, "name": call.tool, "arguments": arguments})
    made += [
        {"type": "function_call_output", "call_id": call.id, "output": call.result}
        for call in turn.calls
        if call.result is not None
    ]
    return [*made, *_user(turn, {"role": "user", "content": turn.user})]


def anthropic(turn: Turn) -> list[Any]:
    """Anthropic's messages, thinking before the calls."""
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    calls = [{"type": "tool_use", "id": call.id, "name": call.tool, "input": call.arguments} for call in turn.calls]
    answers: list[Any] = [
        {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": call.result}]}
        for call in turn.calls
        if call.result is not None
    ]
    answers += _user(turn, {"type": "text", "text": turn.user})
    return [
        {"role": "assistant", "content": [thinking, *calls]},
        *([{"role": "user", "content": answers}] if answers else []),
    ]


def gemini(turn: Turn) -> list[Any]:
    """Gemini's contents, without ids, as its API gives them."""
    calls = [{"functionCall": {"name": call.tool, "args": call.arguments}} for call in turn.calls]
    answers: list[Any] = [
        {"functionResponse": {"name": call.tool, "response": {"result": call.result}}}
        for call in turn.calls
        if call.result is not None
    ]
    answers += _user(turn, {"text": turn.user})
    return [{"role": "model", "parts": calls}, *([{"role": "user", "parts": answers}] if answers else [])]


def bedrock(turn: Turn) -> list[Any]:
    """Bedrock's Converse API."""
    calls = [{"toolUse": {"toolUseId": call.id, "name": call.tool, "input": call.arguments}} for call in turn.calls]
    answers: list[Any] = [
        {"toolResult": {"toolUseId": call.id, "content": [{"text": call.result}]}}
        for call in turn.calls
        if call.result is not None
    ]
    answers += _user(turn, {"text": turn.user})
    return [{"role": "assistant", "content": calls}, *([{"role": "user", "content": answers}] if answers else [])]


def langchain(turn: Turn) -> list[Any]:
    """LangChain's messages as dictionaries, the raw answer of the provider beside the calls."""
    calls = [{"type": "tool_call", "id": call.id, "name": call.tool, "args": call.arguments} for call in turn.calls]
    raw = chat(Turn(turn.calls))[0]["tool_calls"]
    asked = {"type": "ai", "content": "", "tool_calls": calls, "additional_kwargs": {"tool_calls": raw}}
    answers = [
        {"type": "tool", "tool_call_id": call.id, "content": call.result, "status": status}
        for call in turn.calls
        if call.result is not None
        for status in ("error" if call.result.startswith("Error") else "success",)
    ]
    return [asked, *answers, *_user(turn, {"type": "human", "content": turn.user})]


def _user(turn: Turn, said: dict[str, Any]) -> list[Any]:
    return [said] if turn.user is not None else []


SHAPES: dict[str, Callable[[Turn], list[Any]]] = {
    shape.__name__: shape for shape in (chat, responses, anthropic, gemini, bedrock, langchain)
}


def rendered(shape: str, turns: Sequence[Turn]) -> list[Any]:
    """The messages of these turns."""
    return [message for turn in turns for message in SHAPES[shape](turn)]


def reading(number: int, result: str, arguments: dict[str, Any] | None = None) -> Turn:
    """A turn with one call of the tool ``read``."""
    return Turn((Asked(f"call_{number}", "read", arguments or {"path": f"{number}.txt"}, result),))
