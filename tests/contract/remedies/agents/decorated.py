"""A loop of the program's own that knows nothing of us, around tools with ``agent_otel.tool``."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import agent_otel
from tests.contract.agents.handwritten import ask
from tests.contract.remedies.agents.by_hand import as_text, loop

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync."""
    del setting
    functions = {tool.__name__: agent_otel.tool(tool) for tool in tools}
    messages: list[Any] = [{"role": "user", "content": prompt}]
    while True:
        messages.append(ask(base_url, messages))
        if not messages[-1].get("tool_calls"):
            return str(messages[-1]["content"])
        for asked in messages[-1]["tool_calls"]:
            result = functions[asked["function"]["name"]](**json.loads(asked["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": asked["id"], "content": as_text(result)})


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, the calls of a turn at once."""
    del setting
    functions = {tool.__name__: agent_otel.tool(tool) for tool in tools}

    async def answer(call_id: str, name: str, arguments: Any) -> Any:
        del call_id
        result = functions[name](**arguments)
        return await result if inspect.isawaitable(result) else result

    return await loop(base_url, prompt, answer)
