"""The bug that document 003 describes: the history is fetched and never appended, so from turn 2 on there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_otel.testing.servers.openai import ToolCall
from tests.system.lost_history.programs import SHAPES
from tests.system.scripted_child import report_of

if TYPE_CHECKING:
    from agent_otel.testing.servers.openai import Reply
    from tests.forks import Forks

_SDKS = {
    "openai_chat": ("openai-agents", "openai:OpenAIServer"),
    "openai_responses": ("openai-agents", "openai:OpenAIServer"),
    "anthropic": ("anthropic", "anthropic:AnthropicServer"),
    "gemini": ("google-genai", "providers:GeminiServer"),
    "bedrock": ("bedrock", "anthropic:BedrockServer"),
    "langgraph": ("langchain", "openai:OpenAIServer"),
}


@pytest.mark.parametrize("sdk", _SDKS)
@pytest.mark.shows("003.lost_history")
def test_each_request_after_the_first_has_lost_its_history(forks: Forks, sdk: str) -> None:
    name, server = _SDKS[sdk]
    turns = iter(range(10_000))

    def decide(_: object) -> Reply:
        """Ask for the tool in three turns of four, where the agent's loop asks the model."""
        turn = next(turns)
        return [ToolCall(f"call_{turn}", "list_files", {})] if sdk == "langgraph" and turn % 4 < 3 else "done"

    report = report_of("tests.system.lost_history.programs", sdk, forks, name, server, decide)

    refused = {"system only"} if sdk == "gemini" else set()
    assert report["messages"] == []
    assert report["lost"] == dict.fromkeys(SHAPES.keys() - refused, 3)
