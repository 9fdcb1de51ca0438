"""A loop of the program's own over Google's client."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from google import genai
from google.genai import types

import agent_otel
from tests.contract.toolbox import GEMINI as MODEL

if TYPE_CHECKING:
    from collections.abc import Sequence

INSTRUCTIONS = "Be größe."


def _client(base_url: str) -> Any:
    return genai.Client(api_key="scripted", http_options={"base_url": base_url})


def _begin(tools: Sequence[Any], prompt: str) -> tuple[list[Any], Any, dict[str, Any]]:
    contents = [types.Content(role="user", parts=[types.Part.from_text(text=prompt)])]
    declared = [types.FunctionDeclaration(name=tool.__name__) for tool in tools]
    config = types.GenerateContentConfig(
        system_instruction=INSTRUCTIONS, tools=[types.Tool(function_declarations=declared)]
    )
    return contents, config, {tool.__name__: tool for tool in tools}


def _part(call: Any, text: Any, setting: str) -> Any:
    """What the program makes of a result before it sends it."""
    text = text[:100] if setting == "cut" else text
    return types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={"result": text}))


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync; streamed when the setting says so."""
    client = _client(base_url)
    contents, config, functions = _begin(tools, prompt)
    with agent_otel.execution("run-1"):
        while True:
            parts = _ask(client, contents, config, setting)
            calls = [part.function_call for part in parts if part.function_call]
            if not calls:
                return "".join(part.text for part in parts)
            results = []
            for asked in calls:
                with agent_otel.tool_call(asked.name, asked.args, call_id=asked.id) as call:
                    results.append(_part(asked, call.result(functions[asked.name](**asked.args)), setting))
            contents += [types.Content(role="model", parts=parts), types.Content(role="user", parts=results)]


def _ask(client: Any, contents: list[Any], config: Any, setting: str) -> list[Any]:
    given: Any = {"model": MODEL, "contents": contents, "config": config}
    if setting == "stream":
        chunks = client.models.generate_content_stream(**given)
        return [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    return list(client.models.generate_content(**given).candidates[0].content.parts)


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    return await _loop(_client(base_url).aio, tools, prompt, setting)


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, streamed."""
    del setting
    return await _loop(_client(base_url).aio, tools, prompt, "stream")


async def _loop(client: Any, tools: Sequence[Any], prompt: str, setting: str) -> str:
    contents, config, functions = _begin(tools, prompt)
    with agent_otel.execution("run-1"):
        while True:
            given: Any = {"model": MODEL, "contents": contents, "config": config}
            if setting == "stream":
                chunks = await client.models.generate_content_stream(**given)
                parts = [part async for chunk in chunks for part in chunk.candidates[0].content.parts]
            else:
                parts = list((await client.models.generate_content(**given)).candidates[0].content.parts)
            calls = [part.function_call for part in parts if part.function_call]
            if not calls:
                return "".join(part.text for part in parts)
            results = []
            for asked in calls:
                with agent_otel.tool_call(asked.name, asked.args, call_id=asked.id) as call:
                    result = functions[asked.name](**asked.args)
                    text = call.result(await result if inspect.isawaitable(result) else result)
                results.append(_part(asked, text, setting))
            contents += [types.Content(role="model", parts=parts), types.Content(role="user", parts=results)]
