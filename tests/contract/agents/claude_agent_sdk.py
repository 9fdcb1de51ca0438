"""The Claude Agent SDK, with the program that comes with it, in a home of its own."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"
# The framework is not installed where types are checked.

from __future__ import annotations

import asyncio
import inspect
import tempfile
from typing import TYPE_CHECKING, Any

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, create_sdk_mcp_server, query, tool

if TYPE_CHECKING:
    from collections.abc import Sequence

TYPES: dict[str, Any] = {"str": str, "int": int}


def native(function: Any) -> Any:
    """The SDK's tool for a plain function."""
    name = function.__name__
    schema = {key: TYPES[each.annotation] for key, each in inspect.signature(function).parameters.items()}

    @tool(name, function.__doc__, schema)
    async def handler(arguments: dict[str, Any]) -> dict[str, Any]:
        result = function(**arguments)
        return {"content": [{"type": "text", "text": await result if inspect.isawaitable(result) else result}]}

    return handler


def options(base_url: str, tools: Sequence[Any], home: str) -> ClaudeAgentOptions:
    """An agent with these tools and no others."""
    return ClaudeAgentOptions(
        model="scripted",
        mcp_servers={"toolbox": create_sdk_mcp_server("toolbox", tools=[native(each) for each in tools])},
        allowed_tools=[f"mcp__toolbox__{each.__name__}" for each in tools],
        tools=[],
        setting_sources=[],
        cwd=home,
        env={
            "ANTHROPIC_API_KEY": "scripted",
            "ANTHROPIC_BASE_URL": base_url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "HOME": home,
        },
    )


def run(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run, sync."""
    return asyncio.run(arun(base_url, tools, prompt, setting))


async def arun(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run."""
    del setting
    said = ""
    with tempfile.TemporaryDirectory(prefix="home") as home:
        async for message in query(prompt=prompt, options=options(base_url, tools, home)):
            said = str(message.result) if isinstance(message, ResultMessage) else said
    return said


async def astream(base_url: str, tools: Sequence[Any], prompt: str, setting: str) -> str:
    """One run of the client that stays connected."""
    del setting
    said = ""
    with tempfile.TemporaryDirectory(prefix="home") as home:
        async with ClaudeSDKClient(options(base_url, tools, home)) as client:
            await client.query(prompt)
            async for message in client.receive_response():
                said = str(message.result) if isinstance(message, ResultMessage) else said
    return said
