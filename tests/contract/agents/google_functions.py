"""Google's client, which calls the functions itself."""

# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google import genai
from google.genai import types

import agent_otel
from tests.contract.toolbox import GEMINI as MODEL

if TYPE_CHECKING:
    from collections.abc import Sequence


def _client(base_url: str) -> Any:
    return genai.Client(api_key="scripted", http_options={"base_url": base_url})


def _config(tools: Sequence[Any]) -> Any:
    return types.GenerateContentConfig(tools=list(tools))


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync."""
    del setting
    client = _client(base_url)
    with agent_otel.execution("run-1"):
        return str(client.chats.create(model=MODEL, config=_config(tools)).send_message(prompt).text)


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    del setting
    client = _client(base_url)
    with agent_otel.execution("run-1"):
        return str((await client.aio.chats.create(model=MODEL, config=_config(tools)).send_message(prompt)).text)


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, streamed."""
    del setting
    client = _client(base_url)
    with agent_otel.execution("run-1"):
        chunks = await client.aio.chats.create(model=MODEL, config=_config(tools)).send_message_stream(prompt)
        return "".join([chunk.text or "" async for chunk in chunks])
