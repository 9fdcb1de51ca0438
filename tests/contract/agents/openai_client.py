"""A loop of the program's own over OpenAI's client, either major."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import openai

from tests.contract.agents import by_hand
from tests.contract.agents.by_hand import INSTRUCTIONS, Asked
from tests.contract.agents.chat_loop import ChatLoop, begin

if TYPE_CHECKING:
    from collections.abc import Sequence

LOOP = ChatLoop(
    lambda base_url: openai.OpenAI(base_url=base_url, api_key="scripted", max_retries=0),
    lambda base_url: openai.AsyncOpenAI(base_url=base_url, api_key="scripted", max_retries=0),
)
run, astream = LOOP.run, LOOP.astream


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run; over the Responses API when the setting says so."""
    if not setting.startswith("responses"):
        return await LOOP.arun(base_url, tools, prompt, setting)
    request, functions = begin(tools, prompt)
    async with LOOP.async_client(base_url) as client:
        with by_hand.running():
            return await _respond(client, request, functions, setting)


async def _respond(client: Any, request: dict[str, Any], functions: dict[str, Any], setting: str) -> str:
    items = [request["messages"][1]]
    while True:
        answer = await client.responses.create(model="scripted", instructions=INSTRUCTIONS, input=items)
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return str(answer.output_text)
        for call in calls:
            items.append(call)
            asked = Asked(call.name, json.loads(call.arguments), call.call_id)
            text = await by_hand.call_later(functions, asked, setting.removeprefix("responses").strip())
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": text})
