"""What is the same in loops of the program's own over the clients of model providers."""

from __future__ import annotations

import inspect
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import agent_otel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

INSTRUCTIONS = "Be größe."
_numbers = itertools.count()


class Asked(NamedTuple):
    """One call that a model asks for."""

    name: str
    arguments: dict[str, Any]
    id: str | None = None


def running() -> AbstractContextManager[object]:
    """One run: what it asks and what it sends belong together."""
    return agent_otel.execution(f"run-{next(_numbers)}")


def definitions(tools: Mapping[str, Any]) -> list[Any]:
    """Definitions of tools as most providers have them."""
    parameters = {"type": "object", "properties": {}}
    return [{"type": "function", "function": {"name": name, "parameters": parameters}} for name in tools]


def sent(text: str, setting: str) -> str:
    """What the program sends of a result: with the setting ``cut`` not much, and nobody is told."""
    return text[:1000] if setting == "cut" else text


def call(tools: Mapping[str, Any], asked: Asked, setting: str) -> str:
    """Call a tool."""
    with agent_otel.tool_call(asked.name, asked.arguments, call_id=asked.id) as measured:
        return sent(measured.refused() or str(measured.result(tools[asked.name](**asked.arguments))), setting)


async def call_later(tools: Mapping[str, Any], asked: Asked, setting: str) -> str:
    """Call a tool that may be a coroutine function."""
    with agent_otel.tool_call(asked.name, asked.arguments, call_id=asked.id) as measured:
        if refused := measured.refused():
            return sent(refused, setting)
        result = tools[asked.name](**asked.arguments)
        return sent(str(measured.result(await result if inspect.isawaitable(result) else result)), setting)
